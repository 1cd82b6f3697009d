# A page about tensors, autograd and the graph: from_numpy
# What the reader has run before:
import torch


# The snippet:
import numpy as np

a = np.ones(5)
b = torch.from_numpy(a)
np.add(a, 1, out = a)

print(a)
print(b)
