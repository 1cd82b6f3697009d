"""What tests over all ops do not ask of some: one line for each property and reason. tests/ops/test_exemptions.py holds that no line is needless.

A property is a check of `symgrad.testing`, or
- "formula": the value has a symbolic form, of which the rules are proved;
- "proof": all derivatives up to the third order are proved, and not only verified or right away from a cut;
- "closed": the formula is one of functions of which SymPy has values at every point: not of Meijer's G;
- "source": all derivatives can be written as a source, in every language;
- "dtypes": there are rules for every type of floats;
- "alone": the op can be called outside of `vmap`;
- "memory": a result of the public function shares no memory with an argument, unless it is a view.
"""

from typing import NamedTuple


class Exemption(NamedTuple):
    """The properties, the ops that do not have them, and why, as it was measured."""

    properties: str
    ops: str
    reason: str


EXEMPTIONS = (
    Exemption("formula formulas", "hermitian_eigenvalues hermitian_eigenvectors singular_values singular_vectors eigenvalues eigenvectors",
              "roots of a polynomial of any degree: SymPy has no expression; all digits are compared with 160-digit factorizations"),
    Exemption("formula formulas", "pseudo_inverse qr_factors ldl_factors row_exchanges order_of_rows matrix_exponential",
              "the rank, the exchange of rows or the eigenvalues of numbers decide: SymPy has no expression of symbols"),
    Exemption("formula", "argmax argmin", "the position of an element is decided by numbers: the symbolic carrier raises TypeError"),
    Exemption("proof", "gammainc gammaincc gammainc_derivative",
              "the derivative by the order is no known function: what has it is verified at 20 points to 50 digits, and not proved"),
    Exemption("closed source", "gammainc_derivative",
              "no known function; its integral of the second order cancels: 3,700 ULP at a = x = 49.95, and 180 ULP at a = 0.01"),
    Exemption("proof", "binary_cross_entropy", "as in torch, its rule is no derivative where x (1 - x) < 1e-12: refuted there, and nowhere else"),
    Exemption("pullback differences dtypes", "power_of_length",
              "a length and its square are tied in a graph; where they are free, the derivative by the square at 0 is none of the forward rule"),
    Exemption("pullback pushforward differences complex", "median_of_all nanmedian_of_all",
              "they are told which element is the median; of equal ones the formula is one element, and the gradient is shared: all four fail"),
    Exemption("complex", "complex polar_parts view_as_complex fourier_of_real",
              "they take real numbers, and what a complex one would be to them has no derivative: the check fails with complex arguments"),
    Exemption("dtypes", "eigenvalues", "bfloat16 has no complex type: the tangent beside a complex64 value stays bfloat16"),
    Exemption("dtypes", "to_copy", "a copy in one type has that type whatever it is given: 'the value for float32 has the dtype float64'"),
    Exemption("alone", "batch unbatch", "they move an axis into a batch of `vmap` or out of it: outside of one nearly all checks raise"),
    Exemption("memory", "sum_to_size chain_matmul", "an argument that is the result already is returned itself, as in torch"),
)


def exempt(property):
    """The ops that a property is not asked of."""
    return frozenset(name for row in EXEMPTIONS if property in row.properties.split() for name in row.ops.split())


def reasons(name):
    """The properties that an op is not asked for, with the reasons."""
    return {property: row.reason for row in EXEMPTIONS if name in row.ops.split() for property in row.properties.split()}
