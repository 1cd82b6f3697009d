# A notebook about automatic differentiation, section 1: a single-layer network
# %%
import torch
# %%
# 定义数据
x = torch.tensor(10.0)
y = torch.tensor([[3.0]])
print(x)
print(y)
# %%
# 定义参数，权重和偏置
w = torch.rand(1, 1, requires_grad=True)  # 1 x 1的矩阵，需要计算梯度，开启requires_grad属性
b = torch.rand(1, 1, requires_grad=True)  # 1 x 1的矩阵，需要计算梯度，开启requires_grad属性
print(w)
print(b)
# %%
# 前向传播，得到输出值
z = w * x + b  # z为某些张量得到的一个新的张量
print(z)
# %%
print(x.is_leaf)
print(w.is_leaf)
print(b.is_leaf)
print(y.is_leaf)
print(z.is_leaf)
# %%
# 设置损失函数，均方误差
loss = torch.nn.MSELoss()
loss_value = loss(z, y)  # 通过真实值和预测值计算误差
print(loss_value)
print(loss_value.is_leaf)
# %%
# 反向传播
loss_value.backward()
# %%
# 查看梯度
print(w.grad)
print(b.grad)
