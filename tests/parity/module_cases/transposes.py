"""Gradients of convolutions as functions."""

FUNCTIONS = {
    "nn.grad.conv1d_input": ["(2, 2, 6), wave(4, 1, 3), wave(2, 4, 3), stride=2, padding=1, groups=2", "(1, 2, 5), wave(1, 2, 2), wave(1, 1, 4)"],
    "nn.grad.conv2d_input": "(1, 2, 3, 4), wave(2, 2, 2, 2), wave(1, 2, 2, 3)",
    "nn.grad.conv3d_input": "(1, 1, 2, 3, 2), wave(1, 1, 2, 2, 1), wave(1, 1, 1, 2, 2)",
    "nn.grad.conv1d_weight": "wave(2, 2, 6), (4, 1, 3), wave(2, 4, 3), 2, 1, 1, 2",
    "nn.grad.conv2d_weight": "wave(1, 2, 3, 4), (2, 2, 2, 2), wave(1, 2, 2, 3)",
    "nn.grad.conv3d_weight": "wave(1, 1, 2, 3, 2), (1, 1, 2, 2, 1), wave(1, 1, 1, 2, 2)",
}
