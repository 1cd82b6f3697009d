"""Programs that ask tensors about themselves and convert them, for `sides`."""



def devices(torch, log):
    d = torch.device
    log(lambda: d("cpu"), lambda: d("cuda:1"), lambda: str(d("cuda:1")), lambda: d("cuda", 1), lambda: d(type="cpu", index=0), lambda: d(d("cuda:1")),
        lambda: d("mps"), lambda: hash(d("cpu")) == hash(d("cpu")), lambda: d("cpu") == d("cpu:0"), lambda: d("cpu") == "cpu",
        lambda: d("cuda").index, lambda: d("cuda:0").type, lambda: d("cpu", index=None), lambda: d("cuda:0") in {d("cuda", 0): 1})
    log(lambda: d("foo"), lambda: d("cuda:-1"), lambda: d("cpu:x"), lambda: d("cuda:01"), lambda: d("cuda", -1), lambda: d(""),
        lambda: d("cuda:0", 1), lambda: d("CUDA"), lambda: d("cpu0"), lambda: d("cpu::0"), lambda: d("cu da"), lambda: d(3), lambda: f"{d('cpu')}")
    x = torch.ones(2)
    log(lambda: x.device, lambda: x.is_cuda, lambda: x.is_cpu, lambda: x.get_device(), lambda: x.layout, lambda: x.is_pinned(), lambda: x.cpu() is x,
        lambda: torch.strided, lambda: torch.contiguous_format, lambda: torch.channels_last, lambda: x.pin_memory(),
        lambda: torch.get_default_device(), lambda: isinstance(torch.strided, torch.layout), lambda: isinstance(torch.channels_last, torch.layout),
        lambda: x.is_sparse, lambda: x.is_meta)
    c = torch.cuda
    log(lambda: c.is_available(), lambda: c.device_count(), lambda: c.is_initialized(), lambda: c.manual_seed(1), lambda: c.manual_seed_all(1),
        lambda: c.empty_cache(), lambda: c.memory_allocated(), lambda: c.max_memory_reserved(), lambda: c.get_arch_list(),
        lambda: c.is_bf16_supported(), lambda: torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))


def to(torch, log):
    x, i = torch.ones(2, requires_grad=True), torch.tensor([1, 2])
    log(lambda: x.to(torch.float32), lambda: x.to(float), lambda: x.to(int), lambda: x.to(torch.device("cpu"), torch.float32), lambda: x.to(i),
        lambda: x.to("cpu", torch.float32, True, True), lambda: x.to(dtype=torch.float32, device="cpu"), lambda: x.to() is x, lambda: x.to(None) is x,
        lambda: x.to("cpu") is x, lambda: x.to(torch.float64) is x, lambda: x.to(copy=True) is x, lambda: x.to("cpu", copy=True),
        lambda: x.to(x) is x, lambda: x.to("float64"), lambda: x.to(torch.float64, torch.float32), lambda: x.to(torch.float32, copy=True),
        lambda: i.to(i, False, True) is i, lambda: i.to(torch.int64, True) is i, lambda: x.to("cpu", None) is x)
    log(lambda: x.float(), lambda: x.double() is x, lambda: x.half(), lambda: x.bfloat16(), lambda: x.long(), lambda: x.int(), lambda: x.short(),
        lambda: x.char(), lambda: x.byte(), lambda: x.bool(), lambda: x.cfloat(), lambda: x.cdouble(), lambda: x.type_as(i),
        lambda: x.type_as(x) is x)
    log(lambda: x.type(), lambda: i.type(), lambda: x.half().type(), lambda: x.bfloat16().type(), lambda: x.cfloat().type(), lambda: x.byte().type(),
        lambda: x.bool().type(), lambda: x.type(torch.FloatTensor), lambda: x.type("torch.LongTensor"), lambda: x.type(torch.int32),
        lambda: x.type("foo"), lambda: x.type(torch.DoubleTensor) is x, lambda: x.type(3), lambda: x.type(float) is x)
    y = x.to(torch.float32).double()
    (y * torch.tensor([3.0, 4.0])).sum().backward()
    log(lambda: x.grad)
    log(lambda: torch.tensor([1.7, -1.7, 300.0]).long(), lambda: torch.tensor([0.0, 0.5]).bool(), lambda: torch.tensor([1 + 2j]).to(torch.complex64))


