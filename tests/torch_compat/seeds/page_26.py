# A page about tensors, autograd and the graph: its use, without a backward pass
# What the reader has run before:
import torch


class MyReLU(torch.autograd.Function):

    # 正向传播逻辑，可以用 ctx 存储一些值，供反向传播使用
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min = 0)

    # 反向传播逻辑
    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


# The snippet:
import torch

w = torch.tensor([[3.0, 1.0]], requires_grad = True)
b = torch.tensor([[3.0]], requires_grad = True)
X = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
Y = torch.tensor([[2.0, 3.0]])

relu = MyReLU.apply
Y_hat = relu(X @ w.t() + b)
loss = torch.mean(torch.pow(Y_hat - Y, 2))

print(w.grad)
print(b.grad)
# Y_hat 的梯度函数即是定义的 MyReLU.backward
print(Y_hat.grad_fn)
