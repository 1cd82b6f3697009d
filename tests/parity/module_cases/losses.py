"""Losses with parameters, alignments, and deprecated names."""

_LABELS = "t([[1, 2, 2], [3, 3, 1]])"
CASES = {
    "LinearCrossEntropyLoss(3, 4)": ["wave(2, 3), t([0, 3])", "wave(3), t(2)"],
    "LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True, reduction='sum', ignore_index=1)": "wave(2, 3), t([[0, 3], [1, 2]])",
    "LinearCrossEntropyLoss(3, 4, weight=wave(4).detach() ** 2, label_smoothing=0.25)": "wave(2, 3), t([0, 3])",
    "AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5], div_value=2.0)": ["wave(6, 4), t([0, 9, 3, 1, 4, 5])", "wave(4), t(7)", "wave(2, 4), t([1, 0])"],
    "AdaptiveLogSoftmaxWithLoss(5, 6, [3], head_bias=True)": "wave(3, 5), t([5, 0, 2])",
}
FUNCTIONS = {
    "F.ctc_loss": [f"wave(6, 2, 4).detach().log_softmax(2), {given}" for given in (
        f"{_LABELS}, (6, 6), (3, 2)", f"{_LABELS}, t([6, 4]), t([2, 0]), reduction='none'", f"{_LABELS} - 1, (2, 6), (3, 3), 3, 'none'",
        f"{_LABELS}, (2, 6), (3, 3), 0, 'none', True", "t([1, 2, 3, 3]), (5, 6), (1, 3), reduction='sum'",
        "t([[1], [2]]), (0, 6), (0, 1), 0, 'none'")],
    "m.ctc_loss": "wave(5, 2, 3).detach().log_softmax(2), t([[1, 2], [1, 1]]), (5, 5), (2, 2), 0, 2, True",
    "nn.factory_kwargs": ["None", "{'dtype': 3, 'factory_kwargs': {'device': 'cpu'}}"],
}
FIRST_FUNCTIONS = {  # torch differentiates by what stands before the softmax, and once
    f"lambda x: F.ctc_loss(x.log_softmax(-1), {given})": x for x, given in (
        ("wave(6, 2, 4)", f"{_LABELS}, (6, 5), (3, 2)"), ("wave(6, 2, 4)", f"{_LABELS}, (6, 6), (3, 0), 0, 'none'"),
        ("wave(6, 2, 4)", "t([1, 2, 3, 3]), (5, 6), (1, 3), reduction='sum'"), ("wave(6, 2, 4)", f"{_LABELS}, (2, 6), (3, 3), 0, 'none', True"),
        ("wave(5, 3)", "t([1, 1]), t(5), t(2)"), ("wave(5, 3)", "t([1, 0]), (5,), (2,), 2, 'none'"), ("wave(1, 1, 3)", "t([[2]]), (1,), (1,)"))
}
_X = "wave(5, 2, 4).log_softmax(2)"
REFUSED = {
    "F.ctc_loss": [f"{_X}, t([[1, 2], [3, 3]]), {rest}" for rest in (
        "(5, 6), (2, 2)", "(5,), (2, 2)", "(5, 5), (2,)", "(5, 5), (2, 2), 4", "(5, 5), (3, 2)", "t([5, 5]), t([2., 2.])", "(-1, 5), (1, 2)",
        "(5, 5), (-1, 2)", "(5, 5), (2, 2), reduction='foo'")] + [
        f"{_X}, t([1, 2, 3, 3]), (5, 5), (3, 2)", f"{_X}, t([1, 2, 3, 3]), (5, 5), (1, 2)", f"{_X}, t([[1, 2]]), (5, 5), (2, 2)",
        f"{_X}.half(), t([[1, 2], [3, 3]]), (5, 5), (2, 2)", "wave(0, 1, 3), t([[1]]), (0,), (0,)"],
    "LinearCrossEntropyLoss(3, 4, weight=wave(3))": [],
    "LinearCrossEntropyLoss(3, 4, label_smoothing=1.5)": [],
    "AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])": ["wave(2, 4), t([1])", "wave(4), t([1, 2, 3, 4])", "wave(2, 4), t(1)", "wave(2, 4), t([[1], [2]])",
                                                  "wave(2, 4), t([1, 10])", "wave(2, 4), t([-1, 1])"],
    **dict.fromkeys([f"AdaptiveLogSoftmaxWithLoss(4, 10, {cutoffs})" for cutoffs in ("[]", "[5, 2]", "[2, 2]", "[0, 2]", "[10]", "[2.5]")], []),
    "HuberLoss(delta='1')": [], "TripletMarginLoss(0)": [], "TripletMarginLoss(margin=-1.5)": [], "TripletMarginWithDistanceLoss(margin=0)": [],
    "NLLLoss2d()": [], "Container(a=nn.Tanh())": [],
    "nn.factory_kwargs": ["{'foo': 1}", "{'dtype': 1, 'factory_kwargs': {'dtype': 2}}"],
}