def memory(torch, log):
    x = torch.arange(24.0).reshape(2, 3, 4)
    log(lambda: x.element_size(), lambda: x.itemsize, lambda: x.nbytes, lambda: x.stride(), lambda: x.stride(0), lambda: x.stride(-1),
        lambda: x.stride(5), lambda: x.size(), lambda: x.size(1), lambda: x.size(dim=-1), lambda: x.size(3), lambda: torch.tensor(1.0).size(0),
        lambda: x.numel(), lambda: x.dim(), lambda: x.nelement(), lambda: x.ndimension(), lambda: torch.ones(0, 3).stride(),
        lambda: torch.ones(3, 0, 2).stride(), lambda: torch.tensor(1.0).stride())
    v = x[1:, 2]
    log(lambda: v.storage_offset(), lambda: v.data_ptr() - x.data_ptr(), lambda: v.untyped_storage().data_ptr() == x.data_ptr(),
        lambda: v.untyped_storage().nbytes(), lambda: len(v.untyped_storage()), lambda: v.untyped_storage().size(),
        lambda: v.untyped_storage().device, lambda: x.detach().data_ptr() == x.data_ptr(), lambda: x.data.data_ptr() == x.data_ptr(),
        lambda: x.clone().data_ptr() == x.data_ptr(), lambda: torch.ones(0).data_ptr(), lambda: x.is_set_to(x), lambda: x.is_set_to(v),
        lambda: x.view(24).is_set_to(x), lambda: torch.tensor([1], dtype=torch.int16).untyped_storage(),
        lambda: torch.is_storage(x.untyped_storage()))
    log(lambda: x.is_contiguous(), lambda: x.contiguous() is x, lambda: x.permute(2, 0, 1).is_contiguous(),
        lambda: x.permute(2, 0, 1).contiguous().stride(), lambda: x.permute(2, 0, 1).clone().stride(),
        lambda: x.permute(2, 0, 1)[::2].clone().stride(), lambda: torch.ones(4, 1).expand(4, 3).clone().stride(),
        lambda: x.permute(2, 0, 1).clone(memory_format=torch.contiguous_format).stride(), lambda: x.permute(2, 0, 1).float().stride(),
        lambda: x.permute(2, 0, 1).exp().stride())
    i = torch.ones(2, 3, 4, 5)
    log(lambda: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride(), lambda: torch.empty(2, memory_format=torch.channels_last),
        lambda: torch.empty(2, memory_format=torch.preserve_format), lambda: torch.empty(2, memory_format=torch.contiguous_format).shape)
    log(lambda: i.contiguous(memory_format=torch.channels_last).stride(), lambda: i.clone(memory_format=torch.channels_last).stride(),
        lambda: i.to(memory_format=torch.channels_last).stride(), lambda: i.is_contiguous(memory_format=torch.channels_last),
        lambda: i.contiguous(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last),
        lambda: x.contiguous(memory_format=torch.channels_last), lambda: i[None].contiguous(memory_format=torch.channels_last_3d).stride(),
        lambda: i.float(memory_format=torch.channels_last).stride())


def dtypes(torch, log):
    names = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool")
    all_of_them = [getattr(torch, name) for name in names]
    log(*(lambda a=a, b=b: torch.promote_types(a, b) for a in all_of_them for b in all_of_them))
    log(*(lambda a=a, b=b: torch.can_cast(a, b) for a in all_of_them for b in all_of_them))
    log(*(lambda d=d: (torch.finfo(d), torch.finfo(d).bits, torch.finfo(d).dtype) for d in all_of_them))
    log(*(lambda d=d: (torch.iinfo(d), torch.iinfo(d).bits, torch.iinfo(d).max, torch.iinfo(d).dtype) for d in all_of_them))
    log(*(lambda d=d: (d.is_floating_point, d.is_complex, d.is_signed, d.itemsize) for d in all_of_them))
    log(lambda: torch.finfo(), lambda: torch.iinfo(3), lambda: torch.float32.to_complex(), lambda: torch.complex64.to_real(),
        lambda: torch.int32.to_complex(), lambda: torch.set_default_dtype(torch.int32), lambda: torch.set_default_dtype(torch.complex64),
        lambda: torch.get_default_dtype(), lambda: torch.finfo(torch.float64) == torch.finfo(torch.float64),
        lambda: isinstance(torch.float32, torch.dtype))
    values = [1, 1.5, True] + [torch.ones(shape, dtype=d) for d in all_of_them if d not in (torch.float16, torch.bfloat16) for shape in ((), (2,))]
    log(*(lambda a=a, b=b: torch.result_type(a, b) for a in values for b in values))
    log(*(lambda a=a: torch.result_type(a, 1j) for a in values))


