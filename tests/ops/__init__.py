"""Property tests over the registry, the carriers and ops that users declare."""
