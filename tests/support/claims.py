"""What the registry claims of its ops beyond what their data says: digits, conventions at special points, and checks left out with reasons."""


from symgrad.engine.recording import core
from symgrad.graph.domains import COMPLEX, NONNEGATIVE, POSITIVE, REAL, SEPARATED_SINGULAR, Domain, Interval
from symgrad.graph.op import REGISTRY
from symgrad.testing import Claims
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS
from tests.support.exemptions import exempt, reasons

ULP = {"float64": (8, 8, 64, 512)}  # of the value and of the first three derivatives
ALL_CASES = [(op, parameters) for op in REGISTRY.values() if op.kind != "composite" and op.name not in exempt("alone")
             for parameters in op.docs.examples or ((),)]
"""Composites are made of other ops."""
CASES = [(op, parameters) for op, parameters in ALL_CASES if COMPLEX not in op.domain]
OF_PARTS = {"complex": ((2, 3), (2, 3)), "polar_parts": ((2, 3), (2, 3)), "view_as_complex": ((3, 2),), "fourier_of_real": ((3, 2),)}
"""Ops that make complex numbers of real ones, with the shapes of those."""
SHARED = {"maximum": (0.5, 0.5), "minimum": (0.5, 0.5), "hypot": (0.0, 0.0), "direction": (0.0, 0.0)}
"""The gradient at the special points of these: equal values share it, and a norm at 0 has the subgradient of least norm."""
POWERS_OF_ZERO = (((0.0, 0.0), (0.0, 0.0)), ((0.0, 1.0), (1.0, 0.0)), ((0.0, 3.0), (0.0, 0.0)))
"""Beside its domain, which is that of the derivative by the exponent: this is 0 where the base is 0."""
FLAT = ("abs", "relu", "sign")
"""Whose gradient at all special points is the subgradient of least norm, 0."""

INSIDE = Domain("INSIDE", (Interval(1e-10, 1 - 1e-10),))
"""Where the logarithms of binary_cross_entropy are not cut off: at 0 and 1 its derivative is none, but what torch takes for one."""

NORMAL = Domain("NORMAL", (Interval(high=-1e-290), Interval(0.0, 0.0), Interval(low=1e-290)))
"""Numbers whose hypotenuse has all its digits: between subnormal numbers that of `direction` has few, or none."""
STEPPED = ("remainder", "fmod_tensor", "floor_divide", "rounded_quotient")
NUMERATOR = Domain("NUMERATOR", (Interval(-1e3, 1e3),))
DENOMINATOR = Domain("DENOMINATOR", (Interval(-1e3, -0.5), Interval(0.5, 1e3)))
"""Where the quotient that these make whole is a few thousand at most: a large one has a step next to every float, and no limits of differences."""


def special_points(op, parameters):
    """The special points of an op, with the gradient where that is a convention."""
    if op.name == "pow":
        return POWERS_OF_ZERO
    if op.name in SHARED:
        return tuple((x, SHARED[op.name]) for x in op.docs.special)
    if op.name in FLAT:
        return tuple((x, (0.0,)) for x in op.docs.special)
    if op.name.startswith("clamp"):
        return tuple((x, (0.0,)) if x[0] in parameters else x for x in op.docs.special)
    return op.docs.special


OF_SPECTRA = ("eigenvalues", "eigenvectors")
"""Which make complex numbers of matrices; equal eigenvalues have no derivatives."""


def claims_of_case(op, parameters):
    """The claims of an op with one tuple of parameters."""
    more = {}
    without = {"proof": "test_higher_derivatives_are_proved asks for more", "compiled": "test_registry_compiled.py asks for more"}
    without |= {check: reason for check, reason in reasons(op.name).items() if check in CHECKS}
    if op.name == "binary_cross_entropy":
        more["domain"] = {"input": INSIDE, "target": INSIDE}
    if op.name == "direction":
        more["domain"] = NORMAL
    if op.name in STEPPED:
        more["domain"] = dict(zip(op.argument_names, (NUMERATOR, DENOMINATOR)))
    if op.name == "to_copy":
        more["dtypes"] = (str(parameters[0]),)
    if op.name in OF_PARTS:
        more |= {"domain": dict.fromkeys(op.argument_names, REAL), "shapes": OF_PARTS[op.name]}
    if op.name in OF_SPECTRA:
        more["domain"] = {"input": SEPARATED_SINGULAR}
    if op.name == "eigenvalues":
        more["dtypes"] = ("float64", "float32")
    elementwise = True if op.name == "where" or op.name == "mse_loss" and parameters == ("none",) else None
    return Claims(parameters=parameters, ulp=ULP, special=special_points(op, parameters), elementwise=elementwise,
                  without=without, **more)


