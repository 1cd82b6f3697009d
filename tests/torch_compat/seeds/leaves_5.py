# An article about leaf tensors, example 5
# Repaired: the lost indentation; the function is called, which the article leaves to pytest
# What the reader has run before:
import torch


# The snippet:
def test_training_pipeline7():
    input_data = [[4, 4, 4, 4],
    [9, 9, 9, 9]] # 2x4
    input_a = torch.tensor(input_data, dtype=torch.float32, requires_grad=True)
    input_b = torch.tensor(input_data, dtype=torch.float32)
    output = torch.add(input_a, input_b)
    print("\ninput_a.requires_grad:", input_a.requires_grad)
    print("input_b.requires_grad:", input_b.requires_grad)
    print("output.requires_grad:", output.requires_grad)
    print("output.is_leaf:", output.is_leaf)
    grad = torch.ones_like(output)
    input_b[0][0] = 10
    input_a[0][0] = 10
    output.backward(grad)


test_training_pipeline7()
