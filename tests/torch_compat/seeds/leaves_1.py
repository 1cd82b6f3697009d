# An article about leaf tensors, example 1
# Repaired: the lost indentation; the function is called, which the article leaves to pytest
# What the reader has run before:
import torch


# The snippet:
def test_training_pipeline2():
    input_data = [[4, 4, 4, 4],
    [9, 9, 9, 9]] # 2x4
    input = torch.tensor(input_data, dtype=torch.float32) # requires_grad=False
    output = torch.sqrt(input)
    target_data = [1, 2, 3, 4]
    target = torch.tensor(target_data, dtype=torch.float32) # requires_grad=False
    loss_fn = torch.nn.MSELoss()
    loss = loss_fn(input=output, target=target)
    print("\ninput.is_leaf:", input.is_leaf)
    print("output.requires_grad:", output.requires_grad)
    print("output.is_leaf:", output.is_leaf)
    print("target.is_leaf:", target.is_leaf)
    print("loss.requires_grad:", loss.requires_grad)
    print("loss.is_leaf:", loss.is_leaf)


test_training_pipeline2()
