"""What exists so that programs of PyTorch run: its older names, settings, storages and devices. Nothing below imports this package."""
