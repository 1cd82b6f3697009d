"""Mutants of the source of the rule tables: one operator, constant, name, term or branch changed in `symgrad/ops`, the module run again aside."""

import ast
import collections
import copy
import sys
import types
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import symgrad.ops
from symgrad.graph.op import REGISTRY
from tests.mutants.killing import Mutant, differentiable_ops, mutated

FOLDER = Path(symgrad.ops.__file__).parent
MODULES = ("arithmetic", "elementary", "neural", "reduction", "linalg", "shape", "arranging", "selection", "scatter", "rules")
RULES = ("forward", "vjp", "jvp")
RELATED = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh", "gt": "ge", "ge": "gt", "lt": "le", "le": "lt", "eq": "ne", "ne": "eq",
           "maximum": "minimum", "minimum": "maximum", "zeros_like": "ones_like", "ones_like": "zeros_like", "log": "log1p", "log1p": "log",
           "exp": "expm1", "expm1": "exp", "sqrt": "rsqrt", "rsqrt": "sqrt", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax",
           "logical_and": "logical_or", "logical_or": "logical_and", "diag": "tril", "place": "put"}
OPERATORS = {ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.Pow: [ast.Mult], ast.FloorDiv: [ast.Mult],
             ast.Mod: [ast.FloorDiv]}
COMPARISONS = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.In: ast.NotIn,
               ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}


class Change(NamedTuple):
    """One change of a module: its kind, where it is and what it says, and the module's tree with it."""

    kind: str
    what: str
    tree: ast.Module


def replacements(node, names):
    """What an expression may be replaced by, with the kind of the change; `names` are the arguments of the function around it."""
    if isinstance(node, ast.BinOp):
        for other in OPERATORS.get(type(node.op), ()):
            yield "operator", ast.BinOp(node.left, other(), node.right)
        yield "dropped term", node.left
        yield "dropped term", node.right
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield "dropped sign" if isinstance(node.op, ast.USub) else "condition", node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield "constant", ast.Constant(node.value + 1)
            if node.value:
                yield "constant", ast.UnaryOp(ast.USub(), node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        for other in names:
            if other != node.id:
                yield "name", ast.Name(other, ast.Load())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "condition", ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "condition", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.IfExp):
        yield "branch", node.body
        yield "branch", node.orelse
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "xp":
        if node.func.attr in RELATED:
            yield "function", ast.Call(ast.Attribute(node.func.value, RELATED[node.func.attr], ast.Load()), node.args, node.keywords)
        if node.args:
            yield "dropped call", node.args[0]


class _Sites(ast.NodeVisitor):
    """The paths to every expression inside a function or lambda, with the arguments of that function."""

    def __init__(self):
        self.found = []
        self.path = []
        self.names = []

    def generic_visit(self, node):
        inside = isinstance(node, (ast.FunctionDef, ast.Lambda))
        if isinstance(node, ast.FunctionDef) and "composite(" in "".join(map(ast.unparse, node.decorator_list)):
            return
        if inside:
            self.names.append([a.arg for a in node.args.args if a.arg not in ("xp", "needs")])
        if self.names and isinstance(node, ast.expr):
            self.found.append((tuple(self.path), self.names[-1]))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and inside or name == "func":
                continue
            for k, child in [(None, value)] if isinstance(value, ast.AST) else enumerate(value) if isinstance(value, list) else ():
                if isinstance(child, ast.AST):
                    self.path.append((name, k))
                    self.visit(child)
                    self.path.pop()
        if inside:
            self.names.pop()


def _at(tree, path):
    for name, k in path:
        tree = getattr(tree, name) if k is None else getattr(tree, name)[k]
    return tree


def _with(tree, path, new):
    """The tree with the expression at a path replaced; what is not on the path is shared."""
    out = copy.copy(tree)
    node = out
    for at, (name, k) in enumerate(path):
        last = at == len(path) - 1
        old = getattr(node, name)
        child = new if last else copy.copy(old if k is None else old[k])
        setattr(node, name, child if k is None else [*old[:k], child, *old[k + 1:]])
        node = child
    return out


