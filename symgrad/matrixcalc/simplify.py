"""Simplification of the normal form: contraction of deltas, collection of equal terms, cancellation of inverses, common factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd, lcm
from typing import Any

import sympy

from symgrad.matrixcalc.pairings import contract_pairings, inverse_of_kronecker
from symgrad.matrixcalc.terms import ONE, ZERO, Applied, AxisLength, Delta, Factor, Index, Sum, Term, rename_indices, term_key, with_lengths

MOST_TERMS = 12  # the most terms for a search of common factors


def simplify(total: Sum, unwrap: bool = True) -> Sum:
    """A sum with simplified heads, contracted deltas and collected equal terms; with `unwrap`, a bracket that is the only factor is expanded."""
    return Sum(total.out, _collect([found for term in total.terms for found in _simplify_term(term, total.out, unwrap)], total.out))


def _collect(terms: Sequence[Term], out: Sequence[Index]) -> tuple[Term, ...]:
    places = {index: f"o{n}" for n, index in enumerate(out)}
    found: dict[str, Term] = {}
    for term in terms:
        key = term_key(term, places)
        before = found.get(key)
        found[key] = term if before is None else Term(before.coefficient + term.coefficient, before.factors)
    return tuple(t for t in found.values() if t.coefficient != 0)


def _simplify_term(term: Term, out: Sequence[Index], unwrap: bool) -> list[Term]:
    """A simplified term, as a list: several terms for a single bracketed sum, none for zero."""
    coefficient, factors = term.coefficient, list(term.factors)
    done: list[Factor] = []
    while factors:
        f = factors.pop(0)
        scale, replaced = _simplify_factor(f)
        coefficient *= scale
        if replaced:
            lost = with_lengths(Term(ONE, (*done, *factors, *replaced)), f.indices, out).factors[len(done) + len(factors) + len(replaced):]
            replaced = [*replaced, *lost]
        if replaced is None:
            done.append(f)
        elif len(replaced) == 1 and type(replaced[0].head) is type(f.head) and replaced[0].head.kind == f.head.kind:
            done.append(replaced[0])
        else:
            factors = replaced + factors
    if coefficient == 0:
        return []
    done = _contract(done, out)
    while True:
        cancelled = _cancel_inverse(done, out)
        if cancelled is None:
            break
        done = _contract(cancelled, out)
    if unwrap and len(done) == 1 and isinstance(done[0].head, Applied) and done[0].head.function is None and done[0].power == 1 and not \
            [i for i in done[0].indices if i not in out] and len(set(done[0].indices)) == len(done[0].indices):
        return [Term(coefficient * t.coefficient, t.factors) for t in done[0].head.argument.rename(done[0].indices)]
    return [Term(coefficient, tuple(done))]


def _simplify_factor(f: Factor) -> tuple[Any, list[Factor] | None]:
    """A number and simpler factors whose product equals a factor; None in place of the factors if it cannot be simplified."""
    head, indices, power = f
    if isinstance(head, AxisLength) and head.dimension.parts:
        return ONE, [Factor(AxisLength(part), (), power) for part in head.dimension.parts]
    if head.argument is None:
        return ONE, None
    argument = _mark_simplified(head.argument if "is_simplified" in head.argument.__dict__ else simplify(head.argument))
    if isinstance(head, Applied) and head.function is not None or head.kind in ("cholesky", "det", "logdet"):
        return ONE, None if argument is head.argument else [Factor(head.of(argument), indices, power)]
    content = _content(argument, signed=power.is_Integer or head.kind == "inverse")
    if not argument.terms:
        return ZERO, []
    terms = tuple(Term(t.coefficient / content, t.factors) for t in argument.terms)
    if head.kind == "inverse":
        if len(terms) == 1 and len(terms[0].factors) == 1 and isinstance(terms[0].factors[0].head, Delta):
            return content**-power, [Factor(terms[0].factors[0].head, indices, power)]
        if len(terms) == 1 and len(terms[0].factors) == 1 and terms[0].factors[0].head.kind == "inverse" and terms[0].factors[0].power == 1:
            inner = terms[0].factors[0]
            order = [argument.out.index(i) for i in inner.indices]
            return content**-power, [Factor(Applied(None, inner.head.argument), tuple(indices[k] for k in order), power)]
        separate = inverse_of_kronecker(Sum(argument.out, terms), indices) if power == 1 else None
        if separate is not None:
            return content**-power, separate
        if argument is head.argument and content == 1:
            return ONE, None
        return content**-power, [Factor(head.of(_mark_simplified(Sum(argument.out, terms))), indices, power)]
    if len(terms) == 1:
        bound = terms[0].indices() - set(argument.out)
        if power == 1 or power.is_Integer and not bound or len(terms[0].factors) <= 1 and not bound and all(g.power == 1 for g in terms[0].factors):
            (only,) = Sum(argument.out, terms).rename(indices)
            return content**power, [Factor(g.head, g.indices, g.power * power) for g in only.factors]
    if argument is head.argument and content == 1:
        return ONE, None
    return content**power, [Factor(Applied(None, _mark_simplified(Sum(argument.out, terms))), indices, power)]


def _mark_simplified(total: Sum) -> Sum:
    total.__dict__["is_simplified"] = True
    return total


def _content(total: Sum, signed: bool) -> Any:
    """The greatest common divisor of the coefficients of a sum; with `signed`, with the sign of the first term."""
    numbers = [t.coefficient for t in total.terms]
    if not numbers or not all(n.is_Rational for n in numbers):
        return ONE
    size = sympy.Rational(gcd(*(int(abs(n.p)) for n in numbers)), lcm(*(int(n.q) for n in numbers)))
    return -size if signed and numbers[0] < 0 else size


def _contract(factors: Sequence[Factor], out: Sequence[Index]) -> list[Factor]:
    """The factors after all sums over deltas and pairings, with equal ones combined to a power."""
    found = _merge_powers(_contract_deltas(factors, out), out)
    fewer = contract_pairings(found, out)
    return found if fewer is None else _contract(fewer, out)


def _contract_deltas(factors: Sequence[Factor], out: Sequence[Index]) -> list[Factor]:
    """The factors after the contraction of all deltas with an index outside the output."""
    factors = list(factors)
    n = 0
    while n < len(factors):
        head, indices, power = factors[n]
        if not isinstance(head, Delta):
            n += 1
            continue
        i, k = indices
        rest = factors[:n] + factors[n + 1:]
        if i is k:
            used = i in out or any(i in f.indices for f in rest)
            factors = rest if used else [*rest, Factor(AxisLength(i.dimension))]
            n = 0
        elif i not in out or k not in out:
            old, new = (i, k) if i not in out else (k, i)
            factors = [Factor(f.head, tuple(new if x is old else x for x in f.indices), f.power) for f in rest]
            n = 0
        else:
            if any(k in f.indices for f in rest):
                replaced = [Factor(f.head, tuple(i if x is k else x for x in f.indices), f.power) for f in rest]
                factors = [*replaced[:n], factors[n], *replaced[n:]]
                n = -1
            n += 1
    return factors


def _merge_powers(factors: Sequence[Factor], out: Sequence[Index]) -> list[Factor]:
    """The factors with equal ones combined to a power."""
    found: dict[Any, Factor] = {}
    for f in factors:
        ids = tuple(map(id, f.indices))
        key = f.head.key, tuple(sorted(ids)) if f.head.symmetric else ids
        before = found.get(key)
        found[key] = f if before is None else Factor(before.head, before.indices, ONE if f.head.is_indicator else before.power + f.power)
    kept = tuple(f for f in found.values() if f.power != 0)
    return list(with_lengths(Term(ONE, kept), [i for f in factors for i in f.indices], out).factors)


# Inverses


def _cancel_inverse(factors: Sequence[Factor], out: Sequence[Index]) -> list[Factor] | None:
    """The factors with one product A⁻¹ A replaced by a delta; None if there is none."""
    for n, f in enumerate(factors):
        if f.head.kind != "inverse" or f.power != 1:
            continue
        rest = [g for k, g in enumerate(factors) if k != n]
        matrix = _product_of(f.head.argument)
        for end in (0, 1):
            shared, other = f.indices[1 - end], f.indices[end]
            if shared in out or sum(shared in g.indices for g in rest) != 1 or shared is other:
                continue
            for place in (0, 1) if f.head.symmetric else (1 - end,):
                start, free = matrix.out[1 - place], matrix.out[place]
                for used, mapping in _embeddings(matrix.terms[0].factors, {start: shared}, rest, set()):
                    inner = [mapping[i] for g in matrix.terms[0].factors for i in g.indices if i not in matrix.out]
                    left = [g for k, g in enumerate(rest) if k not in used]
                    if any(i in out or any(i in g.indices for g in left) for i in inner) or mapping[free] in inner:
                        continue
                    return [*left, Factor(Delta(other.dimension), (other, mapping[free]))]
    return None


def _product_of(matrix: Sum) -> Sum:
    """A matrix as one product; a sum becomes a bracket."""
    if len(matrix.terms) == 1:
        return matrix
    return Sum(matrix.out, (Term(ONE, (Factor(Applied(None, matrix), matrix.out),)),))


def _embeddings(pattern: Sequence[Factor], mapping: dict[Index, Index], factors: Sequence[Factor],
              used: set[int]) -> Iterator[tuple[set[int], dict[Index, Index]]]:
    """The matches of all factors of a pattern with other factors: the used factors, and the mapping of indices."""
    if not pattern:
        yield used, mapping
        return
    f = next((g for g in pattern if any(i in mapping for i in g.indices)), pattern[0])
    rest = [g for g in pattern if g is not f]
    for n, g in enumerate(factors):
        if n in used or g.power != f.power or len(g.indices) != len(f.indices) or g.head.key != f.head.key:
            continue
        for indices in _orders(g):
            found = _consistent(mapping, f.indices, indices)
            if found is not None:
                yield from _embeddings(rest, found, factors, used | {n})


def _orders(f: Factor) -> list[tuple[Index, ...]]:
    return [f.indices, f.indices[::-1]] if f.head.symmetric and len(f.indices) == 2 else [f.indices]


def _consistent(mapping: Mapping[Index, Index], old: Sequence[Index], new: Sequence[Index]) -> dict[Index, Index] | None:
    """The mapping extended by old to new indices; None if it would not be one-to-one."""
    found = dict(mapping)
    for a, b in zip(old, new):
        if found.setdefault(a, b) is not b or any(v is b and k is not a for k, v in found.items()):
            return None
    return found


# Common factors


def factor(total: Sum, last: bool = False) -> Sum:
    """A sum with common factors extracted, the largest set first; of equally large sets the first one, or the `last`."""
    terms = list(total.terms)
    if len(terms) > MOST_TERMS:
        return total
    while True:
        best: tuple[int, int, int, dict[int, int], dict[Index, Index]] | None = None
        for a in range(len(terms)):
            for b in range(a + 1, len(terms)):
                pairs, mapping = _common(terms[a], terms[b], total.out, last)
                if pairs and (best is None or len(pairs) > best[0]):
                    best = len(pairs), a, b, pairs, mapping
        if best is None:
            return total if len(terms) == len(total.terms) else simplify(Sum(total.out, tuple(terms)))
        _, a, b, pairs, mapping = best
        terms[a] = _join_terms(terms[a], terms.pop(b), pairs, mapping, total.out)


def _common(first: Term, second: Term, out: Sequence[Index], last: bool) -> tuple[dict[int, int], dict[Index, Index]]:
    """The matches of factors of the second term with those of the first, and the mapping of indices."""
    best: tuple[dict[int, int], dict[Index, Index]] = {}, {}
    fixed = {i: i for i in out}

    def grow(pairs: dict[int, int], mapping: dict[Index, Index]) -> None:
        nonlocal best
        if len(pairs) >= len(best[0]) + (not last) and _keeps_products(first, set(pairs.values()), out) and _keeps_products(second, set(pairs), out):
            best = pairs, mapping
        for m, g in enumerate(second.factors):
            if m in pairs:
                continue
            for n, f in enumerate(first.factors):
                if n in pairs.values() or f.power != g.power or len(f.indices) != len(g.indices) or f.head.key != g.head.key:
                    continue
                if isinstance(f.head, Delta):
                    continue
                for indices in _orders(f):
                    found = _consistent(mapping, g.indices, indices)
                    if found is not None:
                        grow({**pairs, m: n}, found)
                        return

    for m, g in enumerate(second.factors):
        for n, f in enumerate(first.factors):
            if f.power == g.power and len(f.indices) == len(g.indices) and f.head.key == g.head.key and not isinstance(f.head, Delta):
                for indices in _orders(f):
                    found = _consistent(fixed, g.indices, indices)
                    if found is not None:
                        grow({m: n}, found)
    return best


def _keeps_products(term: Term, removed: set[int], out: Sequence[Index]) -> bool:
    """Whether no scalar product is split by the removal of some factors."""
    left = set(range(len(term.factors)))
    while left:
        part, edge = set(), {left.pop()}
        while edge:
            part |= edge
            indices = {i for n in edge for i in term.factors[n].indices if i not in out}
            edge = {n for n in left if indices & set(term.factors[n].indices)}
            left -= edge
        if part & removed and not part <= removed and not any(i in out for n in part for i in term.factors[n].indices):
            return False
    return True


def _join_terms(first: Term, second: Term, pairs: Mapping[int, int], mapping: Mapping[Index, Index], out: Sequence[Index]) -> Term:
    shared = [f for n, f in enumerate(first.factors) if n in pairs.values()]
    other = rename_indices(Term(second.coefficient, tuple(f for m, f in enumerate(second.factors) if m not in pairs)), mapping)
    rest = Term(first.coefficient, tuple(f for n, f in enumerate(first.factors) if n not in pairs.values()))
    outer = {i for f in shared for i in f.indices} | set(out)
    interface = tuple(dict.fromkeys(i for t in (rest, other) for f in t.factors for i in f.indices if i in outer))
    inner = tuple(Index(i.dimension) for i in interface)
    replaced = dict(zip(interface, inner))
    group = Sum(inner, (rename_indices(rest, replaced), rename_indices(other, replaced)))
    return Term(ONE, (*shared, Factor(Applied(None, group), interface)))


def expand(total: Sum, axes: int = 0) -> Sum:
    """A sum with every bracket of at least `axes` axes expanded, unless it has too many terms."""
    terms = []
    if len(total.terms) > MOST_TERMS:
        return total
    for term in total.terms:
        at = next((n for n, f in enumerate(term.factors)
                   if isinstance(f.head, Applied) and f.head.function is None and f.power == 1 and len(f.indices) >= axes), None)
        if at is None:
            terms.append(term)
            continue
        f = term.factors[at]
        rest = term.factors[:at] + term.factors[at + 1:]
        inner = expand(f.head.argument, axes).rename(f.indices)
        terms += [with_lengths(Term(term.coefficient * t.coefficient, rest + t.factors), f.indices, total.out) for t in inner]
    found = Sum(total.out, tuple(terms))
    return simplify(found) if len(terms) == len(total.terms) else expand(found, axes)
