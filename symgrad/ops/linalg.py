"""Products of vectors, matrices and tensors, and the parts of a matrix."""

from symgrad.arguments import check_dims, check_least_rank, check_one_dtype, check_shapes
from symgrad.errors import PRODUCT
from symgrad.graph.op import composite, linear, multilinear
from symgrad.layouts.strides import is_plain


def check_product(name, core, a, b):
    """Check the shapes of two factors; programs know the words for matrices whose inner sizes differ."""
    if len(a.shape) == len(b.shape) == 2 and core == "(n,k),(k,m)" and a.shape[1] != b.shape[0]:
        raise RuntimeError(f"{PRODUCT.format(*a.shape, *b.shape)}: the inner sizes in {name} differ")
    check_shapes(name, core, a, b)


def _product_arguments(name, core):
    def prepare(xp, input, other):
        check_product(name, core, input, other)
        check_one_dtype(name, input, other)
        return input, other

    return prepare


def matrix_transpose(xp, a):
    if a.ndim == 2:
        return xp.permute(a, (1, 0))
    return xp.permute(a, (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))


def second_cotangent(xp, g, a, b):
    """aᵀ g, the cotangent of the second matrix of a b, in the layout of b: the weights of a linear map are read transposed."""
    if b.flags.f_contiguous and not b.flags.c_contiguous if is_plain(b) else getattr(b, "is_transposed", False):
        return matrix_transpose(xp, xp.mm(matrix_transpose(xp, g), a))
    return xp.mm(matrix_transpose(xp, a), g)


def turned(xp, x, dim):
    """Three slices along a dimension in the orders 1, 2, 0 and 2, 0, 1."""
    twice, before = xp.cat([x, x], dim), (slice(None),) * dim
    return xp.getitem(twice, (*before, slice(1, 4))), xp.getitem(twice, (*before, slice(2, 5)))


def cross_product(xp, a, b, dim):
    (a1, a2), (b1, b2) = turned(xp, a, dim), turned(xp, b, dim)
    return a1 * b2 - a2 * b1


def outer_product(xp, a, b):
    return xp.reshape(a, (*a.shape, 1)) * b


multilinear("mm", lambda xp, input, mat2: xp.mm(input, mat2), lambda xp, g, a, b: xp.mm(g, matrix_transpose(xp, b)), second_cotangent,
            prepare=_product_arguments("mm", "(n,k),(k,m)"), shapes=((3, 4), (4, 2)), usage="symgrad.mm(a, a.T)", doc="The product of two matrices.")
multilinear("mv", lambda xp, input, vec: xp.mv(input, vec), lambda xp, g, a, b: outer_product(xp, g, b),
            lambda xp, g, a, b: xp.mv(matrix_transpose(xp, a), g),
            prepare=_product_arguments("mv", "(n,k),(k)"), shapes=((3, 4), (4,)), usage="symgrad.mv(a, x)",
            doc="The product of a matrix and a vector.")
multilinear("vm", lambda xp, input, mat: xp.mv(matrix_transpose(xp, mat), input), lambda xp, g, a, b: xp.mv(b, g),
            lambda xp, g, a, b: outer_product(xp, a, g),
            public=False, node_name="SqueezeBackward4", shapes=((3,), (3, 4)), doc="The product of a vector and a matrix.")
multilinear("dot", lambda xp, input, tensor: xp.dot(input, tensor), lambda xp, g, a, b: g * b, lambda xp, g, a, b: g * a,
            prepare=_product_arguments("dot", "(n),(n)"), shapes=((4,), (4,)),
            usage="symgrad.dot(x, x)", doc="The inner product of two vectors, without conjugation.")
multilinear("batched_matmul", lambda xp, input, mat2: xp.matmul(input, mat2), lambda xp, g, a, b: xp.matmul(g, matrix_transpose(xp, b)),
            lambda xp, g, a, b: xp.matmul(matrix_transpose(xp, a), g), public=False, layout="rows", node_name="Bmm", shapes=((2, 3, 4), (1, 4, 2)),
            doc="Matrix products over broadcast leading axes.")


