"""Grad modes as context managers, functions and decorators."""

import asyncio
import weakref

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.system.restoring import collection_paused


def leaf(*values):
    return tensor(values[0] if len(values) == 1 else list(values), requires_grad=True)


class TestModes:

    @pytest.mark.parametrize("decorator", [lambda: symgrad.no_grad(), lambda: symgrad.no_grad, lambda: symgrad.set_grad_enabled(False),
                                           lambda: symgrad.inference_mode(), lambda: symgrad.inference_mode],
                             ids=["no_grad()", "no_grad", "set_grad_enabled", "inference_mode()", "inference_mode"])
    def test_decorators(self, decorator):
        @decorator()
        def double(x, *, times=1):
            """Twice."""
            assert not symgrad.is_grad_enabled()
            return double(x, times=0) if times else 2 * x

        assert symgrad.is_grad_enabled()
        assert not double(leaf(1.0), times=1).requires_grad and double.__name__ == "double" and double.__doc__ == "Twice."
        assert symgrad.is_grad_enabled() and not symgrad.is_inference_mode_enabled()

    @pytest.mark.parametrize("decorator", [lambda: symgrad.no_grad, lambda: symgrad.set_grad_enabled(False), symgrad.inference_mode],
                             ids=["no_grad", "set_grad_enabled", "inference_mode"])
    def test_a_generator_function_runs_in_the_mode_and_its_caller_does_not(self, decorator):
        log = []

        @decorator()
        def numbers(count):
            for i in range(count):
                assert not symgrad.is_grad_enabled()
                try:
                    log.append((yield i))
                except KeyError as error:
                    log.append(repr(error))
                except GeneratorExit:
                    log.append("closed" if not symgrad.is_grad_enabled() else "closed in another mode")
                    raise
            return "end"

        steps = numbers(4)
        for call in (lambda: next(steps), lambda: steps.send("sent"), lambda: steps.throw(KeyError("thrown"))):
            call()
            assert symgrad.is_grad_enabled()
        steps.close()
        assert symgrad.is_grad_enabled() and log == ["sent", "KeyError('thrown')", "closed"]
        with symgrad.no_grad(), pytest.raises(StopIteration) as error:
            last = symgrad.enable_grad()(lambda: (yield symgrad.is_grad_enabled()))()
            assert next(last)
            last.send("given")
        assert error.value.value == "given"

    def test_an_error_thrown_into_a_generator_does_not_keep_its_tensors(self):
        held = []

        @symgrad.no_grad()
        def steps():
            x = tensor(1.0)
            held.append(weakref.ref(x))
            yield x

        running = steps()
        next(running)
        with collection_paused():
            with pytest.raises(ValueError, match="^thrown$"):
                running.throw(ValueError("thrown"))
            del running
            assert held[0]() is None

    def test_a_coroutine_runs_in_the_mode_and_others_do_not(self):
        seen = []

        @symgrad.no_grad()
        async def without():
            for _ in range(2):
                seen.append(symgrad.is_grad_enabled())
                await asyncio.sleep(0)
            return "end"

        async def both():
            async def other():
                for _ in range(2):
                    seen.append(symgrad.is_grad_enabled())
                    await asyncio.sleep(0)

            return await asyncio.gather(without(), other())

        assert asyncio.run(both()) == ["end", None] and seen == [False, True] * 2

    def test_decorated_classes_warn_and_asynchronous_generators_are_refused(self):
        with pytest.warns(FutureWarning, match="decorating a class is deprecated"):
            decorated = symgrad.no_grad()(dict)
        assert decorated(a=1) == {"a": 1}
        with pytest.raises(TypeError, match="no_grad: an asynchronous generator cannot be decorated"):
            @symgrad.no_grad()
            async def numbers():
                yield 1

    def test_set_multithreading_enabled(self):
        assert symgrad.autograd.is_multithreading_enabled()
        with symgrad.autograd.set_multithreading_enabled(False):
            assert not symgrad.autograd.is_multithreading_enabled()
            symgrad.autograd.set_multithreading_enabled(True)
            assert symgrad.autograd.is_multithreading_enabled()
        assert symgrad.autograd.is_multithreading_enabled()
        symgrad.autograd.set_multithreading_enabled(False)(lambda: None)()
        assert symgrad.autograd.is_multithreading_enabled()

    def test_set_grad_enabled_as_a_function(self):
        symgrad.set_grad_enabled(False)
        try:
            assert not symgrad.is_grad_enabled() and not (2 * leaf(1.0)).requires_grad
            with symgrad.set_grad_enabled(True):
                assert symgrad.is_grad_enabled()
            assert not symgrad.is_grad_enabled()
        finally:
            symgrad.set_grad_enabled(True)
        assert symgrad.is_grad_enabled()


CHAINS = {"view": (lambda b: b.view(-1), ["ViewBackward0"]), "transposed": (lambda b: b.t().view(3, 2), ["ViewBackward0", "TBackward0"]),
          "part": (lambda b: b.unsqueeze(0).select(1, 1)[:, 1:], ["SliceBackward0", "SelectBackward0", "UnsqueezeBackward0"])}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("written", ["view", "base"])
def test_nodes_of_views_by_the_operations_that_made_them(name, written):
    chain, names = CHAINS[name]
    found = {}
    for replay in (False, True):
        with autograd._force_original_view_tracking(replay):
            assert autograd.is_view_replay_enabled() is replay
            x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
            base = x * x
            view = chain(base)
            (view if written == "view" else base).mul_(2.0)
            (view * view).sum().backward(retain_graph=True)
            shown, node = [], view.grad_fn
            while replay and len(shown) < len(names):
                shown.append(node.name())
                node = node.next_functions[0][0]
            found[replay] = x.grad.tolist()
            assert shown == names * replay and (replay or view.grad_fn.name() == "AsStridedBackward0")
    assert found[True] == found[False] and not autograd.is_view_replay_enabled()
    autograd._force_original_view_tracking(True)(lambda: None)()
    assert not autograd.is_view_replay_enabled()
