"""Programs with schedules of learning rates, for `sides`."""

import pickle
import warnings


def _optimizer(torch, kind="SGD", rates=(0.5, 2.0), **options):
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates]
    return getattr(torch.optim, kind)(groups, **({"momentum": 0.9} if kind == "SGD" else {}), **options)


def _made(make, optimizer):
    with warnings.catch_warnings():  # a sequence whose first member is a sequence steps that in the constructor
        warnings.simplefilter("ignore")
        return make(optimizer)


def _follow(torch, log, make, epochs=14, **options):
    """The learning rates and other options in each epoch, and a schedule that goes on from a saved state."""
    optimizer = _optimizer(torch, **options)
    scheduler = _made(make, optimizer)
    for epoch in range(epochs):
        log.numbers(scheduler.get_last_lr(), [[group["lr"], group.get("betas", group.get("momentum"))] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
        if epoch == epochs // 2:
            saved = pickle.loads(pickle.dumps(scheduler.state_dict())), optimizer.state_dict()
            log(lambda: sorted(saved[0]))
    other = _optimizer(torch, **options)
    again = _made(make, other)
    again.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    other.step()
    for _ in range(3):
        again.step()
        log.numbers(again.get_last_lr(), [group["lr"] for group in other.param_groups])


def _schedules(torch):
    s = torch.optim.lr_scheduler
    return {
        "lambda": lambda o: s.LambdaLR(o, [lambda n: 0.9**n, lambda n: 1 / (n + 1)]),
        "product": lambda o: s.MultiplicativeLR(o, lambda n: 1 - n / 20),
        "step": lambda o: s.StepLR(o, 3, 0.5), "milestones": lambda o: s.MultiStepLR(o, [2, 5, 5, 9], 0.5), "constant": lambda o: s.ConstantLR(o),
        "constant 3": lambda o: s.ConstantLR(o, 0.25, 3), "linear": lambda o: s.LinearLR(o), "linear down": lambda o: s.LinearLR(o, 1.0, 0.1, 7),
        "exponential": lambda o: s.ExponentialLR(o, 0.8), "polynomial": lambda o: s.PolynomialLR(o, 8, 2.0),
        "polynomial 5": lambda o: s.PolynomialLR(o),
        "cosine": lambda o: s.CosineAnnealingLR(o, 5), "cosine least": lambda o: s.CosineAnnealingLR(o, 3, 0.25),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 4), "longer restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.125),
        "cyclic": lambda o: s.CyclicLR(o, 0.1, 1.0, 3), "cyclic 2": lambda o: s.CyclicLR(o, [0.1, 0.2], [1.0, 0.7], 2, 3, "triangular2"),
        "cyclic exp": lambda o: s.CyclicLR(o, 0.1, 1.0, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
        "cyclic own": lambda o: s.CyclicLR(o, 0.1, 1.0, 4, scale_fn=lambda n: 1 / (n + 1), scale_mode="iterations", base_momentum=[0.2, 0.4]),
        "one cycle": lambda o: s.OneCycleLR(o, 1.5, 20), "one cycle lines": lambda o: s.OneCycleLR(o, [1.0, 2.0], epochs=5, steps_per_epoch=4,
                                                                                                   anneal_strategy="linear", pct_start=0.25),
        "three phases": lambda o: s.OneCycleLR(o, 1.5, 18, three_phase=True, div_factor=5.0, final_div_factor=10.0, cycle_momentum=False),
        "swa": lambda o: torch.optim.swa_utils.SWALR(o, 0.05, 6), "swa line": lambda o: torch.optim.swa_utils.SWALR(o, [0.05, 3.0], 4, "linear"),
        "swa at once": lambda o: torch.optim.swa_utils.SWALR(o, 0.05, 0),
        "chained": lambda o: s.ChainedScheduler([s.ExponentialLR(o, 0.9), s.StepLR(o, 4, 0.5), s.ConstantLR(o)]),
        "sequence": lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.5), s.ExponentialLR(o, 0.8), s.CosineAnnealingLR(o, 4)], [3, 7]),
        "nested": lambda o: s.SequentialLR(o, [s.SequentialLR(o, [s.ExponentialLR(o, 0.8), s.StepLR(o, 2)], [3]), s.LinearLR(o)], [5]),
    }


def schedules(torch, log):
    for make in _schedules(torch).values():
        _follow(torch, log, make)


def schedules_of_adam(torch, log):
    made = _schedules(torch)
    for name in ("cyclic", "one cycle", "three phases", "cosine"):
        _follow(torch, log, made[name], kind="Adam")


