# A page about tensors, autograd and the graph: a column
import torch

x = torch.zeros(5, 3, dtype = torch.long)
print(x[:, 1])
