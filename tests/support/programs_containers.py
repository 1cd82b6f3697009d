"""Programs with modules that contain others, and their texts, for `sides`."""

from collections import OrderedDict


def sequential(torch, log):
    nn = torch.nn
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Tanh())
    log(lambda: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Identity())), lambda: s[5], lambda: s[-1], lambda: s[:2], lambda: s["a"],
        lambda: len(s), lambda: s + nn.Sequential(nn.Identity()), lambda: s + 3, lambda: nn.Sequential(nn.ReLU()) * 3,
        lambda: 2 * nn.Sequential(nn.ReLU()), lambda: s.append(3), lambda: s.insert(9, nn.ReLU()), lambda: s.insert(1, nn.Sigmoid()),
        lambda: (s.pop(1), s), lambda: s.extend([nn.ReLU()]), lambda: s.extend(3), lambda: nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh())),
        lambda: nn.Sequential(3), lambda: s.__imul__(2), lambda: (s.__delitem__(0), s), lambda: (s.__delitem__(slice(0, 2)), s),
        lambda: (s.__setitem__(0, nn.Identity()), s), lambda: s.__iadd__(nn.Sequential(nn.Softplus())), lambda: nn.Sequential(), lambda: list(s))
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    log(lambda: named.b, lambda: named[0], lambda: named[1:], lambda: nn.Sequential(named, nn.Sequential())(torch.tensor([-1.0, 0.0])))


def module_list(torch, log):
    nn = torch.nn
    m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
    log(lambda: m, lambda: nn.ModuleList(), lambda: m[7], lambda: m(1), lambda: m + [nn.ReLU()], lambda: m.extend(nn.ReLU()), lambda: m.extend(3),
        lambda: m.append(nn.ReLU()), lambda: m.insert(0, nn.Tanh()), lambda: m, lambda: m.pop(0), lambda: m[1:3], lambda: (m.__delitem__(0), m),
        lambda: (m.__delitem__(slice(0, 2)), m), lambda: m.__iadd__([nn.ReLU()]), lambda: "0" in dir(m), lambda: m["a"], lambda: nn.ModuleList([3]),
        lambda: nn.ModuleList(3), lambda: len(m), lambda: [type(x).__name__ for x in m], lambda: (m.__setitem__(-1, nn.Tanh()), m),
        lambda: nn.ModuleList([nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())]))


def module_dict(torch, log):
    nn = torch.nn
    d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    log(lambda: d, lambda: d["z"], lambda: d.pop("a"), lambda: (list(d.keys()), d.items(), d.values()), lambda: d.update([("c", nn.ReLU())]),
        lambda: d.update(3), lambda: d.update([3]), lambda: d.update([(1, 2, 3)]), lambda: d.update({"z": 3}), lambda: "b" in d, lambda: d(1),
        lambda: d.__setitem__(3, nn.ReLU()), lambda: d.__setitem__("keys", nn.ReLU()), lambda: d.update(nn.ModuleDict({"q": nn.Tanh()})),
        lambda: (len(d), list(d)), lambda: d.__delitem__("q"), lambda: (d.clear(), d), lambda: nn.ModuleDict())


def parameter_list(torch, log):
    nn = torch.nn
    p = nn.ParameterList([torch.ones(2, 3), nn.Parameter(torch.ones(())), 3, "foo"])
    log(lambda: p, lambda: p[9], lambda: [name for name, _ in p.named_parameters()], lambda: p.append(torch.zeros(1)),
        lambda: p.extend(torch.zeros(1)), lambda: p.extend(3), lambda: p[1:], lambda: p(1), lambda: p.__iadd__([torch.ones(1)]), lambda: len(p),
        lambda: (p.__setitem__(0, torch.zeros(1)), p), lambda: [type(x).__name__ for x in p], lambda: list(p.state_dict()),
        lambda: nn.ParameterList(), lambda: p[-2], lambda: nn.ParameterList([torch.ones(2, dtype=torch.long)]))


def parameter_dict(torch, log):
    nn = torch.nn
    p = nn.ParameterDict({"b": torch.ones(2, 3), "a": nn.Parameter(torch.ones(())), "n": 3, "q": "foo"})
    log(lambda: p, lambda: p["z"], lambda: p[3], lambda: (len(p), list(p), list(p.keys()), list(p.values())),
        lambda: [name for name, _ in p.named_parameters()], lambda: list(p.items())[0], lambda: list(reversed(p)), lambda: p.pop("n"),
        lambda: p.pop("n"), lambda: p.setdefault("c", torch.zeros(1)), lambda: p.setdefault("c"), lambda: p.setdefault("none"),
        lambda: p.get("zz", 4), lambda: p.get("q"), lambda: p.popitem(), lambda: p.copy(), lambda: p.copy() is p, lambda: p.copy()["b"] is p["b"],
        lambda: p.fromkeys(["x", "y"], 7), lambda: p.update([3]), lambda: p.update([(1, 2, 3)]), lambda: p.update(torch.ones(3, 3)),
        lambda: p.update(OrderedDict(z=torch.ones(1), y=torch.ones(1))), lambda: (list(p), p.update(nn.ParameterDict({"w": 1})), list(p)),
        lambda: list(p | nn.ParameterDict({"b": 1, "new": 2})), lambda: p | {"v": 1}, lambda: p.__ior__({"v": 1}),
        lambda: (p.__delitem__("b"), list(p)),
        lambda: p.__delitem__("b"), lambda: "w" in p, lambda: "b" in p, lambda: p(1), lambda: (p.clear(), p), lambda: nn.ParameterDict(),
        lambda: nn.ParameterDict(3 * [("a", torch.ones(1))]), lambda: p.popitem())


def printing(torch, log):
    nn = torch.nn
    log(lambda: [nn.Identity(3, a=2), nn.Flatten(), nn.Flatten(0, 2), nn.ReLU(True), nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.Softplus(),
                 nn.Softplus(2.0, 10), nn.Softmax(1), nn.Softmax(), nn.LogSoftmax(0), nn.LogSigmoid(), nn.MSELoss(), nn.L1Loss(), nn.BCELoss(),
                 nn.BCEWithLogitsLoss(), nn.NLLLoss(), nn.CrossEntropyLoss(), nn.Linear(2, 3, bias=False)],
        lambda: list(nn.BCEWithLogitsLoss(pos_weight=torch.ones(1)).state_dict()), lambda: list(nn.NLLLoss(weight=torch.ones(1)).state_dict()))

    class Described(nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    class Both(Described):
        def __init__(self):
            super().__init__()
            self.inner, self.gone = nn.Sequential(nn.ReLU()), None
            self.add_module("later", None)

    log(lambda: Described(), lambda: Both(), lambda: nn.Sequential(Both()))
