# An article about leaf tensors, example 4
# Repaired: the lost indentation; the function is called, which the article leaves to pytest
# What the reader has run before:
import torch


# The snippet:
def test_training_pipeline3():
    input_data = [[4, 4, 4, 4],
    [9, 9, 9, 9]] # 2x4
    input_a = torch.tensor(input_data, dtype=torch.float32, requires_grad=True)
    input_b = torch.tensor(input_data, dtype=torch.float32, requires_grad=True)
    output = torch.ne(input_a, input_b)
    print("\ninput_a.is_leaf:", input_a.is_leaf)
    print("input_b.is_leaf:", input_b.is_leaf)
    print("output.dtype:", output.dtype)
    print("output.requires_grad:", output.requires_grad)
    print("output.is_leaf:", output.is_leaf)
    output.backward() # 报错


test_training_pipeline3()
