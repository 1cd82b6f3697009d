# A notebook about the graph, section 5: leaves and other tensors
# %%
print('叶子节点需要满足两个条件')
print('1. 叶子节点张量是由用户直接创建的张量，而非由某个Function通过计算得到的张量')
print('2. 叶子节点张量的requires_grad必须为True')
print('这样设计的好处：节约内存或者小村空间，因为几乎所有的时候，用户只关心他自己直接创建的张量的梯度')
# %%
import torch
# %%
x = torch.tensor(3.0, requires_grad = True)
y1 = x + 1
y2 = 2 * x
loss = (y1 - y2) ** 2
# %%
loss.backward()
print('loss.grad:', loss.grad)
print('y1.grad:', y1.grad)
print('y2.grad:', y2.grad)
print('x.grad:', x.grad)
# %%
print('打印看是否为叶子节点:')
print('x是否为叶子节点：', x.is_leaf)
print('y1是否为叶子节点：', y1.is_leaf)
print('y2是否为叶子节点：', y2.is_leaf)
print('loss是否为叶子节点', loss.is_leaf)
# %%
print('利用retain_grad可以保留非叶子节点的梯度，利用register_hook可以查看非叶子节点的梯度值')
# %%
import torch
x = torch.tensor(3.0, requires_grad = True)
y1 = x + 1
y2 = 2 * x
loss = (y1 - y2) ** 2
# %%
print('非叶子节点梯度显示控制')
y1.register_hook(lambda grad: print('y1 grad:', grad))
y2.register_hook(lambda grad: print('y2 grad:', grad))
loss.retain_grad()
# %%
loss.backward()
print('loss.grad:', loss.grad)
print('x.grad:', x.grad)
