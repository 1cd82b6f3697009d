"""The plugin for pytest."""