@composite("matmul", arity=2, usage="symgrad.matmul(a, x)")
def matmul(xp, input, other):
    """The product of vectors, matrices or stacks of matrices, with leading axes broadcast."""
    a, b = input.ndim, other.ndim
    check_product("matmul", "(n,k),(k,m)" if a == b == 2 else "(...,k),(...,k,m)" if b > 1 else "(...,k),(k)", input, other)
    check_one_dtype("matmul", input, other)
    if (a, b) == (2, 2):
        return xp.mm(input, other)
    if (a, b) == (2, 1):
        return xp.mv(input, other)
    if (a, b) == (1, 2):
        return xp.vm(input, other)
    if (a, b) == (1, 1):
        return xp.dot(input, other)
    left = input if a > 1 else xp.reshape(input, (1, *input.shape))
    right = other if b > 1 else xp.reshape(other, (*other.shape, 1))
    out = xp.batched_matmul(left, right)
    return out if a > 1 and b > 1 else xp.squeeze(out, (-2 if a == 1 else -1,))


@composite("outer", arity=2, usage="symgrad.outer(x, x)", aliases=("ger",))
def outer(xp, input, vec2):
    """The outer product of two vectors."""
    check_shapes("outer", "(n),(m)", input, vec2)
    return outer_product(xp, input, vec2)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _explicit_subscripts(equation, ranks):
    """The subscripts of the operands and of the output, explicit, with letters in place of an ellipsis."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeError(f"einsum(): the equation {equation!r} names {len(terms)} operands but {len(ranks)} were given")
    free = [c for c in LETTERS if c not in equation]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks) if "..." in term]
    dots = "".join(free[:max(widths, default=0)])
    out = []
    for term, rank in zip(terms, ranks):
        width = rank - len(term.replace("...", ""))
        if width < 0 or (width and "..." not in term):
            raise RuntimeError(f"einsum(): the operand {term!r} of {equation!r} has {len(term)} subscripts but its tensor has {rank} dimensions")
        out.append(term.replace("...", dots[len(dots) - width:]))
    if arrow:
        return out, right.replace("...", dots)
    letters = "".join(out)
    return out, dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots))


def _of_lists(given):
    """The equation and the operands of a call einsum(tensor, subscripts, ..., output), whose subscripts are lists of numbers and Ellipsis."""
    def term(subscripts):
        for n in subscripts:
            if n is not Ellipsis and not 0 <= n < len(LETTERS):
                raise ValueError(f"einsum: the subscript {n} must be from 0 to {len(LETTERS) - 1}")
        return "".join("..." if n is Ellipsis else LETTERS[n] for n in subscripts)

    pairs = given[:len(given) // 2 * 2]
    output = "->" + term(given[-1]) if len(given) % 2 else ""
    return (",".join(term(s) for s in pairs[1::2]) + output, *pairs[::2])


def _einsum_arguments(xp, equation, *operands):
    if not isinstance(equation, str):
        equation, *operands = _of_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    terms, right = _explicit_subscripts(equation, [x.ndim for x in operands])
    known = {}
    for term, x in zip(terms, operands):
        for letter, n in zip(term, x.shape):
            if not letter.isalpha():
                raise RuntimeError(f"einsum(): invalid subscript {letter!r} in {equation!r}; subscripts are letters")
            if known.setdefault(letter, n) not in (n, 1) and n != 1:
                raise RuntimeError(f"einsum(): subscript {letter} has size {n} for one operand and {known[letter]} for another in {equation!r}")
            known[letter] = max(known[letter], n)
    for letter in right:
        if letter not in known or right.count(letter) > 1:
            raise RuntimeError(f"einsum(): output subscript {letter} in {equation!r} is repeated or not in any operand")
    return list(operands), ",".join(terms) + "->" + right


def _einsum_transpose(xp, g, xs, i, equation):
    """The cotangent of one operand: the equation with that operand and the output exchanged.

    A letter in this operand alone is summed, so the cotangent is broadcast along it; a repeated letter reads a diagonal,
    so the cotangent is written to a diagonal.
    """
    left, _, right = equation.partition("->")
    terms = left.split(",")
    others = [(term, x) for k, (term, x) in enumerate(zip(terms, xs)) if k != i]
    target = "".join(dict.fromkeys(terms[i]))
    available = right + "".join(term for term, _ in others)
    read = "".join(c for c in target if c in available)
    size = dict(zip(terms[i], xs[i].shape))
    out = xp.einsum(",".join([right, *(term for term, _ in others)]) + "->" + read, [g, *(x for _, x in others)])
    if read != target:
        lengths = dict(zip(read, out.shape))
        out = xp.reshape(out, tuple(lengths.get(c, 1) for c in target))
        out = xp.broadcast_to(out, tuple(lengths.get(c, size[c]) for c in target))
    if target != terms[i]:
        delta = [xp.eye_like(out, size[c]) for c in target for _ in range(terms[i].count(c) - 1)]
        fresh = iter(c for c in LETTERS if c not in equation)
        renamed, pairs, seen = [], [], set()
        for c in terms[i]:
            letter = next(fresh) if c in seen else c
            if c in seen:
                pairs.append(c + letter)
            seen.add(c)
            renamed.append(letter)
        order = sorted(range(len(pairs)), key=lambda k: target.index(pairs[k][0]))
        out = xp.einsum(",".join([target, *(pairs[k] for k in order)]) + "->" + "".join(renamed), [out, *delta])
    return out


multilinear("einsum", lambda xp, operands, equation: xp.einsum(equation, operands), _einsum_transpose, variadic=True, prepare=_einsum_arguments,
            method=False, layout="rows", examples=(("ij,ij->ij",), ("ij,kj->ik",), ("ij,ij->",)),
            usage="symgrad.einsum('ij,kj->ik', a, a)", doc="The sum of products with subscripts given by an equation (Einstein summation).")

def _trace_arguments(xp, input):
    check_dims("trace", input, 2)
    return (input,)


linear("trace", lambda xp, input: xp.trace(input), lambda xp, g, shape: g * xp.diagonal_place(xp.ones_like(g, (min(shape),)), 0, shape),
       prepare=_trace_arguments, usage="symgrad.trace(a)", doc="The sum of a matrix's diagonal.")


def _diag_arguments(xp, input, diagonal=0):
    check_dims("diag", input, 1, 2)
    return input, diagonal


linear("diag", lambda xp, input, diagonal=0: xp.diag(input, diagonal),
       lambda xp, g, shape, diagonal=0: xp.diagonal_place(g, diagonal, shape) if len(shape) == 2 else xp.diag(g, diagonal),
       names=lambda node: "DiagonalBackward0_copy" if node.args[0].ndim == 2 else "DiagEmbedBackward0",
       prepare=_diag_arguments, examples=((0,), (1,), (-1,)),
       usage="symgrad.diag(a, 1)", doc="A matrix's diagonal as a vector, or a vector as a diagonal matrix.")
linear("diagonal_place", lambda xp, input, diagonal, shape: xp.diagonal_place(input, diagonal, shape),
       lambda xp, g, shape, diagonal, whole: xp.diag(g, diagonal), public=False, shapes=((3,),),
       examples=((0, (3, 3)), (1, (4, 4)), (-1, (5, 3))), doc="A matrix of zeros with a vector on one diagonal.")


def _define_triangle(name, part):
    def read(xp, input, diagonal):
        return getattr(xp, name)(input, diagonal)

    def prepare(xp, input, diagonal=0):
        check_least_rank(name, input, 2)
        return input, diagonal

    linear(name, read, lambda xp, g, shape, diagonal: read(xp, g, diagonal), prepare=prepare,
           examples=((0,), (1,)), layout="rows", usage=f"symgrad.{name}(a, 1)", doc=f"The {part} triangle of a matrix, the rest zero.")


_define_triangle("tril", "lower")
_define_triangle("triu", "upper")
