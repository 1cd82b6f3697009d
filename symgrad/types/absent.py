"""Names of torch that are not here on purpose, each with the reason and what to use instead.

A module that has such names gives the reason by a `__getattr__` of its own, and the last of Python's finders gives it where one of them is imported.
`python symgrad/types/absent.py > examples/guide/absent.md` writes the page that lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["TABLES", "Absent", "Finder", "explained", "missing", "page"]


def _table(groups: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in groups.items() for name in names.split()}


class Absent:
    """A member of a class that is not there: it is not found by `hasattr`, and the AttributeError says why.

    >>> class Small:
    ...     big = Absent("big", "use small")
    >>> hasattr(Small, "big"), hasattr(Small(), "big")
    (False, False)
    """

    def __init__(self, name: str, reason: str):
        self.name, self.reason = name, reason

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}: {self.reason}")


_SPARSE = "there are no sparse tensors; use dense ones"
_QUANTIZED = "there are no quantized tensors; use floats"
_DEVICES = "the only device is the CPU, and NumPy computes; there is nothing to choose"

_CAST = "nothing is cast automatically; choose dtypes with .to(dtype)"
_KERNELS = "there are no compiled extensions; declare an op with symgrad.elementwise or symgrad.primitive, or call one by func.foreign"
_ONE_PRODUCT = "the product of a linear map is computed at once; there is nothing to choose"
_LAUNCHED = "MPI starts the processes and knows them; use mpiexec, and the backend \"mpi\""
_INSIDE = "it is a helper inside torch and no function of tensors"
_UPDATE = "make the optimizer, with differentiable=True for steps in the graph, or use swap_in_optimizer_params_and_state"
_SHARDED = "tensors are not divided by themselves; each process has its own"
_DEBUGGER = "use a debugger in one process, or print"

# By the place in torch, then by reason
TABLES = {"torch": _table({
    "it returns what its own derivative needs; use nn.functional.embedding_bag": "embedding_bag",
    "calls are recorded as they run; use if and while of Python": "cond while_loop",
    _SPARSE: """
        ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ row_indices_copy saddmm smm
        sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm sspaddmm
        values_copy""",
    _QUANTIZED: """
        ao quantization choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
        fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
        fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
        quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm
        quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell""",
    "it is a kernel of another backend; use the function of the same meaning in nn.functional": """
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable miopen_batch_norm miopen_convolution miopen_convolution_add_relu
        miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
        mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer native_norm batch_norm_backward_elemt
        batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats""",
    _CAST: """
        GradScaler amp autocast
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype
        get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_cache_enabled is_autocast_cpu_enabled
        is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled
        set_autocast_xla_dtype set_autocast_xla_enabled""",
    "it belongs to TorchScript and torch.export; use symgrad.compile": """
        ScriptModule compiler export fx jit
        fork import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema parse_type_comment
        sym_constrain_range sym_constrain_range_for_size sym_fresh_size unify_type_list wait""",
    _DEVICES: "Event OutOfMemoryError Stream get_device_module is_vulkan_available mtia",
    _KERNELS: "library",
    "nothing is downloaded; give load a file": "hub package",
    "sample with rand, randn and multinomial, and write log probabilities as formulas": "distributions",
    "use the processes of multiprocessing or symgrad.map; DataLoader has workers of its own": "futures multiprocessing",
    "there are no tensors of sequences; use nn.utils.rnn": "nested",
    "there are no tensors with masks; use where and masked_fill": "masked",
    "use cProfile, and symgrad.explain_nan for values": "monitor profiler",
    "define __array_function__ of NumPy, or a subclass of Tensor": "overrides",
    "use save and load of the module itself": "serialization",
    "use UntypedStorage and TypedStorage of the module itself": "storage",
    "there is no writer of ONNX; use to_python, to_c, to_jax or to_torch": "onnx",
    "use __version__": "torch_version version",
    "threads are those of NumPy's BLAS; set OMP_NUM_THREADS": """
        get_num_interop_threads get_num_threads init_num_threads set_num_interop_threads set_num_threads""",
    _INSIDE: """
        classproperty compiled_with_cxx11_abi get_file_path prepare_multiprocessing_environment
        profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 thread_safe_generator""",
    "torch has removed it; use linalg.eig": "eig",
    "torch has removed it; use linalg.lstsq": "lstsq",
    "torch has removed it; use linalg.matrix_rank": "matrix_rank",
    "torch has removed it; use linalg.solve": "solve",
    "torch has removed it; use linalg.eigh": "symeig",
}), "torch.Tensor": _table({
    _SPARSE: """
        ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced resize_as_sparse_ row_indices smm sparse_dim sparse_mask
        sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
        to_sparse_csc to_sparse_csr values""",
    _QUANTIZED: "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme",
    _DEVICES: "ipu mtia record_stream to_mkldnn xpu",
    "torch has removed it; use linalg.eig": "eig",
    "torch has removed it; use linalg.lstsq": "lstsq",
    "torch has removed it; use linalg.solve": "solve",
    "torch has removed it; use linalg.eigh": "symeig",
    "torch has removed it; use the log probability of the distribution in the loss": "reinforce",
    "processes do not share tensors; use multiprocessing.shared_memory and from_numpy": "share_memory_",
    "there are no first-class dimensions; index with x[...]": "index",
    "there is no complex dtype with half precision in NumPy; use .to(complex64)": "chalf",
}), "torch.nn": _table({
    _QUANTIZED: "intrinsic qat quantizable quantized",
    "its kernels are for GPUs; use nn.functional.scaled_dot_product_attention": "attention",
    _INSIDE: "backends cpp",
    _ONE_PRODUCT: "LinearCrossEntropyOptions",
}), "torch.nn.Module": _table({
    "use symgrad.compile of a function that calls the module": "compile",
    "processes do not share tensors; use DistributedDataParallel, or give each process a copy": "share_memory",
    _DEVICES: "ipu mtia xpu",
}), "torch.nn.functional": _table({
    "it is for numbers of eight bits and for GPUs; use matmul, with one product for each group":
        "ScalingType SwizzleType grouped_mm scaled_grouped_mm scaled_mm",
    _INSIDE: """
        Optional assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic""",
}), "torch.optim": _table({
    "there are no sparse gradients; use Adam": "SparseAdam sparse_adam",
}), **{f"torch.optim.{name}": {name: _UPDATE} for name in "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split()
}, "torch.types": _table({
    "use UntypedStorage and TypedStorage of the module symgrad": "Storage",
}), "torch.utils.tensorboard.SummaryWriter": _table({
    "GIF needs an encoder of its own; add the frames with add_images, or each with add_image and its step": "add_video",
    "draw the boxes with matplotlib, and add the figure with add_figure": "add_image_with_boxes",
    "ONNX is not read; add the module with add_graph": "add_onnx_graph",
    "draw the mesh with matplotlib, and add the figure with add_figure": "add_mesh",
}), "torch.distributed": _table({
    _LAUNCHED: """
        Backend BackendConfig DistBackendError DistError DistNetworkError DistStoreError FileStore HashStore PrefixStore ProcessGroupGloo
        QueueEmptyError Store TCPStore argparse_util constants default_pg_timeout elastic get_backend_config get_default_backend_for_device
        get_node_local_rank is_gloo_available is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available
        launch launcher monitored_barrier register_rendezvous_handler
        rendezvous run""",
    _SHARDED: "DeviceMesh device_mesh fsdp init_device_mesh pipelining tensor",
    "use new_group with the ranks": "GroupName get_pg_count new_subgroups new_subgroups_by_enumeration shrink_group split_group",
    "use all_reduce or all_gather for each tensor, with async_op=True to do several at once": "all_gather_coalesced all_reduce_coalesced",
    "use isend and irecv, and wait for each": "P2POp batch_isend_irecv",
    "it is a helper inside torch; collective calls have arguments": """
        AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions BuiltinCommHookType GatherOptions GradBucket
        ReduceOptions ReduceScatterOptions Reducer ScatterOptions all_gather_single reduce_scatter_single record_comm supports_complex""",
    _DEBUGGER: """
        DebugLevel Logger breakpoint c10d_logger debug flight_recorder get_debug_level logging_handlers set_debug_level set_debug_level_from_env""",
    "torch has renamed it; use ReduceOp": "reduce_op",
    "there are no remote calls; use send and recv, or the executor of mpi4py.futures": "autograd remote_device rpc",
    "each process has the whole state; use save in one of them": "checkpoint",
    "each process has the whole state; use the optimizers of optim": "optim",
    "collective calls have no derivatives; use DistributedDataParallel, or an autograd.Function that calls them": "nn",
    "each process needs as many batches; use DistributedSampler": "algorithms",
    _INSIDE: "collective_utils config utils",
}), "torch.nn.modules": _table({
    _ONE_PRODUCT: "LinearCrossEntropyOptions linear_cross_entropy linear_cross_entropy_options",
}), "torch.nn.parallel": _table({
    "the only device is the CPU, and threads share the module; use DataParallel": "comm parallel_apply replicate",
    "torch has renamed it; use DistributedDataParallel": "DistributedDataParallelCPU",
}), "torch.nn.utils.rnn": _table({
    _INSIDE: "PackedSequence_ bind",
}), "torch.utils": _table({
    _KERNELS: "cpp_extension file_baton hipify",
    "nothing is downloaded; give load a file": "model_zoo",
    "it measures kernels of torch; use timeit": "ThroughputBenchmark benchmark throughput_benchmark",
    "it is for devices of other vendors": "backend_registration generate_methods_for_privateuse1_backend rename_privateuse1_backend",
    _INSIDE: "backcompat cpp_backtrace debug_log get_cpp_backtrace jit set_module viz",
    "it belongs to TorchScript; use save and load, or to_c": "bundled_inputs mobile_optimizer model_dump show_pickle",
    "use the version of symgrad and numpy.show_config": "collect_env",
    "operations are not counted; use cProfile": "flop_counter",
    "use forward hooks of the modules": "module_tracker",
    "its kernels are those of another backend; use the modules of nn": "mkldnn",
    "use weakref.ref, and id(tensor) as a key": "weak",
    "memory of empty is not filled; use zeros": "deterministic",
    "assign .data, which keeps the tensor": "swap_tensors",
}), "torch.utils.dlpack": _table({
    "the device is that of NumPy's arrays; use from_dlpack": "DLDeviceType",
}), "torch.utils.hooks": _table({
    "use register_full_backward_hook of the module": "BackwardHook",
    "tensors are saved without their hooks": "warn_if_has_hooks",
}), "torch.utils.data": _table({
    "data pipes are no longer developed; use an IterableDataset": """
        DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation backward_compatibility datapipes functional_datapipe graph
        graph_settings guaranteed_datapipes_determinism non_deterministic runtime_validation runtime_validation_disabled""",
    _INSIDE: "_DatasetKind",
}), "torch.utils.tensorboard": _table({
    "SummaryWriter writes the files; use its methods": "FileWriter RecordWriter summary",
}), "torch.utils.checkpoint": _table({
    "use checkpoint": "CheckpointFunction DefaultDeviceType GraphExecGroup SAC_IGNORED_OPS",
    _INSIDE: "check_backward_validity detach_variable get_device_states set_device_states",
}), "torch.autograd": _table({
    "gradients have the layout that NumPy gives them": "enforce_grad_layout_policy",
    "use Function": "NestedIOFunction",
    "use cProfile, and symgrad.explain_nan for values": "profiler profiler_legacy profiler_util",
}), "torch.autograd.function": _table({
    "use Function": "FunctionMeta NestedIOFunction",
}), "torch.autograd.grad_mode": _table({
    "gradients have the layout that NumPy gives them": "enforce_grad_layout_policy",
}), "torch.autograd.gradcheck": _table({
    "torch has deprecated it; use gradcheck, or func.jacobian": "get_numerical_jacobian_wrt_specific_input",
}), "torch.autograd.graph": _table({
    "use utils.checkpoint where memory is short": "region_activation_memory_budget",
    "there are no streams; nothing is captured or can mismatch": "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch",
}), "torch.func": _table({
    "a value that a transform has wrapped is a tensor; read its value outside of the transform": "debug_unwrap",
    "symgrad.compile needs no such form; use it": "functionalize",
    "it is a helper of first-class dimensions; use permute and reshape": "rearrange",
    "make the modules with track_running_stats=False": "replace_all_batch_norm_modules_",
}), "torch.utils.tensorboard.writer": _table({
    "SummaryWriter writes the files; use its methods": "FileWriter",
}), "torch.utils.serialization": _table({
    "give load and save the arguments": "config",
}), "torch.testing": _table({
    "use numpy.testing.assert_allclose, which takes tensors": "assert_allclose assert_close",
    "make tensors with randn and randint": "make_tensor",
    _INSIDE: "FileCheck",
}), "torch.cuda": _table({
    _CAST: "amp",
    _DEVICES: "*",
}), **{f"torch.{name}": {"*": _DEVICES} for name in "accelerator backends cpu mps xpu".split()
}, **{f"torch.backends.{name}": {"*": _DEVICES} for name in "cpu cuda cudnn mha mkl mkldnn mps nnpack openmp opt_einsum".split()
}}


def _reason(module: str, name: str) -> str | None:
    table = TABLES.get("torch" + module.removeprefix("symgrad"), {})
    return table.get(name, None if name.startswith("_") else table.get("*"))


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module of the package does not have, with the reason if it is a name of torch.

    >>> missing("symgrad.optim", "SparseAdam")
    AttributeError("module 'symgrad.optim' has no attribute 'SparseAdam': there are no sparse gradients; use Adam")
    """
    reason = _reason(module, name)
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {reason}" if reason else ""))


