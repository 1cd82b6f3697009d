"""Functions of torch scanned: the digits that its own formulas lose."""

import torch

from symgrad.scanning import accuracy


def test_softplus_loses_digits_above_its_threshold():
    report = accuracy(lambda x: torch.nn.functional.softplus(x), (0.0, 40.0), formula="log(1+exp(x))", points=12, order=1)
    worst = report.of_order(0)
    assert worst.point[0] > 20 and worst.ulp > 1e4 and worst.value == worst.point[0]
    assert report.of_order(1).value == 1.0 and report.of_order(1).verdict == "digits are lost"


def test_tanh_has_no_second_derivative_left_in_its_tail():
    report = accuracy(torch.tanh, (0.0, 40.0), formula="tanh(x)", points=12)
    assert report.of_order(0).verdict == "accurate"
    assert report.of_order(1).verdict == report.of_order(2).verdict == "digits are lost" and report.of_order(2).point[0] > 15