def defaults(torch, log):
    for name in ("float32", "float16", "bfloat16"):
        torch.set_default_dtype(getattr(torch, name))
        log(lambda: torch.get_default_dtype(), lambda: torch.tensor([1.5]), lambda: torch.ones(2).dtype, lambda: torch.arange(0, 1, 0.5).dtype,
            lambda: (torch.tensor([1]) / 2).dtype, lambda: torch.tensor([1]) * 1.5 if name != "bfloat16" else None, lambda: torch.Tensor([1]),
            lambda: torch.tensor([1.5], dtype=torch.float64), lambda: torch.rand(2).dtype, lambda: torch.linspace(0, 1, 3),
            lambda: torch.full((1,), 2.5), lambda: torch.result_type(torch.tensor([1]), 1.5), lambda: torch.finfo())


def questions(torch, log):
    x, i, nan, inf = torch.ones(2), torch.tensor([1, 2]), float("nan"), float("inf")
    t = torch.tensor
    log(lambda: torch.is_tensor(x), lambda: torch.is_tensor(3), lambda: torch.is_floating_point(x), lambda: torch.is_complex(x),
        lambda: torch.is_nonzero(t(1)), lambda: torch.numel(x), lambda: torch.is_conj(x), lambda: torch.is_nonzero(x),
        lambda: torch.is_nonzero(t([])), lambda: torch.numel(3), lambda: torch.is_floating_point(3), lambda: x.is_signed(),
        lambda: x.byte().is_signed(), lambda: x.is_same_size(i), lambda: torch.typename(x), lambda: x.is_floating_point(), lambda: x.is_complex(),
        lambda: torch.is_same_size(x, i))
    log(lambda: torch.equal(x, i), lambda: torch.equal(x, torch.ones(2)), lambda: torch.equal(x, torch.ones(3)),
        lambda: torch.equal(t([nan]), t([nan])), lambda: torch.equal(x, x.float()), lambda: torch.equal(x, 3), lambda: x.equal(torch.ones(2)),
        lambda: torch.equal(x, torch.ones(1, 2)))
    log(lambda: torch.isclose(t([1.0]), t([1.0001]), rtol=-1), lambda: torch.isclose(t([1.0]), t([1.0001]), atol=-1),
        lambda: torch.isclose(t([nan, inf, inf]), t([nan, inf, -inf]), equal_nan=True),
        lambda: torch.isclose(t([nan, inf, 1e300]), t([nan, inf, inf])), lambda: torch.isclose(i, t([1, 3]), rtol=0.5),
        lambda: torch.isclose(t([1 + 1j]), t([1 + 1.000001j])), lambda: torch.isclose(torch.ones(2, 3), torch.ones(3)), lambda: torch.isclose(x, 1.0),
        lambda: torch.isclose(x, x.float()), lambda: torch.isclose(x, x + 1e-9), lambda: torch.isclose(x, x + 1e-4, atol=1e-3),
        lambda: torch.isclose(t([1.0]), t([1.0]), rtol=0, atol=0), lambda: torch.allclose(torch.ones(2, 3), torch.ones(3)),
        lambda: torch.allclose(x, x + 1), lambda: x.allclose(x + 1e-9), lambda: torch.allclose(t([nan]), t([nan])),
        lambda: torch.allclose(t([nan]), t([nan]), equal_nan=True))
    log(lambda: 1.0 in x, lambda: 3 in x, lambda: t(1.0) in x, lambda: x in [x], lambda: len(torch.ones(3, 2)), lambda: len(t(1)),
        lambda: bool(t([2])), lambda: bool(x), lambda: bool(t([])), lambda: list(t([1, 2])), lambda: f"{t(1.5):.3f}", lambda: f"{t([1.5])}",
        lambda: f"{t(3):5d}|", lambda: torch.broadcast_shapes((2, 1), (3,)),
        lambda: [y.shape for y in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))], lambda: hash(x) == hash(x), lambda: x == x.clone(),
        lambda: {x: 1}[x], lambda: iter(t(1)), lambda: float(t([2.5])), lambda: int(t(2.5)), lambda: complex(t(1.5)), lambda: [1, 2, 3][t(1)],
        lambda: float(x), lambda: x.tolist(), lambda: t(2).item())


def transposes(torch, log):
    m, b, v, s = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3, 4), torch.arange(2.0), torch.tensor(1.0)
    log(lambda: m.T, lambda: m.mT, lambda: m.H, lambda: m.mH, lambda: b.mT.shape, lambda: b.mH.shape, lambda: b.T.shape, lambda: s.T, lambda: v.mT,
        lambda: v.H, lambda: b.H, lambda: v.mH, lambda: s.mT, lambda: s.H, lambda: torch.tensor([[1j, 2]]).H, lambda: torch.tensor([[1j, 2]]).mH,
        lambda: m.T.data_ptr() == m.data_ptr())
