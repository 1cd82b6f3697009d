# A page about tensors, autograd and the graph: imports
from __future__ import print_function
import numpy as np
import torch
