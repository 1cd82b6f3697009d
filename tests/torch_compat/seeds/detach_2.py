# A notebook about automatic differentiation, section 2: detaching
# %% what an earlier section of the document left behind
import torch
# %%
x = torch.tensor(2.0, requires_grad=True)
y = x.detach()
print(x.requires_grad)
print(y.requires_grad)
# 不同的对象
print(id(x))
print(id(y))
# 数据存放的位置是相同的
print(x.untyped_storage().data_ptr())
print(y.untyped_storage().data_ptr())
# %%
print(x)
y.add_(10)
print(x)
# %%
# 分别对x和y进行后续计算
z1 = x ** 2
z2 = y ** 2
print(z1)
print(z2)
# %%
# 将sum()作为损失函数进行反向传播
z1.sum().backward()
# %%
# 将sum()作为损失函数进行反向传播
# z2.sum().backward() # 无法进行反向传播  element 0 of tensors does not require grad and does not have a grad_fn
# %%
x = torch.ones(2, 2, requires_grad=True)
y = x * x
print(x)
print(y)
# %%
# 分离y
u = y.detach()
print(u)
# %%
# # 定义z，让u参与新张量的计算
# z1 = u * x
# # 反向传播，计算梯度
# z1.sum().backward()
# # 查看x的梯度
# print(x.grad)
# print(x.grad == u)
# %%
# 让y参与新张量的计算
z2 = y * x
z2.sum().backward()
print(x.grad)
