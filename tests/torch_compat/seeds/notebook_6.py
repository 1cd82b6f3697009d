# A notebook about the graph, section 6: the graph in TensorBoard
# %% what an earlier section of the document left behind
import torch
# %%
from torch import nn
# %%
torch.randn(2, 1)
# %%
torch.zeros(1, 1)
# %%
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.w = nn.Parameter(torch.randn(2, 1))
        self.b = nn.Parameter(torch.zeros(1, 1))

    def forward(self, x):
        y = x @ self.w + self.b
        return y
    
net = Net()
# %%
net
# %%
from torch.utils.tensorboard import SummaryWriter
# %%
writer = SummaryWriter('./data/tensorboard')
writer.add_graph(net, input_to_model = torch.randn(10, 2))
writer.close()
# %%
from tensorboard import notebook
# %%
notebook.list()
# %%
print('在tensorboard中查看模型')
notebook.start('--logdir ./data/tensorboard')
