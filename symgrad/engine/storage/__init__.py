"""Memory of tensors: versions, strides, views, in-place writes."""