def rates_in_tensors(torch, log):
    for name, make in _schedules(torch).items():
        if name not in ("nested", "cyclic own"):
            _follow(torch, log, make, epochs=6, rates=(torch.tensor(0.5), torch.tensor(2.0)))


def closed_forms(torch, log):
    for name, make in _schedules(torch).items():
        if name not in ("chained", "sequence", "nested"):
            optimizer = _optimizer(torch)
            scheduler = make(optimizer)
            for epoch in (0, 3, 7, 2, 12):
                optimizer.step()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scheduler.step(epoch)
                log.numbers(scheduler.get_last_lr(), scheduler.last_epoch)
    optimizer = _optimizer(torch)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    for i in range(20):
        scheduler.step(i / 3)
        log.numbers(scheduler.get_last_lr())
    log(lambda: scheduler.step(-1), lambda: torch.optim.lr_scheduler.StepLR(optimizer, 2).step(3))


def resumed(torch, log):
    for make in (lambda o, n: torch.optim.lr_scheduler.StepLR(o, 3, 0.5, last_epoch=n),
                 lambda o, n: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5, 0.1, n),
                 lambda o, n: torch.optim.lr_scheduler.ExponentialLR(o, 0.8, n), lambda o, n: torch.optim.lr_scheduler.LinearLR(o, last_epoch=n),
                 lambda o, n: torch.optim.lr_scheduler.OneCycleLR(o, 1.5, 20, last_epoch=n),
                 lambda o, n: torch.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, 3, last_epoch=n)):
        optimizer = _optimizer(torch)
        log(lambda: make(optimizer, 4))
        scheduler = make(optimizer, -1)
        for _ in range(5):
            optimizer.step()
            scheduler.step()
        scheduler = make(optimizer, 5)
        for _ in range(4):
            log.numbers(scheduler.get_last_lr(), scheduler.last_epoch)
            optimizer.step()
            scheduler.step()


def plateaus(torch, log):
    make = torch.optim.lr_scheduler.ReduceLROnPlateau
    losses = [3.0, 2.0, 2.1, 2.0, 1.9999, 1.5, 1.6, 1.55, 1.7, 1.4, 1.5, 1.6, float("nan"), 1.2, 1.2, 1.2, 1.2]
    for options in ({}, {"patience": 1}, {"patience": 0, "cooldown": 2, "factor": 0.5}, {"mode": "max", "patience": 1, "threshold": 0.2},
                    {"patience": 1, "threshold_mode": "abs", "threshold": 0.3, "min_lr": [0.4, 0.1]}, {"patience": 0, "eps": 0.1},
                    {"mode": "max", "threshold_mode": "abs", "patience": 0}):
        optimizer = _optimizer(torch)
        scheduler = make(optimizer, **options)
        for loss in losses:
            scheduler.step(torch.tensor(loss))
            log.numbers(scheduler.get_last_lr(), [scheduler.num_bad_epochs, scheduler.in_cooldown])
        saved = scheduler.state_dict()
        log(lambda: dict(sorted(saved.items())), lambda: scheduler.load_state_dict({**saved, "mode": "max"}), lambda: scheduler.mode_worse,
            lambda: scheduler.step(1.0, 7))
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 1.0})
    log(lambda: [scheduler.step(-9.0) for _ in range(3)], lambda: scheduler.get_last_lr(), lambda: make(_optimizer(torch), min_lr=[0.1]))
    optimizer = _optimizer(torch)
    scheduler = make(optimizer, min_lr=[0.1, 0.2], patience=0)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 1.0})
    log(lambda: [scheduler.step(2.0) for _ in range(3)])


