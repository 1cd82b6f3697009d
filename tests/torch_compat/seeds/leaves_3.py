# An article about leaf tensors, example 3
# Repaired: the lost indentation; the function is called, which the article leaves to pytest
# What the reader has run before:
import torch


# The snippet:
def test_training_pipeline5():
    input = torch.rand(1, requires_grad=True)
    output = torch.unique(
    input=input,
    sorted=True,
    return_inverse=False,
    return_counts=False,
    dim=None
    )
    print("\ninput.is_leaf:", input.is_leaf)
    print("output.requires_grad:", output.requires_grad)
    print("output.is_leaf:", output.is_leaf)
    output.backward()


test_training_pipeline5()
