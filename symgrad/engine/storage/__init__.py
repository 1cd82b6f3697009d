"""Memory of tensors: version counters, views, writes in place."""
