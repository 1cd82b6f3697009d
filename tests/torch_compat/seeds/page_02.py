# A page about tensors, autograd and the graph: a tensor on a GPU
# What the reader has run before:
import numpy as np
import torch


# The snippet:
arr = np.ones((3, 3))

t = torch.tensor(arr, device = "cuda")
print(t)
