"""What is refused before anything is computed: what is no tensor, numbers beyond the range of a dtype, and devices."""

import functools
import inspect

import pytest

import symgrad
import symgrad as sg
from symgrad.engine.refusals import taking_tensors
from symgrad.graph.op import REGISTRY

F = sg.nn.functional
CALLS = {
    "bincount: input": lambda: sg.bincount(0.5), "bilinear: input2": lambda: F.bilinear(sg.ones(2, 3), [0, 1], sg.ones(2, 3, 3)),
    "block_diag: tensors": lambda: sg.block_diag(sg.ones(1, 1), 2.0), "exp_: input": lambda: sg.exp_(0.5),
    "linear: weight": lambda: F.linear(sg.ones(2), "none"), "mse_loss: target": lambda: F.mse_loss(sg.ones(2), 1),
    "nll_loss: target": lambda: F.nll_loss(sg.ones(2, 2), [0, 1]), "masked_fill: mask": lambda: sg.masked_fill(sg.ones(2), 3, 1.0),
}


@pytest.mark.parametrize("text", CALLS)
def test_an_argument_that_is_no_tensor_is_named(text):
    with pytest.raises(TypeError, match=text):
        CALLS[text]()


ONE_TOO_MANY = {name: op for name, op in REGISTRY.items()
                if op.kind == "elementwise" and op.surface.public and not op.parameters and op.arity in (1, 2)}


@pytest.mark.parametrize("home", [sg, sg.special, F, sg.Tensor], ids=["symgrad", "special", "functional", "Tensor"])
def test_an_argument_too_many_is_refused_and_not_written(home):
    """The functions of NumPy that compute take the array of the result at the end; here it has a name, `out`."""
    found = [(name, getattr(home, name)) for name in ONE_TOO_MANY if hasattr(home, name)]
    assert found
    for name, function in found:
        given = [sg.tensor([0.3, 0.7]) for _ in range(ONE_TOO_MANY[name].arity)]
        more = sg.tensor([7.0, 7.0])
        with pytest.raises((TypeError, RuntimeError)):  # RuntimeError where there is a flag `inplace`, which more than one element is not
            function(*given, more)
        assert more.tolist() == [7.0, 7.0] and [x.tolist() for x in given] == [[0.3, 0.7]] * len(given), name


IN_PLACE = {"elu": 2, "celu": 2, "selu": 1, "silu": 1, "mish": 1, "hardsigmoid": 1, "hardswish": 1, "hardtanh": 3, "leaky_relu": 2, "threshold": 3}


@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_refuse_an_argument_too_many(name):
    plain, values = getattr(F, name), [0.3, 0.9][:IN_PLACE[name] - 1]
    always = getattr(F, name + "_", None)
    x, y = sg.tensor([-1.3, 2.7]), sg.tensor([7.0, 7.0])
    calls = [lambda: plain(x, *values, False, 3), lambda: plain(x, *values, True, inplace=False), lambda: plain(x, *values, True, True),
             lambda: plain(x, out=y)]
    if always:
        calls += [lambda: always(x, *values, True), lambda: always(x, *values, out=y), lambda: always(x, *values, inplace=False)]
    for call in calls:
        with pytest.raises(TypeError, match=f"^{name}_?: (takes|got an unexpected)"):
            call()
    assert x.tolist() == [-1.3, 2.7] and y.tolist() == [7.0, 7.0]
    assert plain(x, *values, True) is x and x.tolist() == plain(sg.tensor([-1.3, 2.7]), *values).tolist()


ABSENT = {"utils.model_zoo": "symgrad.load", "distributed.rpc": "MPI", "optim.SparseAdam": "dense", "testing.assert_close": "numpy.testing",
          "utils.flop_counter": "cProfile", "autograd.profiler": "cProfile", "nn.quantized": "quantized", "utils.data.IterDataPipe": "Dataset",
          "cuda.amp": "dtypes", "quantization": "quantized", "cuda.Graph": "CPU"}


@pytest.mark.parametrize("name", ABSENT)
def test_an_absent_name_of_any_module_says_what_to_use(name):
    home = functools.reduce(getattr, name.split(".")[:-1], sg)
    with pytest.raises(AttributeError, match=f"^module '{home.__name__}' has no attribute .*: .*{ABSENT[name]}"):
        getattr(home, name.rpartition(".")[2])


def test_an_attribute_that_lacks_elsewhere_is_no_fault_of_the_arguments():
    @taking_tensors
    def function(input, factor=2):
        return input.numel() * object().missing

    assert list(inspect.signature(function).parameters) == ["input", "factor"]
    with pytest.raises(AttributeError, match="missing"):
        function(sg.ones(2))