def errors_and_warnings(torch, log):
    s, swa = torch.optim.lr_scheduler, torch.optim.swa_utils
    o, adagrad = _optimizer(torch), torch.optim.Adagrad([torch.nn.Parameter(torch.ones(1))])
    log(lambda: s.StepLR(3, 1), lambda: s.LRScheduler(o), lambda: s.LambdaLR(o, [len]), lambda: s.MultiplicativeLR(o, [1, 2]),
        lambda: s.MultiplicativeLR(o, [len]), lambda: s.ConstantLR(o, 2.0), lambda: s.LinearLR(o, 0.0), lambda: s.LinearLR(o, 0.5, 2.0),
        lambda: s.ReduceLROnPlateau(o, factor=1.0), lambda: s.ReduceLROnPlateau(3), lambda: s.ReduceLROnPlateau(o, mode="best"),
        lambda: s.ReduceLROnPlateau(o, threshold_mode="best"), lambda: s.CyclicLR(3, 0.1, 1.0), lambda: s.CyclicLR(o, [0.1], 1.0),
        lambda: s.CyclicLR(o, 0.1, [1.0, 2.0, 3.0]), lambda: s.CyclicLR(o, 0.1, 1.0, mode="none"), lambda: s.CyclicLR(adagrad, 0.1, 1.0),
        lambda: s.OneCycleLR(3, 1.0, 5), lambda: s.OneCycleLR(o, 1.0), lambda: s.OneCycleLR(o, 1.0, 0), lambda: s.OneCycleLR(o, 1.0, 2.5),
        lambda: s.OneCycleLR(o, 1.0, epochs=0, steps_per_epoch=2), lambda: s.OneCycleLR(o, 1.0, epochs=1, steps_per_epoch=-2),
        lambda: s.OneCycleLR(o, 1.0, 5, pct_start=2), lambda: s.OneCycleLR(o, 1.0, 5, anneal_strategy="other"), lambda: s.OneCycleLR(o, [1.0], 5),
        lambda: s.OneCycleLR(adagrad, 1.0, 5), lambda: s.CosineAnnealingWarmRestarts(o, 0), lambda: s.CosineAnnealingWarmRestarts(o, 2, 0),
        lambda: s.CosineAnnealingWarmRestarts(o, 2, eta_min="a"), lambda: s.ChainedScheduler([]), lambda: s.ChainedScheduler([3], o),
        lambda: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), lambda: s.ChainedScheduler([s.StepLR(o, 1), s.StepLR(_optimizer(torch), 1)]),
        lambda: s.SequentialLR(o, [], []), lambda: s.SequentialLR(o, [3], []), lambda: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
        lambda: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []), lambda: s.SequentialLR(o, [s.StepLR(_optimizer(torch), 1)], []),
        lambda: swa.SWALR(o, [0.1]), lambda: swa.SWALR(o, 0.1, anneal_strategy="other"), lambda: swa.SWALR(o, 0.1, -1),
        lambda: swa.get_ema_avg_fn(2.0), lambda: swa.get_ema_multi_avg_fn(-1.0))
    o = _optimizer(torch)
    scheduler = s.OneCycleLR(o, 1.0, 2)
    log(lambda: scheduler.get_lr(), lambda: scheduler.step(), lambda: scheduler.step(), lambda: scheduler.step())
    o = _optimizer(torch)
    o.step()
    early = s.StepLR(o, 1)
    o.step()
    later = s.StepLR(o, 1)
    log(lambda: later.step(), lambda: early.step(), lambda: later.step())
    o = _optimizer(torch)
    scheduler = s.StepLR(o, 1)
    o.step = lambda: None
    log(lambda: scheduler.step(), lambda: scheduler.step())

    class Falling:
        def __init__(self):
            self.factor = 1.0

        def __call__(self, n):
            return self.factor

    one, two = Falling(), Falling()
    one.factor = 0.25
    saved = s.LambdaLR(_optimizer(torch), [one, lambda n: 1.0]).state_dict()
    scheduler = s.LambdaLR(_optimizer(torch), [two, lambda n: 1.0])
    log(lambda: saved["lr_lambdas"], lambda: scheduler.load_state_dict(saved), lambda: (two.factor, saved["lr_lambdas"]))


def averages(torch, log):
    nn, swa = torch.nn, torch.optim.swa_utils
    for options in ({}, {"avg_fn": swa.get_ema_avg_fn(0.5)}, {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.25)}, {"avg_fn": swa.get_swa_avg_fn()},
                    {"use_buffers": True}, {"use_buffers": True, "avg_fn": swa.get_ema_avg_fn(0.5)}, {"avg_fn": len, "multi_avg_fn": len}):
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        try:
            averaged = swa.AveragedModel(model, **options)
        except AssertionError as error:
            log.said.append(type(error).__name__)
            continue
        for i in range(4):
            for j, t in enumerate(model.state_dict().values()):
                t.fill_(i * i + j)
            averaged.update_parameters(model)
            log.numbers(averaged.state_dict())
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for j, t in enumerate(model.state_dict().values()):
        t.fill_(1 + j)
    batches = [torch.arange(6.0).reshape(3, 2), (torch.ones(2, 2), 7), [torch.arange(8.0).reshape(4, 2)]]
    model.eval()
    swa.update_bn(batches, model)
    log.numbers(dict(model.state_dict()))
    log(lambda: (model.training, model[1].momentum), lambda: swa.update_bn(3, nn.Linear(1, 1)))
