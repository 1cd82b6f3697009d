# A notebook about automatic differentiation, section 3: data beside detach
# %% what an earlier section of the document left behind
import torch
# %%
# 两组数据进行对比
x1 = torch.tensor([1.0, 2, 3], requires_grad=True)
x2 = torch.tensor([1.0, 2, 3], requires_grad=True)
print(x1)
print(x2)
# %%
y1 = x1.sigmoid()
y2 = x2.sigmoid()
print(y1)
print(y2)
# %%
# y1.sum().backward()
# print(x1.grad)
# %%
# y2.sum().backward()
# print(x2.grad)
# %%
z1 = y1.data
z2 = y2.detach()
print(z1)
print(z2)
print(z1.requires_grad)
print(z2.requires_grad)
# %%
z1.zero_()
z2.zero_()
print(y1)
print(y2)
# %%
y1.sum().backward()
print(x1.grad)  # 计算流程图没有改变，仅仅通过data修改了数值，导致梯度计算出现错误，不安全
# %%
y2.sum().backward()
print(x2.grad)  # 报错，自动微分引擎发现数值修改，不允许梯度计算，安全
