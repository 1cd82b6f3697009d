"""Points at which functions are compared, and their shrinking."""
