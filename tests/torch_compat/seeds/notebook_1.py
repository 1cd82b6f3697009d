# A notebook about the graph, section 1: the forward pass runs at once
# %%
import torch
# %%
w = torch.tensor([[3.0, 1.0]], requires_grad = True)
print(w, w.dim())
# %%
b = torch.tensor([[3.0]], requires_grad = True)
x = torch.randn(10, 2)
print(x, x.dim())
# %%
y = torch.randn(10, 1)
print(y, y.dim())
# %%
y_hat = x @ w.t() + b
print(y_hat)
# %%
print(y_hat.data)
# %%
loss = torch.mean(torch.pow((y_hat - y), 2))
print(loss.data)
