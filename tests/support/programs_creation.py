"""Programs that make tensors, for `sides`: what is made, what is refused, and what is warned of."""

from functools import partial

import numpy as np


def out(torch, log):
    t = torch.tensor([1])
    log(lambda: torch.zeros((3, 3), out=t), lambda: t, lambda: torch.zeros(2, out=t) is t, lambda: t.shape)
    for make in (lambda o: torch.zeros(3, out=o), lambda o: torch.ones(3, out=o), lambda o: torch.full((3,), 2.0, out=o),
                 lambda o: torch.arange(3, out=o), lambda o: torch.linspace(0, 1, 3, out=o), lambda o: torch.logspace(0, 1, 3, out=o),
                 lambda o: torch.eye(2, out=o), lambda o: torch.zeros(2, out=o, requires_grad=True), 
                 lambda o: torch.zeros(2, dtype=torch.int64, out=o),
                 lambda o: torch.zeros(2, out=3), lambda o: torch.zeros(2, out=o, device="cpu", layout=torch.strided)):
        for given in (torch.ones(1), torch.ones(0), torch.ones(4), torch.ones(1, requires_grad=True)):
            log(partial(make, given))
    log(lambda: torch.arange(1.5, out=torch.ones(1, dtype=torch.long)), lambda: torch.full((2,), 1.5, out=torch.ones(1, dtype=torch.long)),
        lambda: torch.linspace(0, 1, 3, out=torch.ones(1, dtype=torch.long)), lambda: torch.zeros(3, 2, out=torch.ones(2, 3).t()).stride(),
        lambda: torch.zeros(2, 2, out=torch.ones(3, 2).t()).stride(), lambda: torch.zeros_like(torch.ones(2), out=torch.ones(1)))
    x = torch.ones(4)
    y, address = x[1:3], x.data_ptr()
    log(lambda: torch.zeros(2, out=x), lambda: x.data_ptr() == address, lambda: y, lambda: x._version)
    with torch.no_grad():
        w = torch.ones(2, requires_grad=True)
        log(lambda: torch.zeros(2, out=w))


def sizes(torch, log):
    log(lambda: torch.zeros(2, 3), lambda: torch.zeros((2, 3)), lambda: torch.zeros([2, 3], dtype=int), lambda: torch.zeros(size=(2,)),
        lambda: torch.zeros(()), lambda: torch.zeros(torch.tensor(3)), lambda: torch.zeros((torch.tensor(3), 2)).shape,
        lambda: torch.zeros(np.int64(2)), lambda: torch.zeros(0, 2), lambda: torch.zeros(torch.Size([2])), lambda: torch.zeros(2.5),
        lambda: torch.zeros("a"), lambda: torch.zeros(None), lambda: torch.zeros(True), lambda: torch.zeros(), lambda: torch.ones(-1),
        lambda: torch.ones(2, -1), lambda: torch.zeros(2, foo=3), lambda: torch.full(2, 3), lambda: torch.zeros(2, dtype=torch.float16),
        lambda: torch.zeros(2, dtype=float), lambda: torch.empty(2, 0, requires_grad=True),
        lambda: torch.ones(2, requires_grad=True, dtype=torch.int64), lambda: torch.ones(2, dtype=torch.complex64, requires_grad=True),
        lambda: torch.zeros(2, pin_memory=True), lambda: torch.zeros(2, device="foo"), lambda: torch.zeros(2, device="cpu:1").device)


def filled(torch, log):
    log(lambda: torch.full((2,), True), lambda: torch.full((2,), 1j), lambda: torch.full((2,), 3), lambda: torch.full((2,), torch.tensor(3.0)),
        lambda: torch.full([], 3.0), lambda: torch.full((2,), 3, dtype=torch.float32), lambda: torch.full((2,), torch.tensor([3.0])),
        lambda: torch.full((2,), torch.tensor(3.0, requires_grad=True)), lambda: torch.scalar_tensor(3),
        lambda: torch.scalar_tensor(3, dtype=torch.int64), lambda: torch.eye(2, 3, dtype=torch.bool), lambda: torch.eye(0), lambda: torch.eye(2, -1),
        lambda: torch.eye(-2), lambda: torch.eye(3, 2), lambda: torch.tril_indices(3, 3), lambda: torch.triu_indices(3, 4, 1),
        lambda: torch.tril_indices(3, 4, -1), lambda: torch.tril_indices(-1, 2), lambda: torch.tril_indices(3, 3, dtype=torch.int32),
        lambda: torch.tril_indices(3, 3, dtype=torch.float32), lambda: torch.triu_indices(2, 0))
    log(lambda: torch.empty_strided((2, 3), (1, 2)).stride(), lambda: torch.empty_strided((2, 3), (1,)), lambda: torch.empty_strided((2, 3), (-1, 2)),
        lambda: torch.empty_strided((2, 3), (0, 1)).shape, lambda: torch.empty_strided((0, 3), (3, 1)).shape)


