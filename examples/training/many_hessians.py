"""Hessians at many parameters, which are independent of each other, by any executor.

    python examples/training/many_hessians.py                                       a pool of processes
    mpiexec -n 3 python -m mpi4py.futures examples/training/many_hessians.py mpi    the processes of MPI, also on several machines (extra `mpi`)
    python examples/training/many_hessians.py dask                                  the workers of a Dask cluster (dask[distributed])

The function is Rosenbrock's, whose Hessian at (1, 1) is [[802, -400], [-400, 200]]: the program asserts this, and counts where it is convex.
"""

import sys
from concurrent.futures import ProcessPoolExecutor

import symgrad


def rosenbrock(x):
    """Rosenbrock's function of two variables."""
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def least_curvature(point):
    """The least eigenvalue of the Hessian at a point."""
    return symgrad.linalg.eigvalsh(symgrad.func.hessian(rosenbrock)(symgrad.tensor(point)))[0].item()


def executor(kind):
    """An executor, which ends with its block."""
    if kind == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        return MPIPoolExecutor()
    if kind == "dask":
        from dask.distributed import Client

        return Client().get_executor()
    return ProcessPoolExecutor(2)


def main(kind):
    """Print how many of the points have a positive definite Hessian."""
    points = [(i / 10, j / 10) for i in range(-10, 11) for j in range(-10, 11)]
    with executor(kind) as pool:
        found = symgrad.map(least_curvature, points, pool)
    convex = [point for point, value in zip(points, found) if value > 0]
    assert [value > 0 for value in found] == [400 * y < 400 * x**2 + 2 for x, y in points]  # det = 400 (2 + 400 x² - 400 y)
    hessian = symgrad.func.hessian(rosenbrock)(symgrad.tensor((1.0, 1.0)))
    assert hessian.tolist() == [[802.0, -400.0], [-400.0, 200.0]]
    print(f"convex at {len(convex)} of {len(points)} points")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "processes")
