# A notebook about the graph, section 3: a Function of one's own, without staticmethod
# %%
import torch
# %%
class MyRelu(torch.autograd.Function):
    
    # 正向传播 
    def forward(ctx, input):
        # ctx.save_for_backward方法用于存储在forward()此期间生成的值，稍后将在执行时需要此值backward()。可以backward()在ctx.saved_tensors属性期间访问保存的值。
        ctx.save_for_backward(input)
        return input.clamp(min = 0)
    
    
    # 反向传播
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_output = grad_output.clone()
        grad_output[input < 0] = 0
        return grad_output
# %%
w = torch.tensor([[3.0, 1.0]], requires_grad = True)
print(w.data, w.dim(), w.size())
# %%
b = torch.tensor([[3.0]],  requires_grad = True)
x = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
y = torch.tensor([[2.0, 3.0]])
# %%
relu = MyRelu.apply # relu现在也具有正向传播和反向传播功能
# %%
relu
# %%
y_hat = relu(x @ w.t()) + b
y_hat
# %%
loss = torch.mean(torch.pow(y_hat - y, 2))
loss
# %%
loss.backward()
# %%
print('对w求导数：', w.grad)
print('对b求导数：', b.grad)
# %%
print(y_hat.grad_fn) # y_hat的梯度函数即是我们自己所定义的MyRelu.backward