def ranges(torch, log):
    log(lambda: torch.arange(3), lambda: torch.arange(0), lambda: torch.arange(3.5), lambda: torch.arange(0, 1, 0.1), lambda: torch.arange(1, 2, 0.1),
        lambda: torch.arange(True), lambda: torch.arange(torch.tensor(3)), lambda: torch.arange(start=1, end=3), lambda: torch.arange(end=3),
        lambda: torch.arange(5, 0, -2), lambda: torch.arange(1, 0), lambda: torch.arange(0, 1, 0), lambda: torch.arange(0, float("inf")),
        lambda: torch.arange(0, float("nan")), lambda: torch.arange(3, dtype=torch.float16), lambda: torch.arange(2.0, requires_grad=True),
        lambda: torch.arange(-1.0, 1.0, 0.3), lambda: torch.arange(0, 3, 1.0), lambda: torch.range(0, 3), lambda: torch.range(0, 1, 0.5))
    log(lambda: torch.linspace(0, 1, 5), lambda: torch.linspace(0, 1, 4), lambda: torch.linspace(0, 1, 1), lambda: torch.linspace(0, 1, 0),
        lambda: torch.linspace(0, 1, -1), lambda: torch.linspace(0, 10, 5, dtype=torch.int64), lambda: torch.linspace(0, 1j, 3),
        lambda: torch.linspace(torch.tensor(0.0), 1, 3), lambda: torch.linspace(3, -2, 7), lambda: torch.linspace(0, 1, 3, dtype=torch.float32),
        lambda: torch.logspace(0, 2, 3), lambda: torch.logspace(0, 2, 3, base=2), lambda: torch.logspace(0, 2, -3), lambda: torch.logspace(-1, 1, 5))
    log.numbers(torch.arange(0, 1, 0.1), torch.arange(1, 2, 0.1), torch.arange(-1.0, 1.0, 0.3), torch.linspace(0, 1, 7), torch.linspace(3, -2, 11))


def data(torch, log):
    log(lambda: torch.tensor([1, 2.5]), lambda: torch.tensor([True, 2]), lambda: torch.tensor([1, 1j]), lambda: torch.tensor([]),
        lambda: torch.tensor([[]]), lambda: torch.tensor(range(3)), lambda: torch.tensor([torch.tensor(1.0), 2.0]),
        lambda: torch.tensor(np.float32(1)), lambda: torch.tensor(np.ones(2, np.float32)), lambda: torch.tensor(300, dtype=torch.uint8),
        lambda: torch.tensor(-1, dtype=torch.uint8), lambda: torch.tensor(1.7, dtype=torch.int64), lambda: torch.tensor(1j, dtype=torch.float32),
        lambda: torch.tensor([[1, 2], [3]]), lambda: torch.tensor([[[1], [2]], [[3], [4, 5]]]), lambda: torch.tensor([1e400]),
        lambda: torch.tensor([1], requires_grad=True), lambda: torch.tensor(torch.ones(2, requires_grad=True)),
        lambda: torch.tensor([1.5], dtype=torch.bool), lambda: torch.tensor(2, pin_memory=True), lambda: torch.tensor(np.ones((2, 3)).T).stride(),
        lambda: torch.tensor(np.ones(4)[::2]).stride())
    log(lambda: torch.as_tensor([1, 2]), lambda: torch.as_tensor(np.ones(2), dtype=torch.float32), lambda: torch.asarray([1, 2]),
        lambda: torch.asarray(np.ones(2), copy=True), lambda: torch.frombuffer(bytearray(8), dtype=torch.int32), lambda: torch.from_numpy(3),
        lambda: torch.from_numpy(np.float64(2)), lambda: torch.from_numpy(np.ones(3, ">f8")))
    a = np.arange(4.0)
    t = torch.from_numpy(a)
    a[0] = 9.0
    t[1] = 7.0
    log(lambda: t, lambda: a, lambda: t.numpy()[1:].base is not None, lambda: torch.as_tensor(a).data_ptr() == t.data_ptr(),
        lambda: torch.as_tensor(t) is t, lambda: torch.asarray(t) is t, lambda: torch.asarray(t, copy=True).data_ptr() == t.data_ptr(),
        lambda: torch.asarray(a).data_ptr() == t.data_ptr(), lambda: torch.ones(2, requires_grad=True).numpy())


