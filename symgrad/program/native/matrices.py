"""The functions of C programs that multiply matrices, whose results are in row-major order. `T` is the type of the elements, and `#` its letter."""

from __future__ import annotations

__all__ = ["PRODUCTS"]


def _columns(vectors: int) -> str:
    """The loop over some vectors of columns at a time of c = a b for a row a, with the sums in registers."""
    sums = ", ".join(f"s{v} = {{}}" for v in range(vectors))
    adds = " ".join(f"s{v} += x * *(const U# *)(b + p * bk + j + {v} * W#);" for v in range(vectors))
    stores = " ".join(f"*(U# *)(c + j + {v} * W#) = s{v};" for v in range(vectors))
    back = "" if vectors > 1 else "if (j + W# > n) j = n - W#; "
    return (f"  for (; j{f' + {vectors} * W# <=' if vectors > 1 else ' <'} n; j += {vectors} * W#) {{\n    {back}V# {sums};\n"
            f"    for (long p = 0; p < k; p++) {{ const T x_ = a[p * ak]; const V# x = SPLAT#(x_); {adds} }}\n    {stores}\n  }}\n")


PRODUCTS: dict[str, tuple[tuple[str, ...], str]] = {
    "dot": ((), """\
APART T dot_#(const T *a, long s, const T *b, long t, long n) {
  T r[8] = {0}, rest = 0;
  long i = 0;
  for (; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) r[j] += a[(i + j) * s] * b[(i + j) * t];
  for (; i < n; i++) rest += a[i * s] * b[i * t];
  return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7])) + rest;
}"""),
    # A row times a matrix of at least as many columns as a vector has elements, whose rows are adjacent in memory.
    "row": ((), f"""\
APART void row_#(T *c, const T *a, const T *b, long n, long k, long ak, long bk) {{
  long j = 0;
{_columns(4)}{_columns(1)}}}"""),
    # The crossovers are measured: BLAS needs less time than loops do from matrices of about three rows on.
    "product": (("dot", "row"), """\
typedef const T *array#;
typedef const blas_int *number#;
typedef void gemm_t_#(const char *, const char *, number#, number#, number#, array#, array#, number#, array#, number#, array#, T *, number#);
typedef void gemv_t_#(const char *, number#, number#, array#, array#, number#, array#, number#, array#, T *, number#);
APART void product_#(void **blas, T *c, const T *a, const T *b, long m, long n, long k, long ai, long ak, long bk, long bj) {
  const blas_int M = m, N = n, K = k;
  const T one = 1, zero = 0;
  if (!k) { memset(c, 0, m * n * sizeof(T)); return; }
  if (m == 1 && n == 1 && k <= 512) { *c = dot_#(a, ak, b, bk, k); return; }
  if (m * n * k <= 32 || m * n * k <= 512 && (m == 1 || n == 1) && m < W# && n < W#) {
    for (long i = 0; i < m; i++) for (long j = 0; j < n; j++) c[i * n + j] = dot_#(a + i * ai, ak, b + j * bj, bk, k);
    return;
  }
  if (m * n * k <= 16384) {
    if (m == 1 && bj == 1 && n >= W#) { row_#(c, a, b, n, k, ak, bk); return; }
    if (n == 1 && ai == 1 && m >= W#) { row_#(c, b, a, m, k, bk, ak); return; }
  }
  const int ta = k == 1 || (ak == 1 && (m == 1 || ai >= k)) ? 0 : 1, tb = n == 1 || (bj == 1 && (k == 1 || bk >= n)) ? 0 : 1;
  const blas_int lda = ta ? (k > 1 ? ak : m) : (m > 1 ? ai : k), ldb = tb ? (n > 1 ? bj : k) : (k > 1 ? bk : n), LA = lda > 0 ? lda : 1;
  if (n == 1 && bk > 0) {
    const blas_int step = bk, unit = 1;
    ((gemv_t_# *)blas[BLAS_GEMV])(ta ? "N" : "T", ta ? &M : &K, ta ? &K : &M, &one, a, &LA, b, &step, &zero, c, &unit);
    return;
  }
  if (m == 1 && ak > 0) {
    const blas_int step = ak, unit = 1;
    ((gemv_t_# *)blas[BLAS_GEMV])(tb ? "T" : "N", tb ? &K : &N, tb ? &N : &K, &one, b, &ldb, a, &step, &zero, c, &unit);
    return;
  }
  ((gemm_t_# *)blas[BLAS_GEMM])(tb ? "T" : "N", ta ? "T" : "N", &N, &M, &K, &one, b, &ldb, a, &LA, &zero, c, &N);
}"""),
    "all_finite": ((), """\
INLINE int all_finite_#(const T *x, long m, long n, long s) { /* of rows at a stride */
  V# t = {};
  T rest = 0;
  for (long i = 0; i < m; i++, x += s) {
    long j = 0;
    for (; j + W# <= n; j += W#) t += *(const U# *)(x + j) * 0;
    for (; j < n; j++) rest += x[j] * 0;
  }
  for (int j = 0; j < W#; j++) rest += t[j];
  return rest == 0;
}"""),
    # A product with a matrix of zeros whose rows have a one each, which selects rows, or columns if it is on the right.
    # Infinities and NaN times zero are NaN; a matrix that has them is multiplied. Sums with zeros are never -0.
    "selected": (("product", "all_finite"), """\
APART void selected_#(void **blas, int right, const int64_t *at, T *c, const T *a, const T *b, long m, long n, long k, long ai, long ak, long bk,
                      long bj) {
  const T *x = right ? a : b;
  const long rows = right ? m : k, columns = right ? k : n, s = right ? ai : bk, t = right ? ak : bj;
  const int finite = t == 1 ? all_finite_#(x, rows, columns, s) : s == 1 && all_finite_#(x, columns, rows, t);
  if (!finite) product_#(blas, c, a, b, m, n, k, ai, ak, bk, bj);
  else if (right) for (long i = 0; i < m; i++) for (long j = 0; j < n; j++) c[i * n + j] = a[i * ai + at[j] * ak] + 0;
  else for (long i = 0; i < m; i++) {
    const T *y = b + at[i] * bk;
    if (bj == 1) for (long j = 0; j < n; j++) c[i * n + j] = y[j] + 0;
    else for (long j = 0; j < n; j++) c[i * n + j] = y[j * bj] + 0;
  }
}"""),
}
