"""The likelihood of a Kalman filter with its exact gradient and Hessian: the level of the Nile from 1871 to 1970.

The flow of year t is yₜ = μₜ + εₜ with the level μₜ₊₁ = μₜ + ηₜ; the variances of ε and η are the exponentials of two parameters. The filter starts
with the first flow, so that its likelihood is the density of the other flows given the first.

Known from elsewhere: the variances are 15099 and 1469 at the maximum of the likelihood, where its logarithm is -632.5456 (Durbin and Koopman, Time
Series Analysis by State Space Methods, 2012, section 2.10). The likelihood is also the joint Gaussian density of the changes d = yₜ₊₁ - yₜ, whose
covariance C is tridiagonal, 2 var ε + var η on the diagonal and -var ε beside it: with β = C⁻¹ d its gradient and Hessian have the trace formulas of
a density with the covariance C.
"""

import math

import numpy as np

import symgrad
from symgrad import func

FLOWS = np.array("""1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260
1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759
781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746
919 718 714 740""".split(), float)  # 10⁸ m³ a year at Aswan


def negative_log_likelihood(theta=(9.6, 7.3)):
    """-log density of the first three flows, given the logarithms of the variances of the flow and of the level."""
    return filtered(theta, FLOWS[:3])


def filtered(theta, flows):
    """-log density of the flows after the first, by the Kalman filter with the transition F, the observation H and the noises Q and R."""
    noise, step = symgrad.exp(theta[0]).reshape(1, 1), symgrad.exp(theta[1]).reshape(1, 1)
    transition, observation = symgrad.eye(1), symgrad.eye(1)
    state, spread, total = symgrad.tensor(flows[:1]), noise, (len(flows) - 1) / 2 * math.log(2 * math.pi)
    for flow in symgrad.tensor(flows[1:, None]):
        state, spread = transition @ state, transition @ spread @ transition.T + step
        surprise, variance = flow - observation @ state, observation @ spread @ observation.T + noise
        gain = symgrad.linalg.solve(variance, observation @ spread).T
        total = total + symgrad.slogdet(variance).logabsdet / 2 + surprise @ symgrad.linalg.solve(variance, surprise) / 2
        state, spread = state + gain @ surprise, spread - gain @ observation @ spread
    return total


def closed_forms(theta, flows):
    """The value, the gradient and the Hessian of the density of the changes."""
    noise, step = np.exp(theta)
    change, one = np.diff(flows), np.eye(len(flows) - 1)
    first = [noise * (2 * one - np.eye(len(one), k=1) - np.eye(len(one), k=-1)), step * one]  # the covariance is the sum of its own derivatives
    covariance = first[0] + first[1]
    inverse = np.linalg.inv(covariance)
    beta = inverse @ change
    value = change @ beta / 2 + np.linalg.slogdet(covariance)[1] / 2 + len(change) / 2 * math.log(2 * math.pi)
    gradient = np.array([np.trace(inverse @ a) - beta @ a @ beta for a in first]) / 2
    second = [[beta @ a @ inverse @ b @ beta - np.trace(inverse @ a @ inverse @ b) / 2 for b in first] for a in first]
    return value, gradient, np.diag(gradient) + second


def derivatives(theta, flows):
    """The value, the gradient and the Hessian of the filter."""
    def function(x):
        return filtered(x, flows)

    x = symgrad.tensor(theta)
    return function(x).item(), func.grad(function)(x).numpy(), func.hessian(function)(x).numpy()


def main():
    """Find the most likely variances by Newton steps, print them, and assert what is known."""
    theta = np.array(negative_log_likelihood.__defaults__[0])
    for _ in range(5):
        value, gradient, hessian = derivatives(theta, FLOWS)
        for found, known in zip((value, gradient, hessian), closed_forms(theta, FLOWS)):
            assert np.allclose(found, known, rtol=1e-11, atol=1e-11), (theta, found, known)
        theta = theta - np.linalg.solve(hessian, gradient)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian))) * np.exp(theta)
    for name, variance, error in zip(("flow", "level"), np.exp(theta), errors):
        print(f"variance of the {name:6}{variance:8.0f}  standard error {error:6.0f}")
    print(f"-log likelihood {value:.6f}")
    assert np.round(np.exp(theta)).tolist() == [15099, 1469] and round(value, 4) == 632.5456 and np.abs(gradient).max() < 1e-8


if __name__ == "__main__":
    main()