def like(torch, log):
    x = torch.ones(2, 3)
    log(lambda: torch.zeros_like(x), lambda: torch.ones_like(x, dtype=torch.int64), lambda: torch.full_like(x, 3),
        lambda: torch.full_like(x.long(), 3.5), lambda: torch.ones_like(x, requires_grad=True), lambda: torch.empty_like(x.t()).stride(),
        lambda: torch.zeros_like(x.t()).stride(), lambda: torch.zeros_like(x.t(), memory_format=torch.contiguous_format).stride(),
        lambda: torch.ones_like([1]), lambda: torch.zeros_like(x, layout=torch.strided, device="cpu", pin_memory=False).shape,
        lambda: torch.rand_like(x.long()), lambda: torch.randn_like(x.long()), lambda: torch.randint_like(x, 1, 2),
        lambda: torch.randint_like(x, 3).dtype, lambda: torch.full_like(x, True), lambda: torch.zeros_like(torch.ones(4, 6)[::2, ::3]).stride(),
        lambda: torch.zeros_like(torch.ones(3, 1).expand(3, 2)).stride())


def chance(torch, log):
    g = torch.Generator()
    log(lambda: g.initial_seed(), lambda: g.device, lambda: g.manual_seed(3) is g, lambda: g.initial_seed(),
        lambda: torch.manual_seed(-1).initial_seed(), lambda: torch.manual_seed(1.5).initial_seed(), lambda: torch.initial_seed(),
        lambda: torch.manual_seed(2**64), lambda: torch.manual_seed("a"), lambda: torch.get_rng_state().dtype, lambda: g.get_state().dtype,
        lambda: torch.set_rng_state(3), lambda: torch.seed() > 0)
    log(lambda: torch.equal(torch.rand(3, generator=g.manual_seed(1)), torch.rand(3, generator=g.manual_seed(1))),
        lambda: torch.equal(torch.randn(3, generator=g), torch.randn(3, generator=g)), lambda: torch.rand(2, 3).shape,
        lambda: torch.randn((2, 3)).shape, lambda: torch.rand(size=(2,)).shape, lambda: torch.rand(2, dtype=torch.int64),
        lambda: torch.randn(2, dtype=torch.int64), lambda: torch.rand(2, requires_grad=True).requires_grad,
        lambda: torch.randn(2, dtype=torch.complex64).dtype, lambda: torch.rand(2, dtype=torch.float16).dtype,
        lambda: torch.rand(2, out=torch.ones(1)).shape)
    log(lambda: torch.randint(3, (2,)).dtype, lambda: torch.randint(0, 3, (2,), dtype=torch.float32).dtype, lambda: torch.randint(3, 3, (2,)),
        lambda: torch.randint(high=3, size=(2,)).shape, lambda: torch.randint(0, 3, (2,), requires_grad=True), lambda: torch.randint(5, 6, (2, 2)),
        lambda: torch.randperm(4).sort().values, lambda: torch.randperm(-1), lambda: torch.randperm(3, dtype=torch.float32).dtype,
        lambda: torch.randperm(0))
    log(lambda: torch.normal(torch.zeros(2), -1.0), lambda: torch.normal(0, 1, (2,)).shape, lambda: torch.normal(0.0, torch.ones(2)).shape,
        lambda: torch.normal(torch.zeros(2, 2), torch.ones(2)).shape, lambda: torch.normal(torch.zeros(2), 0.0),
        lambda: torch.normal(torch.zeros(2), 0.0, out=torch.ones(1)), lambda: torch.normal(1.0, 0.0, (2,), out=torch.ones(1)))
    log(lambda: torch.bernoulli(torch.tensor([0.0, 1.0])), lambda: torch.bernoulli(torch.tensor([0.0, 1.0]), 0.0),
        lambda: torch.bernoulli(torch.tensor([1])), lambda: torch.bernoulli(torch.tensor([0.0, 1.0]), 1.0),
        lambda: torch.multinomial(torch.tensor([0.0, 1.0]), 1), lambda: torch.multinomial(torch.tensor([0.0, 1.0]), 2),
        lambda: torch.multinomial(torch.tensor([0.0, 1.0]), 2, True), lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 1),
        lambda: torch.multinomial(torch.ones(2), 3), lambda: torch.multinomial(torch.tensor([-1.0, 1.0]), 1),
        lambda: torch.multinomial(torch.tensor([1, 1]), 1), lambda: torch.multinomial(torch.tensor(1.0), 1),
        lambda: torch.multinomial(torch.ones(2), 0), lambda: torch.multinomial(torch.ones(2, 3), 2).shape, lambda: torch.poisson(torch.zeros(2)),
        lambda: torch.multinomial(torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), 1))
    torch.manual_seed(5)
    state = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.rand(3)
    log(lambda: torch.equal(torch.get_rng_state(), state))
    a = torch.rand(3)
    torch.set_rng_state(state)
    b = torch.rand(3)
    log(lambda: torch.equal(a, b), lambda: torch.equal(torch.rand(3), a))
    h = torch.Generator()
    h.set_state(g.get_state())
    log(lambda: torch.equal(torch.rand(3, generator=g), torch.rand(3, generator=h)))


