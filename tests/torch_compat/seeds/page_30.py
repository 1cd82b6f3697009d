# A page about tensors, autograd and the graph: the graph in TensorBoard
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tensorboard import notebook
# %load_ext tensorboard
# %tensorboard --logdir ./data/tensorboard

class Net(nn.Module):

    def __init__(self):
        super(Net, self).__init__()
        self.w = nn.Parameter(torch.randn(2, 1))
        self.b = nn.Parameter(torch.zeros(1, 1))

    def forward(self, x):
        y = x@self.w + self.b
        return y

net = Net()

# TODO
writer = SummaryWriter("./tensorboard")
writer.add_graph(net, input_to_model = torch.rand(10, 2))
writer.close()

notebook.list()
# 在 tensorboard 中查看模型
notebook.start("--logdir ./data/tensorboard")
notebook.list()
