# A page about tensors, autograd and the graph: item
import torch

x = torch.randn(1)
print(x)
print(x.item()) # python number
