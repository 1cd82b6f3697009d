"""Functions under examination: one adapter for each framework, their detection, their names and their inputs."""