def explained(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module, which raises `missing` for every name that is not there."""
    def __getattr__(name: str) -> Any:
        raise missing(module, name)

    return __getattr__


class Finder:
    """The last finder of imports: where an absent name is imported, or a module of that name, the error has the reason.

    Python asks finders for names of packages, which are modules with a `__path__`. A module in a single file has an empty one.

    >>> import symgrad.amp
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: module 'symgrad' has no attribute 'amp': nothing is cast automatically; choose dtypes with .to(dtype)
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Nothing is found; raises ModuleNotFoundError if there is a reason."""
        module, _, last = name.rpartition(".")
        if f"{module}.".startswith("symgrad.") and _reason(module, last):
            raise ModuleNotFoundError(str(missing(module, last)))


def page() -> str:
    """The page of all names, in Markdown."""
    lines = ["# Names of PyTorch that are absent", "",
             "You look for a name of PyTorch and do not find it. What is absent on purpose stands here, by modules.", ""]
    for place, table in TABLES.items():
        if table:
            lines += [f"## {place}", "", "| reason, and what to use instead | names |", "|---|---|"]
            for reason in dict.fromkeys(table.values()):
                names = ["every other name" if name == "*" else f"`{name}`" for name, given in table.items() if given == reason]
                lines.append(f"| {reason} | {' '.join(names)} |")
            lines.append("")
    return "\n".join([*lines, "## What can go wrong", "",
                      "A name that stands here raises an AttributeError with its reason, so that `hasattr` is False:",
                      "",
                      "```python", ">>> import symgrad as torch", ">>> hasattr(torch, \"autocast\")", "False", ">>> torch.autocast(\"cpu\")",
                      "Traceback (most recent call last):", "    ...", f"AttributeError: {missing('symgrad', 'autocast')}", "", "```", ""])


if __name__ == "__main__":
    print(page(), end="")
else:
    sys.meta_path.append(Finder)
