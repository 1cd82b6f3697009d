"""The state of a module as a dictionary of tensors: saving and loading, with errors that name every disagreement."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from symgrad.autograd.modes import no_grad
from symgrad.engine.tensor import Tensor
from symgrad.nn.parameter import Parameter

__all__ = ["IncompatibleKeys", "StateMixin"]

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """The names that are missing, and those that are unexpected."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


IncompatibleKeys = _IncompatibleKeys


class StateMixin:
    """The part of `Module` for its state."""

    _version = 1
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def get_extra_state(self) -> Any:
        """Further state of a subclass for the `state_dict`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Load the value of `get_extra_state`."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _persistent(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors of this module only that are part of its state."""
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                yield name, tensor

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the state of this module only."""
        for name, tensor in self._persistent():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not StateMixin.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Every parameter and persistent buffer by its name, sharing memory with the module.

        They are detached unless `keep_vars`. The names begin with `prefix`. The dictionary's `_metadata` holds the
        version of each module.

        >>> from symgrad import nn
        >>> list(nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, local_metadata: Mapping[str, Any], strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """Load the state of this module only; errors are added to the lists."""
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
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                              f"received {type(given)}")
            return
        if not tensor.ndim and given.shape == (1,):
            given = given[0]
        if given.shape != tensor.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current model is "
                              f"{tensor.shape}.")
            return
        if not assign:
            with no_grad():
                tensor.copy_(given)
        elif isinstance(tensor, Parameter):
            setattr(self, name, given if isinstance(given, Parameter) else Parameter(given, tensor.requires_grad))
        else:
            setattr(self, name, given)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copy the tensors of a `state_dict` into this module and those in it; return the missing and the unexpected names.

        With `strict` the names must agree exactly. With `assign` the tensors themselves become parameters and buffers, not their values.

        Raises RuntimeError that names every tensor of a wrong shape and, if `strict`, every missing or unexpected name; TypeError for
        a state that is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected = list[str](), list[str]()
        errors = list[str]()
        metadata = getattr(state_dict, "_metadata", {})

        def load(module: StateMixin, prefix: str) -> None:
            local = {**metadata.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
            mine = OrderedDict((key, value) for key, value in state_dict.items() if key.startswith(prefix))
            module._load_from_state_dict(mine, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")

        load(self, "")
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)
