# A page about tensors, autograd and the graph: zeros with out
# What the reader has run before:
import torch


# The snippet:
out_t = torch.tensor([1])
t = torch.zeros((3, 3), out = out_t)
print(out_t, t)
print(id(out_t), id(t), id(t) == id(out_t))
