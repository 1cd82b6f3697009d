# A page about tensors, autograd and the graph: backward with a gradient
import numpy as np
import torch

"""
# 目标:
# 求 f(x) = a*x**2 + b*x + c 关于 x 的在 a=1.0,b=-2.0,c=1.0 处的导数
"""

# 自变量(张量)
x = torch.tensor([
    [0.0, 0.0],
    [1.0, 2.0],
], requires_grad = True)  # x 需要被求导
# 参数
a = torch.tensor(1.0)
b = torch.tensor(-2.0)
c = torch.tensor(1.0)
# 因变量
y = a * torch.pow(x, 2) + b * x + c

# gradient = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
gradient = torch.ones_like(x)

print(f"x:\n{x}")
print(f"y:\n{y}")
y.backward(gradient = gradient)
x_grad = x.grad
print(f"x_grad:\n{x_grad}")
