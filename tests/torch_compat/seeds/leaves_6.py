# An article about leaf tensors, example 6
# Repaired: the lost indentation; the function is called, which the article leaves to pytest
# What the reader has run before:
import torch


# The snippet:
def test_training_pipeline9():
    x = torch.tensor([1.0], requires_grad=True)
    y = x + 2
    z = 2 * y # <-- dz/dy=2
    y[0] = -2.0
    print("\nx.is_leaf:", x.is_leaf)
    print("y.is_leaf:", y.is_leaf)
    print("z.is_leaf:", z.is_leaf)
    print("\nx.requires_grad:", x.requires_grad)
    print("y.requires_grad:", y.requires_grad)
    print("z.requires_grad:", z.requires_grad)
    z.backward()


test_training_pipeline9()
