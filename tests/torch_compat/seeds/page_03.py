# A page about tensors, autograd and the graph: an array and a tensor that share memory
# What the reader has run before:
import numpy as np
import torch


# The snippet:
# np.ndarray
arr = np.array(
    [
        [1, 2, 3], 
        [4, 5, 6]
    ]
)
print(arr)

# torch.tensor
t = torch.from_numpy(arr)
print(t)

# 修改 arr    
arr[0, 0] = 0
print(arr, t)

# 修改 torch.tensor
t[1, 1] = 100
print(arr, t)
