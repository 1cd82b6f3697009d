"""Programs with the initialization of tensors, for `sides`."""


def fan_and_gain(torch, log):
    init = torch.nn.init
    log(*(lambda name=name: init.calculate_gain(name) for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "foo")),
        lambda: init.calculate_gain("leaky_relu", 0.3), lambda: init.calculate_gain("leaky_relu", "x"),
        lambda: init.calculate_gain("leaky_relu", True), lambda: init.xavier_uniform_(torch.zeros(3)),
        lambda: init.kaiming_normal_(torch.zeros(2, 2), mode="fan"),
        lambda: init.eye_(torch.zeros(2, 3)), lambda: init.kaiming_uniform_(torch.zeros(0, 2)),
        lambda: init.constant_(torch.zeros(2), 3), lambda: init.ones_(torch.zeros(1, 2)),
        lambda: init.zeros_(torch.ones(2)), lambda: init.eye_(torch.zeros(3)), lambda: torch.nn.Linear(0, 2))
    p = torch.nn.Parameter(torch.zeros(2))
    log(lambda: init.constant_(p, 2.0) is p, lambda: p, lambda: p.requires_grad)


def errors(torch, log):
    init = torch.nn.init
    flat, cube = torch.zeros(3), torch.zeros(3, 2, 2)
    log(lambda: init.dirac_(torch.zeros(2, 2)), lambda: init.dirac_(torch.zeros(3, 3, 3), groups=2), lambda: init.orthogonal_(flat),
        lambda: init.sparse_(cube, 0.5), lambda: init.xavier_normal_(flat), lambda: init.kaiming_uniform_(flat), lambda: init.eye_(cube),
        lambda: init.uniform_(flat, 2.5, 1.5), lambda: init.normal_(flat, 0.0, -1.0), lambda: init.kaiming_normal_(cube, nonlinearity="foo"),
        lambda: init.orthogonal_(torch.zeros(0, 3)), lambda: init.kaiming_normal_(torch.zeros(2, 0)),
        lambda: init._calculate_correct_fan(cube, "FAN_OUT"), lambda: init._calculate_correct_fan(cube, "in"),
        lambda: init._calculate_fan_in_and_fan_out(cube), lambda: init._calculate_fan_in_and_fan_out(flat))


def deprecated_names(torch, log):
    init = torch.nn.init
    log(lambda: init.constant(torch.zeros(2), 3), lambda: init.eye(torch.ones(2, 2)), lambda: init.uniform(torch.zeros(1), 2.0, 2.0),
        lambda: init.normal(torch.zeros(1), 5.0, 0.0), lambda: init.dirac(torch.zeros(1, 1, 3)), lambda: init.sparse(torch.zeros(2, 1), 1.0),
        lambda: init.orthogonal(torch.zeros(1, 1)).abs(), lambda: init.xavier_uniform(torch.ones(1, 1), gain=0.0).abs(),
        lambda: init.xavier_normal(torch.ones(1, 1), gain=0.0).abs(), lambda: init.kaiming_uniform(torch.zeros(0, 1)),
        lambda: init.kaiming_normal(torch.zeros(0, 1)), lambda: init.kaiming_normal.__name__)


def dirac(torch, log):
    init = torch.nn.init
    for shape, groups in (((3, 2, 3), 1), ((2, 3, 2), 1), ((4, 2, 3), 2), ((2, 2, 3, 4), 1), ((2, 1, 2, 3, 3), 2), ((3, 2, 1), 3)):
        log.numbers(init.dirac_(torch.full(shape, 7.0), groups))


def dtypes(torch, log):
    init = torch.nn.init
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex128):
        x = torch.ones(4, 4, 3, dtype=dtype, requires_grad=True)
        for name in ("uniform_", "normal_", "dirac_", "ones_", "xavier_uniform_", "kaiming_normal_"):
            fill = getattr(init, name)
            log(lambda: (fill(x) is x, x.requires_grad, x.is_leaf, x.dtype, x.shape))
