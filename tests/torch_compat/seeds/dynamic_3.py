# An article about the dynamic graph, section 2: a Function of one's own (the class names torch before the import, so that one stands first as well)
# What the reader has run before:
import torch


# The snippet:
class MyReLU(torch.autograd.Function):
    #正向传播逻辑,可以用ctx存储一些值,供反向传播使用。
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input) # 用ctx保存input
        return input.clamp(min=0) # 使用clamp将负值置零
    #反向传播逻辑
    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors # 取出保存的值
        grad_input = grad_output.clone() # 复制
        grad_input[input < 0] = 0
        return grad_input
    
import torch 
w = torch.tensor([[3.0,1.0]],requires_grad=True)
b = torch.tensor([[3.0]],requires_grad=True)
X = torch.tensor([[-1.0,-1.0],[1.0,1.0]])
Y = torch.tensor([[2.0,3.0]])

relu = MyReLU.apply # relu现在也可以具有正向传播和反向传播功能
Y_hat = relu(X@w.t() + b) # 以下计算loss 就可以反向传播
loss = torch.mean(torch.pow(Y_hat-Y,2))

loss.backward() 

print(w.grad)
print(b.grad)
