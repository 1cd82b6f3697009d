# A page about tensors, autograd and the graph: DataParallel
# What the reader has run before:
from torch import nn

model = nn.Linear(5, 2)


# The snippet:
model = nn.DataParallel(model)