MAKE = [lambda number, dtype: sg.scalar_tensor(number, dtype=dtype), lambda number, dtype: sg.tensor(number, dtype=dtype),
        lambda number, dtype: sg.full((), number, dtype=dtype), lambda number, dtype: sg.zeros((), dtype=dtype).fill_(number)]


@pytest.mark.parametrize("make", MAKE)
def test_numbers_beyond_the_range_of_a_dtype_are_refused(make):
    for number, dtype in ((300, sg.uint8), (-256, sg.uint8), (-1.0, sg.uint8), (-129, sg.int8), (2.0**63, sg.int64), (float("nan"), sg.int32),
                          (float("inf"), sg.int64)):
        with pytest.raises(RuntimeError, match="range"):
            make(number, dtype)
    for number, dtype, expected in ((-5, sg.uint8, 251), (-255, sg.uint8, 1), (-128, sg.int8, -128), (2.5, sg.int8, 2),
                                    (2**63 - 1, sg.int64, 2**63 - 1), (True, sg.uint8, 1)):
        assert make(number, dtype).item() == expected and make(number, dtype).dtype is dtype


def test_orders_of_norms_and_parameters_of_windows_may_be_tensors_without_dimensions():
    x = sg.tensor([3.0, 4.0])
    assert [sg.linalg.vector_norm(x, p).item() for p in (sg.tensor(1), sg.tensor(2.0), True, False)] == [7.0, 5.0, 7.0, 2.0]
    assert sg.linalg.norm(x, sg.tensor(1)).item() == 7 and sg.linalg.matrix_norm(sg.eye(2), sg.tensor(1)).item() == 1
    assert sg.equal(sg.hamming_window(4, True, sg.tensor(1), sg.tensor(0.5)), sg.hamming_window(4, True, 1.0, 0.5))
    for refused in (sg.tensor([1.0]), sg.tensor(1.0, requires_grad=True), [1.0]):
        with pytest.raises(TypeError):
            sg.linalg.vector_norm(x, refused)
        with pytest.raises(TypeError):
            sg.hamming_window(4, True, refused)


def test_integers_of_few_bits_do_not_wrap_around_in_glu():
    assert F.glu(sg.tensor([2, 255], dtype=sg.uint8)).item() == 2


@pytest.mark.parametrize("make", [
    lambda: symgrad.zeros(2, device="cuda"), lambda: symgrad.tensor([1.0], device="cuda:0"), lambda: symgrad.ones(2).to("cuda"),
    lambda: symgrad.ones(2).cuda(), lambda: symgrad.ones_like(symgrad.ones(2), device=symgrad.device("cuda")), lambda: symgrad.ones(2).cuda(0),
    lambda: symgrad.rand(2, device="cuda"), lambda: symgrad.cuda.synchronize(), lambda: symgrad.ones(2).type("torch.cuda.FloatTensor"),
    lambda: symgrad.arange(3, device="cuda"), lambda: symgrad.Generator("cuda"),
])
def test_a_gpu_is_refused_with_torchs_error_and_the_remedy(make):
    with pytest.raises(AssertionError, match=r"Torch not compiled with CUDA enabled.*device=\"cpu\".*is_available"):
        make()


def test_other_devices_are_refused():
    for where in ("mps", "meta", "xla:1"):
        with pytest.raises(RuntimeError, match=f"there are no {where.partition(':')[0]} devices.*CPU"):
            symgrad.zeros(2, device=where)
    with pytest.raises(RuntimeError, match="strided"):
        symgrad.zeros(2, layout=symgrad.sparse_coo)


def test_the_default_device_is_that_of_a_thread():
    try:
        symgrad.set_default_device("cuda")
        assert symgrad.get_default_device() == symgrad.device("cuda")
        with pytest.raises(AssertionError, match="CUDA"):
            symgrad.zeros(2)
        with symgrad.device("cpu"):
            assert symgrad.zeros(2).device.type == "cpu"
    finally:
        symgrad.set_default_device(None)
    with symgrad.device("cuda:1"), pytest.raises(AssertionError, match="cuda:1"):
        symgrad.tensor(1.0)
    assert symgrad.zeros(1).tolist() == [0.0]


def test_rand_is_below_one_in_every_dtype():
    for dtype in (symgrad.float16, symgrad.bfloat16, symgrad.float32, symgrad.float64):
        x = symgrad.rand(20000, dtype=dtype)
        assert x.dtype is dtype and float(x.max()) < 1 and float(x.min()) >= 0