def filled_in_place(torch, log):
    x = torch.ones(2, requires_grad=True)
    t = torch.tensor
    log(lambda: x.normal_(), lambda: torch.empty(2).normal_(0, -1), lambda: torch.empty(2).normal_(3.0, 0.0), lambda: torch.empty(2).uniform_(1, 0),
        lambda: torch.empty(2).long().uniform_(), lambda: torch.empty(2).long().normal_(), lambda: torch.empty(2).uniform_(2, 2),
        lambda: torch.empty(50).long().random_(3).max() < 3, lambda: torch.empty(5).random_(2, 3), lambda: torch.empty(5).random_(3, 3),
        lambda: torch.empty(3).byte().random_().dtype, lambda: torch.empty(2).byte().random_(300), lambda: torch.empty(3).bernoulli_(2),
        lambda: torch.empty(3).bernoulli_(1), lambda: torch.empty(3).bernoulli_(t([0.0, 1.0, 0.0])), lambda: torch.empty(2).long().bernoulli_(1.0),
        lambda: torch.empty(3).exponential_(0), lambda: torch.empty(3).long().exponential_(), lambda: torch.empty(3).geometric_(0),
        lambda: torch.empty(3).log_normal_(0, -1), lambda: torch.empty(3).cauchy_(0, -1), lambda: torch.empty(2).uniform_()._version,
        lambda: torch.empty(2, dtype=torch.float32).normal_().dtype, lambda: torch.empty(2, 3).exponential_().shape,
        lambda: torch.empty(2).random_().max() <= 2**53)
    y = x * 3
    y.uniform_()
    y.sum().backward()
    log(lambda: y.requires_grad, lambda: x.grad)


def old(torch, log):
    log(lambda: torch.Tensor(2, 3).shape, lambda: torch.Tensor([1, 2]), lambda: torch.Tensor((1, 2)), lambda: torch.Tensor(),
        lambda: torch.Tensor(3).shape, lambda: torch.Tensor(torch.Size([2, 3])).shape, lambda: torch.Tensor(torch.ones(2)),
        lambda: torch.Tensor(torch.ones(2, dtype=torch.int64)), lambda: torch.Tensor(2.5), lambda: torch.Tensor(np.ones(2)),
        lambda: torch.Tensor("a"), lambda: torch.Tensor(-1), lambda: torch.Tensor(device="cpu"), lambda: torch.Tensor(True),
        lambda: torch.Tensor(None), lambda: torch.Tensor([]), lambda: torch.Tensor([True, False]), lambda: torch.Tensor([1j]),
        lambda: torch.Tensor(range(3)), lambda: torch.Tensor(data=[1, 2]), lambda: torch.Tensor([[1, 2], [3]]), lambda: torch.Tensor(size=(2,)).shape)
    log(lambda: torch.FloatTensor(2, 3).dtype, lambda: torch.FloatTensor([1, 2]), lambda: torch.LongTensor([1.5]), lambda: torch.BoolTensor([1, 0]),
        lambda: torch.IntTensor([1]), lambda: torch.DoubleTensor(np.ones(2)), lambda: torch.ByteTensor([1]), lambda: torch.HalfTensor([1]),
        lambda: torch.FloatTensor(), lambda: torch.FloatTensor(2.5), lambda: torch.IntTensor(np.array([1.5])), lambda: torch.ShortTensor([1]),
        lambda: torch.CharTensor([1]), lambda: torch.BFloat16Tensor([1]))
    log(lambda: isinstance(torch.ones(2), torch.FloatTensor), lambda: isinstance(torch.ones(2), torch.DoubleTensor), lambda: torch.FloatTensor,
        lambda: torch.FloatTensor.dtype, lambda: issubclass(torch.FloatTensor, torch.Tensor), lambda: isinstance(3, torch.IntTensor),
        lambda: torch.cuda.FloatTensor)
    x = torch.ones(2)
    log(lambda: x.new(3).shape, lambda: x.new([1, 2]), lambda: x.new_tensor([1, 2]), lambda: x.new_tensor(torch.ones(2)),
        lambda: x.long().new_tensor([1.5]), lambda: x.float().new_tensor([1]), lambda: x.long().new_zeros(2),
        lambda: x.new_zeros((2, 3), dtype=torch.int64, requires_grad=False), lambda: x.new_ones(2, 3), lambda: x.new_full((2,), 3),
        lambda: x.new_full((2,), 3, dtype=torch.int64), lambda: x.new_empty((2, 3)).shape, lambda: x.new_empty(2, 3).shape,
        lambda: x.new_empty_strided((2, 3), (1, 2)).stride(), lambda: x.new_zeros(2, requires_grad=True), lambda: x.new_zeros(),
        lambda: x.new_full(2, 3), lambda: x.new_ones(size=(2,)), lambda: x.new_tensor([1.0], requires_grad=True))