def changes(module):
    """Every change of one module of `symgrad/ops`. It is named by the statement it is in, so that its name outlives other changes."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    sites = _Sites()
    sites.visit(tree)
    seen = collections.Counter()
    for path, names in sites.found:
        old = _at(tree, path)
        for kind, new in replacements(old, names):
            ast.copy_location(new, old)
            ast.fix_missing_locations(new)
            what = f"{module}.{_name_of(_at(tree, path[:1]))}: {ast.unparse(old)} -> {ast.unparse(new)}"
            seen[what] += 1
            yield Change(kind, what + (f" (#{seen[what]})" if seen[what] > 1 else ""), _with(tree, path, new))


def _name_of(statement):
    """What a top-level statement declares."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.args[0], ast.Constant):
        return str(statement.value.args[0].value)
    return getattr(statement, "name", "") or type(statement).__name__.lower()


def declared(module, tree=None):
    """The ops that the modules of `symgrad/ops` declare where one of them has another text; the registry is left as it is."""
    name = f"symgrad.ops.{module}"
    made = types.ModuleType(name)
    made.__dict__.update(__package__="symgrad.ops", __file__=str(FOLDER / f"{module}.py"))
    dependent = [m for m in MODULES[:-1] if m != module] if module == "rules" else []
    with mock.patch.dict(REGISTRY, clear=True), mock.patch.dict(sys.modules, {name: made}):
        exec(_code(module, tree), made.__dict__)
        for other in dependent:
            again = types.ModuleType(f"symgrad.ops.{other}")
            again.__dict__.update(__package__="symgrad.ops")
            exec(_code(other, None), again.__dict__)
        return dict(REGISTRY)


CODES = {}


def _code(module, tree):
    path = str(FOLDER / f"{module}.py")
    if tree is not None:
        return compile(tree, path, "exec")
    if module not in CODES:
        CODES[module] = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    return CODES[module]


def fingerprint(rule, seen=None):
    """What a rule's text says, with that of the functions it calls: two rules of one fingerprint do the same."""
    seen = set() if seen is None else seen
    if not isinstance(rule, types.FunctionType):
        return tuple(fingerprint(r, seen) for r in rule) if isinstance(rule, (tuple, list)) else repr(rule) if not callable(rule) else None
    if id(rule) in seen:
        return "again"
    seen.add(id(rule))
    cells = [c.cell_contents for c in rule.__closure__ or ()]
    called = [rule.__globals__[n] for n in _names(rule.__code__) if isinstance(rule.__globals__.get(n), types.FunctionType)
              and rule.__globals__[n].__module__.startswith("symgrad.ops")]
    return _text(rule.__code__), repr(rule.__defaults__), tuple(fingerprint(c, seen) for c in (*cells, *called))


def _names(code):
    return [*code.co_names, *(n for c in code.co_consts if isinstance(c, types.CodeType) for n in _names(c))]


def _text(code):
    """Code without the places it stands at."""
    return code.co_code, code.co_names, code.co_varnames, tuple(_text(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts)


def mutants_of_source(modules=MODULES, wanted=lambda what: True):
    """Every mutant of the text of the rules, or those whose names are wanted."""
    known = {op.name: op for op in differentiable_ops()}
    for module in modules:
        before = {name: [fingerprint(getattr(op, rule)) for rule in RULES] for name, op in declared(module).items() if name in known}
        for change in changes(module):
            if not wanted(change.what):
                continue
            try:
                after = declared(module, change.tree)
            except Exception:  # a table that cannot be read is no mutant of a rule
                continue
            made = []
            for name in before:
                if name in after:
                    touched = [rule for rule, old in zip(RULES, before[name]) if fingerprint(getattr(after[name], rule)) != old]
                    if touched:
                        made.append((known[name], mutated(known[name], **{rule: getattr(after[name], rule) for rule in touched})))
            if made:
                yield Mutant(change.kind, change.what, tuple(made))
