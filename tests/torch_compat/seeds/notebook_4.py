# A notebook about the graph, section 4: the graph and the backward pass
# %%
import torch
# %%
x = torch.tensor(3.0, requires_grad = True)
print(x)
# %%
y1 = x + 1
print(y1)
# %%
y2 = 2 * x
print(y2)
# %%
loss = (y1 - y2) ** 2
print(loss)
# %%
loss.backward()
# %%
print(y1.grad_fn)
