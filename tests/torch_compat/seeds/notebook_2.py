# A notebook about the graph, section 2: the backward pass frees the graph
# %%
import torch
# %%
w = torch.tensor([[3.0, 1.0]], requires_grad = True)
print(w.data)
# %%
b = torch.tensor([[3.0]], requires_grad = True)
x = torch.randn(10, 2)
y = torch.randn(10, 1)
y_hat = x @ w.t() + b
loss = torch.mean(torch.pow((y_hat - y), 2))
print('\n')
print('计算图在反向传播之后会立即的注销，如果要保留计算图，需要设置retain_graph = True')
loss.backward() # loss.backward(retain_graph = True)
#print('导数为:', x_grad)
# loss.backward() # 如果需要再次执行反向传播将报错
