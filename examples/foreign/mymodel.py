"""The logistic loss of a margin y x."""

import torch


class LogisticLoss(torch.autograd.Function):
    """log(1 + exp(-margin)), without overflow."""

    @staticmethod
    def forward(ctx, margin):
        ctx.slope = -torch.sigmoid(-margin)
        return torch.logaddexp(torch.zeros_like(margin), -margin)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.slope


def loss(x, y):
    """The loss of a score x for a label y, 1 or -1."""
    return LogisticLoss.apply(y * x)
