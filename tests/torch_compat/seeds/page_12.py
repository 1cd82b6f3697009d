# A page about tensors, autograd and the graph: a model on a GPU
# What the reader has run before:
from torch import nn

model = nn.Linear(5, 2)


# The snippet:
import torch

# 让模型在 GPU 上运行
device = torch.device("cuda:0")
model.to(device)

# 将 tensor 复制到 GPU 上
my_tensor = torch.ones(2, 2, dtype = torch.double)
mytensor = my_tensor.to(device)
