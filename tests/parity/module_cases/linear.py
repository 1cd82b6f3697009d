"""Linear maps, activations and shapes."""

CASES = {
    "Linear(3, 2)": "wave(4, 3)",
    "Linear(3, 2, bias=False)": "wave(3)",
    "Bilinear(2, 3, 4)": "wave(5, 2), wave(5, 3)",
    "PReLU(3)": "wave(2, 3, 4)",
    "LazyLinear(4)": "wave(5, 3)",
    "Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))": "wave(2, 3)",
    "Unflatten(1, (2, 3))": "wave(2, 6)",
}
REFUSED = {"Linear(3, 2)": ["wave(4, 2)"], "Bilinear(0, 3, 4)": [], "Bilinear(2, 3, 4)": ["wave(5, 2), wave(4, 3)"]}
