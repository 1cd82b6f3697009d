"""The state of a module as a dictionary of tensors: saving and loading, with errors that name every disagreement."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.graph.handles import Hook, RemovableHandle, add_hook
from symgrad.nn.modules.attributes import AttributesMixin
from symgrad.nn.parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """The names that are missing, and those that are unexpected."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class WrappedHook:
    """A hook that is called with its module first, which it does not keep alive, or without one."""

    def __init__(self, hook: Hook, module: Any = None):
        self.__setstate__((hook, module is not None, module))
        functools.update_wrapper(self, hook)

    def __call__(self, *args: Any) -> Any:
        if self.module is None:
            return self.hook(*args)
        module = self.module()
        if module is None:
            raise RuntimeError("hook: its module is no longer there")
        return self.hook(module, *args)

    def __getstate__(self) -> tuple[Hook, bool, Any]:
        return self.hook, self.module is not None, None if self.module is None else self.module()

    def __setstate__(self, state: tuple[Hook, bool, Any]) -> None:
        self.hook, with_module, module = state
        if with_module and module is None:
            raise RuntimeError("hook: its module is no longer there")
        self.module = weakref.ref(module) if with_module else None


class StateMixin(AttributesMixin):
    """The part of `Module` for its state."""

    _version = 1
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    def get_extra_state(self) -> Any:
        """Further state of a subclass for the `state_dict`."""
        raise RuntimeError(f"{type(self).__name__}: get_extra_state is not defined")

    def set_extra_state(self, state: Any) -> None:
        """Load the value of `get_extra_state`."""
        raise RuntimeError(f"{type(self).__name__}: set_extra_state is not defined")

    def _persistent(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors of this module only that are part of its state."""
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                yield name, tensor

    # Saving

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the state of this module only."""
        for name, tensor in self._persistent():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Every parameter and persistent buffer by its name, sharing memory with the module.

        They are detached unless `keep_vars`. The names begin with `prefix`. The dictionary's `_metadata` holds the
        version of each module. Positional arguments are deprecated.

        >>> from symgrad import nn
        >>> list(nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if args:
            warnings.warn("state_dict: positional arguments are deprecated; pass them by name", FutureWarning, stacklevel=2)
            given: Any = (*args, *(destination, prefix, keep_vars)[len(args):])
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            found = hook(self, destination, prefix, metadata)
            if found is not None and getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict: a post-hook must return None")
            destination = destination if found is None else found
        return destination

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before this module writes its state."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata) after this module wrote its state, which the hook may change in place.

        `state_dict` raises RuntimeError if the hook returns anything but None.
        """
        marked: Any = hook
        marked._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """As `register_state_dict_post_hook`; a dictionary that the hook of the outermost module returns replaces the state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("_register_state_dict_hook: the hook was registered by register_state_dict_post_hook")
        return add_hook(self._state_dict_hooks, hook)

    # Loading

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook before this module loads its state, with the module and with the arguments of `_load_from_state_dict`.

        The arguments are state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys and error_msgs; the hook may change them.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`; the hook is called with the module only if asked for."""
        return add_hook(self._load_state_dict_pre_hooks, WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call hook(module, incompatible_keys) after this module and those in it loaded their state.

        The hook may change the lists missing_keys and unexpected_keys in place, and must return None.
        """
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, local_metadata: Mapping[str, Any], strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """Load the state of this module only; errors are added to the lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        mine = dict(self._persistent())
        for name, tensor in mine.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, tensor, key, state_dict[key], bool(local_metadata.get("assign_to_params_buffers", False)), error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = type(self).set_extra_state is not StateMixin.set_extra_state
        if prefix + EXTRA in state_dict:
            if extra:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                unexpected_keys.append(prefix + EXTRA)
        elif extra and strict:
            missing_keys.append(prefix + EXTRA)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA:
                    first, dot, _ = key[len(prefix):].partition(".")
                    if first not in (self._modules if dot else mine):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, tensor: Tensor, key: str, given: Any, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(given, Tensor):
            error_msgs.append(f'"{key}" is a {type(given).__name__}, not a tensor')
            return
        if is_lazy(tensor) and is_lazy(given):
            return
        if not tensor.ndim and given.shape == (1,):
            given = given[0]
        if given.shape != tensor.shape:
            error_msgs.append(f'size mismatch for "{key}": its shape is {list(given.shape)}, and {list(tensor.shape)} in the module')
            return
        try:
            if not assign:
                with no_grad():
                    tensor.copy_(given)
            elif isinstance(tensor, Parameter):
                requires_grad = tensor.requires_grad
                setattr(self, name, given.requires_grad_(requires_grad) if isinstance(given, Parameter) else Parameter(given, requires_grad))
            else:
                setattr(self, name, given)
        except Exception as error:
            error_msgs.append(f'"{key}" cannot be copied: {error!r}')

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy the tensors of a `state_dict` into this module and those in it; return the missing and the unexpected names.

        With `strict` the names must agree exactly. With `assign` the tensors themselves become parameters and buffers, not their values;
        whether a parameter requires a gradient stays as it is.

        Raises RuntimeError that names every tensor of a wrong shape and, if `strict`, every missing or unexpected name; TypeError for
        a state that is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: the state must be a mapping, not {type(state_dict).__name__}")
        keys = _IncompatibleKeys([], [])
        errors = list[str]()
        metadata = getattr(state_dict, "_metadata", {})
        given: Any = OrderedDict(state_dict)  # hooks may change it
        given._metadata = metadata
        _load(self, given, "", metadata, assign, keys, errors)
        if strict:
            for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    errors.insert(0, f"{what} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in names) + ". ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return keys


def _load(module: StateMixin, given: Mapping[str, Any], prefix: str, metadata: Mapping[str, Any], assign: bool, keys: _IncompatibleKeys,
          errors: list[str]) -> None:
    """Load the part of a state whose names begin with a prefix into a module and those in it."""
    local = {**metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
    module._load_from_state_dict(given, prefix, local, True, *keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            start = f"{prefix}{name}."
            _load(child, {key: value for key, value in given.items() if key.startswith(start)}, start, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError("load_state_dict: a post-hook must return None; it may change the lists of keys in place")