EXPONENTS = {3: REAL, 0: REAL, 2.5: NONNEGATIVE, 0.1: POSITIVE, -1.5: POSITIVE}
"""Exponents that are Python numbers, for which the rule of `pow` has branches of its own, and where each has all derivatives up to the second."""


def _powers_with_numbers(op):
    power = core(op)
    for exponent, domain in EXPONENTS.items():
        yield lambda input, b=exponent: power(input, b), Claims(
            formula=lambda xp, input, b=exponent: xp.pow(input, b), domain=domain, ulp=ULP, elementwise=True, name=f"pow with {exponent}",
            order=2 if domain is NONNEGATIVE else 3)


def _lower_of_two(op):
    """The median of two numbers at the position of the lower one; of three equal ones every partial derivative would be 0."""
    median = core(op)

    def at_its_position(input):
        return median(input, (int(input.detach().numpy().argmin()),))

    yield at_its_position, Claims(formula=lambda xp, input: xp.minimum(xp.getitem(input, (0,)), xp.getitem(input, (1,))), domain=REAL, shapes=((2,),),
                                  ulp=ULP, name=f"{op.name} of two")


STEEPEST = 1 / 9.999999960041972e-13
CUT_OFF = (((0.0, 1.0, 1.0), (-STEEPEST, 100.0, 100.0)), ((1.0, 0.0, 1.0), (STEEPEST, -100.0, 100.0)),
           ((0.0, 0.0, 1.0), (0.0, 100.0, 0.0)), ((1.0, 1.0, 1.0), (0.0, -100.0, 0.0)))
"""The gradient of binary_cross_entropy at the ends, where torch cuts off the logarithms at -100 and the variance at 1e-12, as float32 has it."""


def _entropy_of_elements(op):
    entropy = core(op)
    yield lambda input, target, weight: entropy(input, target, weight, "none"), Claims(
        formula=lambda xp, input, target, weight: xp.binary_cross_entropy(input, target, weight, "none"), special=CUT_OFF, elementwise=True,
        domain={"input": (0.1, 0.4), "target": (0.6, 0.9)}, dtypes=("float64", "float32", "bfloat16"), ulp=ULP, name=f"{op.name} at the ends")


def _with_parameters(*parameters, **more):
    """The op itself with parameters that are not among its examples, since proofs take those, too."""
    return lambda op: iter([(op, Claims(parameters=parameters, ulp=ULP, name=f"{op.name}{parameters}", **more))])


FURTHER = {"pow": _powers_with_numbers, "median_of_all": _lower_of_two, "nanmedian_of_all": _lower_of_two,
           "amax": _with_parameters((1,), False), "binary_cross_entropy": _entropy_of_elements, "var": _with_parameters((0,), 2, False),
           "to_copy": _with_parameters("float32", dtypes=("float64",), complex=False)}
"""Functions of ops with claims of their own, for what the examples of the ops do not reach."""


def further_attacks(name, op, profile):
    """The attacks on functions of the op of a name; `op` is that of the registry, or made of it."""
    for function, claims in FURTHER[name](op) if name in FURTHER else ():
        yield Attack(function, claims, profile)


def attack_on(op, parameters, profile):
    """The attack on an op with one tuple of parameters."""
    return Attack(op, claims_of_case(op, parameters), profile)


def name_of(op, parameters):
    """What tests call an op with one tuple of parameters."""
    return f"{op.name}{parameters}"
