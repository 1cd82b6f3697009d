"""What the reports of the library have in common."""
