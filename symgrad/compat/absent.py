"""Names of PyTorch that are absent on purpose: families by pattern, each with what to use instead. The guide page `absent.md` lists them."""

from __future__ import annotations

from fnmatch import fnmatchcase

# Patterns of names, and what to use instead; names of submodules are written with dots
FAMILIES = {
    "sparse_*_tensor sparse_compressed* *_indices_copy values_copy indices_copy hspmm dsmm hsmm saddmm smm spmm sspaddmm resize_as_sparse_":
        "tensors are dense; use symgrad.sparse for matrices of SciPy",
    "ao quantization quantize* quantized* dequantize fake_quantize* fbgemm* choose_qparams* fused_moving* empty_quantized int_repr q_*":
        "tensors are not quantized; use floats",
    "cudnn_* miopen_* mkldnn_* batch_norm_* native_norm embedding_bag":
        "kernels have no names of their own; use the function of nn.functional",
    "amp *autocast* GradScaler": "nothing is cast automatically; choose dtypes with .to(dtype)",
    "jit fx export compiler Script* import_ir_module* parse_* fork wait unify_type_list merge_type* sym_constrain* sym_fresh* cond while_loop":
        "calls are recorded as they run; use symgrad.compile",
    "Event Stream OutOfMemoryError get_device_module is_vulkan_available mtia": "the only device is the CPU; leave the device out",
    "library classes utils.cpp_extension": "declare an op with symgrad.elementwise or symgrad.primitive, or call your own by func.foreign",
    "hub package utils.model_zoo": "nothing is downloaded; give symgrad.load a file",
    "distributions": "sample with rand, randn, multinomial and random.gamma, and write log probabilities as formulas",
    "futures multiprocessing": "use Python's multiprocessing, symgrad.map, or the workers of utils.data.DataLoader",
    "nested": "tensors are rectangular; use nn.utils.rnn for sequences",
    "masked": "tensors have no masks; use where and masked_fill",
    "monitor profiler autograd.profiler* utils.benchmark utils.flop_counter": "use cProfile and timeit, and symgrad.explain_nan for values",
    "overrides": "define __array_function__ of NumPy, or a subclass of Tensor",
    "serialization storage": "use save, load, UntypedStorage and TypedStorage of symgrad",
    "onnx": "use to_python, to_c, to_jax or to_torch",
    "version torch_version utils.collect_env": "use symgrad.__version__ and numpy.show_config",
    "*_num_threads *_num_interop_threads": "threads are those of NumPy's BLAS; set OMP_NUM_THREADS",
    "eig lstsq matrix_rank solve symeig": "PyTorch has removed it; use symgrad.linalg",
    "testing.assert_* testing.make_tensor": "use numpy.testing.assert_allclose, which takes tensors, and randn",
    "optim.SparseAdam": "gradients are dense; use optim.Adam",
    "utils.data.*Pipe utils.data.datapipes": "use a Dataset or an IterableDataset",
    "distributed.rpc distributed.*Store distributed.fsdp distributed.tensor distributed.launch":
        "processes are those of MPI, and tensors are whole in each; start with mpiexec, and use send, recv and DistributedDataParallel",
}


def advice(name: str) -> str | None:
    """What to use instead of a name of torch; None if the name is in no family.

    >>> advice("autocast")
    'nothing is cast automatically; choose dtypes with .to(dtype)'
    """
    return next((sentence for patterns, sentence in FAMILIES.items() if any(fnmatchcase(name, pattern) for pattern in patterns.split())), None)


def missing(module: str, name: str, sentence: str | None = None) -> AttributeError:
    """The error for a name that a module does not have, with what to use instead."""
    sentence = sentence or advice(name)
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {sentence}" if sentence else ""))
