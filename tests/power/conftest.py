"""The twins need torch and JAX, and are imported by what measures only."""

collect_ignore = ["twins_torch.py", "twins_jax.py"]
