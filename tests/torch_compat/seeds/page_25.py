# A page about tensors, autograd and the graph: a Function of one's own
# What the reader has run before:
import torch


# The snippet:
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
