"""Programs with the functions of `nn.functional` and the modules around them, for `sides`."""

import math

from tests.support.sides import numbered


def _wave(torch, *shape, phase=0.0, requires_grad=True):
    n = math.prod(shape)
    return torch.tensor([math.sin(1.3 * i + phase) for i in range(n)]).reshape(shape).requires_grad_(requires_grad)


def _probabilities(torch, *shape):
    return torch.tensor([(i * 7 % 11 + 0.5) / 12 for i in range(math.prod(shape))]).reshape(shape)


def _try(torch, log, call, *inputs, twice=True):
    """Value, name of the node, gradients, and, if `twice`, the gradients of their squares' sum."""
    y = call(*inputs)
    total = (y * torch.cos(torch.arange(float(y.numel())).reshape(y.shape))).sum()
    gradients = torch.autograd.grad(total, inputs, create_graph=True)
    log.said.append([y.grad_fn.name(), list(y.shape)])
    log.numbers(y, *gradients)
    if twice:
        log.numbers(*torch.autograd.grad(sum((g * g).sum() for g in gradients), inputs))


def linear(torch, log):
    for shape in ((3,), (5, 3), (2, 5, 3), (1, 2, 5, 3)):
        for bias in (True, False):
            layer = numbered(torch.nn.Linear(3, 4, bias=bias), torch)
            x = _wave(torch, *shape)
            y = layer(x)
            log.said.append(list(y.shape))
            log.numbers(y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]))
    y = numbered(torch.nn.Linear(3, 4), torch)(x[0, 0])
    log(lambda: y.grad_fn.name(), lambda: [(f.name(), i) for f, i in y.grad_fn.next_functions])


def linear_errors(torch, log):
    nn, x = torch.nn, _wave(torch, 5, 3)
    log(lambda: nn.Linear(4, 2)(x), lambda: nn.Linear(4, 2)(x[0]), lambda: nn.Linear(4, 2)(torch.zeros(2, 2, 3)), lambda: nn.Linear(4, 2, False)(x),
        lambda: torch.addmm(torch.ones(2), x.detach(), torch.ones(3, 2), beta=2, alpha=3),
        lambda: nn.functional.linear(torch.tensor(1.0), torch.ones(3, 2)), lambda: nn.functional.linear(x, torch.ones(3)).shape)


def elementwise_losses(torch, log):
    F = torch.nn.functional
    x, t = _wave(torch, 2, 3), _wave(torch, 2, 3, phase=1.0)
    weight = _probabilities(torch, 2, 3)
    for reduction in ("mean", "sum", "none"):
        for loss in (F.mse_loss, F.l1_loss):
            _try(torch, log, lambda a, b: loss(a, b, reduction=reduction), x, t, twice=loss is F.mse_loss)
            _try(torch, log, lambda a, b: loss(a, b, reduction=reduction, weight=weight), x, t, twice=loss is F.mse_loss)


def binary_losses(torch, log):
    F = torch.nn.functional
    p, x, t = _probabilities(torch, 2, 3).requires_grad_(), _wave(torch, 2, 3), _probabilities(torch, 3, 2).reshape(2, 3)
    weight, positive = torch.tensor([0.5, 1.5, 2.0]), torch.tensor([2.0, 3.0, 0.5])
    for reduction in ("mean", "sum", "none"):
        _try(torch, log, lambda a: F.binary_cross_entropy(a, t, reduction=reduction), p)
        _try(torch, log, lambda a: F.binary_cross_entropy(a, t, weight, reduction=reduction), p)
        _try(torch, log, lambda a: F.binary_cross_entropy_with_logits(a, t, reduction=reduction), x)
        _try(torch, log, lambda a: F.binary_cross_entropy_with_logits(a, t, weight, reduction=reduction), x)
        _try(torch, log, lambda a: F.binary_cross_entropy_with_logits(a, t, weight, reduction=reduction, pos_weight=positive), x)
    edge = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    y = F.binary_cross_entropy(edge, torch.tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
    log.numbers(y, torch.autograd.grad(y.sum(), edge)[0])


def likelihoods(torch, log):
    F = torch.nn.functional
    weight = torch.tensor([0.5, 1.5, 2.0])
    cases = {(3,): [1], (5, 3): [0, 1, 2, 0, 1], (2, 3, 2): [0, 1, 2, 1], (1, 3, 2, 2): [2, 1, 0, 1], (1, 3, 1, 2, 1): [2, 0]}
    for shape, classes in cases.items():
        x = _wave(torch, *shape)
        t = torch.tensor(classes).reshape(shape[:1] + shape[2:] if len(shape) > 1 else ())
        for reduction in ("mean", "sum", "none"):
            for options in ({}, {"weight": weight}, {"ignore_index": 1}, {"weight": weight, "ignore_index": 0}):
                if shape == (3,) and options.get("ignore_index") == 1:
                    continue
                for smoothing in (0.0, 0.2):
                    loss = F.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing, **options)
                    log.said.append(list(loss.shape))
                    log.numbers(loss, *torch.autograd.grad(loss.square().sum(), x))
                loss = F.nll_loss(x, t, reduction=reduction, **options)
                log.numbers(loss, *torch.autograd.grad(loss.square().sum(), x))


