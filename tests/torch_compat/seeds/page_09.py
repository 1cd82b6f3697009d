# A page about tensors, autograd and the graph: numpy()
import torch

a = torch.ones(5)
b = a.numpy()
print(a)
print(b)

a.add_(1)
print(a)
print(b)
