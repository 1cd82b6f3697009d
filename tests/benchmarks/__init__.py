"""How long it takes, beside what else does the same: `python -m tests.benchmarks` prints one table of ratios."""

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"  # NumPy and torch read these once, when they are imported