def probabilities(torch, log):
    F = torch.nn.functional
    weight = torch.tensor([0.5, 1.5, 2.0])
    for shape in ((3,), (4, 3), (2, 3, 2)):
        x, t = _wave(torch, *shape), _probabilities(torch, *shape).requires_grad_()
        for reduction in ("mean", "sum", "none"):
            for options in ({}, {"weight": weight}):
                for smoothing in (0.0, 0.2):
                    loss = F.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing, **options)
                    log.said.append(list(loss.shape))
                    log.numbers(loss, *torch.autograd.grad(loss.square().sum(), [x, t]))


def nodes(torch, log):
    F = torch.nn.functional
    x, t, classes = _wave(torch, 5, 3), _probabilities(torch, 5, 3), torch.tensor([0, 1, 2, 0, 1])
    image, pixels = _wave(torch, 1, 3, 2, 2), torch.zeros(1, 2, 2, dtype=torch.long)
    log(lambda: F.cross_entropy(x, classes), lambda: F.cross_entropy(x, classes, label_smoothing=0.1), lambda: F.nll_loss(x, classes),
        lambda: F.cross_entropy(image, pixels), lambda: F.mse_loss(x, t), lambda: F.l1_loss(x, t), lambda: F.relu(x[0]), lambda: F.softplus(x[0]),
        lambda: F.softmax(x[0], 0), lambda: F.log_softmax(x[0], 0), lambda: F.logsigmoid(x[0]), lambda: F.sigmoid(x[0]), lambda: F.tanh(x[0]),
        lambda: F.binary_cross_entropy_with_logits(x, t), lambda: F.cross_entropy(x, t, reduction="sum"),
        lambda: [f.name() for f, _ in F.cross_entropy(x, classes).grad_fn.next_functions])


def activations(torch, log):
    nn = torch.nn
    x = _wave(torch, 2, 3)
    for module in (nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.LogSigmoid(), nn.Softplus(), nn.Softplus(2.0), nn.Softmax(1), nn.LogSoftmax(0),
                   nn.Flatten(0), nn.Identity()):
        y = module(x)
        log.said.append(list(y.shape))
        log.numbers(y, *torch.autograd.grad(y.square().sum(), x))
    layer = numbered(nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)), torch)
    y = nn.functional.log_softmax(layer(x), 1)
    log.numbers(*torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]))
    h = layer[0](x)
    y = nn.functional.log_softmax(h, 1)
    h.add_(1)
    log.numbers(torch.autograd.grad(y.sum(), x)[0])
    copied = x.detach().clone()
    log(lambda: nn.ReLU(inplace=True)(copied) is copied, lambda: copied)
    log(lambda: nn.functional.softmax(x, 1, dtype=torch.float32).dtype)


def loss_modules(torch, log):
    nn = torch.nn
    x, t, classes = _wave(torch, 2, 3), _probabilities(torch, 2, 3), torch.tensor([2, 0])
    p = _probabilities(torch, 3, 2).reshape(2, 3)
    w = torch.tensor([0.5, 1.5, 2.0])
    for loss in (nn.MSELoss(), nn.MSELoss(reduction="sum"), nn.L1Loss(reduction="none"), nn.BCEWithLogitsLoss(w), nn.BCEWithLogitsLoss(pos_weight=w)):
        log.numbers(loss(x, t))
    for loss in (nn.BCELoss(), nn.BCELoss(w, reduction="sum")):
        log.numbers(loss(p, t))
    for loss in (nn.NLLLoss(), nn.NLLLoss(w), nn.NLLLoss(ignore_index=2), nn.CrossEntropyLoss(), nn.CrossEntropyLoss(w, reduction="sum"),
                 nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)):
        log.numbers(loss(x, classes))
    log.numbers(nn.CrossEntropyLoss()(x, t))


def errors(torch, log):
    nn, F = torch.nn, torch.nn.functional
    x, t, classes = _wave(torch, 5, 3), _probabilities(torch, 5, 3), torch.tensor([0, 1, 2, 0, 1])
    two, many = torch.ones(2), torch.full((5,), -100)
    log(lambda: F.cross_entropy(x, classes + 5), lambda: F.cross_entropy(x, classes - 1), lambda: F.cross_entropy(x, classes[:4]),
        lambda: F.cross_entropy(x, classes.double()), lambda: F.cross_entropy(x, classes.int()), lambda: F.cross_entropy(x, classes.to(torch.uint8)),
        lambda: F.cross_entropy(x, torch.zeros(5, 3, dtype=torch.long)), lambda: F.cross_entropy(x, classes, weight=two),
        lambda: F.cross_entropy(x, t, weight=two), lambda: F.cross_entropy(x, classes, label_smoothing=1.5),
        lambda: F.cross_entropy(x, classes, reduction="foo"), lambda: F.cross_entropy(x, many), lambda: F.cross_entropy(x, many, reduction="sum"),
        lambda: F.cross_entropy(x, t, ignore_index=1), lambda: F.cross_entropy(x.sum(), torch.tensor(1)),
        lambda: F.cross_entropy(x[0], torch.tensor([1])), lambda: F.cross_entropy(torch.zeros(2, 3, 4), torch.zeros(2, 5, dtype=torch.long)),
        lambda: F.cross_entropy(torch.zeros(2, 3, 4), torch.zeros(2, dtype=torch.long)), lambda: F.nll_loss(x.sum(), torch.tensor(1)),
        lambda: F.nll_loss(torch.zeros(2, 3, 4, 5), torch.zeros(2, 4, 6, dtype=torch.long)), lambda: F.nll_loss(x, classes[:4]),
        lambda: F.nll_loss(torch.zeros(2, 3, 4, 5), torch.zeros(2, 4, dtype=torch.long)), lambda: F.nll_loss(x, torch.tensor(1)),
        lambda: F.nll_loss(x[0], classes[:2]), lambda: F.nll_loss(x, classes[:, None]), lambda: F.nll_loss(x, classes.double()),
        lambda: F.nll_loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)), lambda: F.nll_loss(x, classes, reduction="none", ignore_index=1))
    log(lambda: F.mse_loss(x, t[:1]), lambda: F.mse_loss(x, t, weight=t[0]), lambda: F.mse_loss(x, t, reduction="foo"),
        lambda: F.l1_loss(x, t, reduction="foo"), lambda: F.l1_loss(x, t[:1]), lambda: F.mse_loss(x, t, size_average=False),
        lambda: F.mse_loss(x, t, reduce=False).shape, lambda: nn.MSELoss(size_average=False).reduction, lambda: nn.MSELoss(reduction="foo")(x, t),
        lambda: F.binary_cross_entropy(t, t[:1]), lambda: F.binary_cross_entropy(t + 1, t), lambda: F.binary_cross_entropy(t, t + 1),
        lambda: F.binary_cross_entropy(t, t, reduction="foo"), lambda: F.binary_cross_entropy_with_logits(t, t[:1]),
        lambda: F.binary_cross_entropy_with_logits(t, t, reduction="foo"), lambda: F.softmax(x[0]), lambda: F.log_softmax(x), lambda: nn.Softmax()(x))
