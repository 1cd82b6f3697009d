// The functions of C programs that move, reduce and multiply elements. `T` is the type of the elements, and `#` its letter.
// A text needs those behind the arrow of its head, which stand before it (`symgrad.system.texts`).

// Elements k to k + b of a strided array, in row-major order.
//: gather
APART void gather_#(T *y, const T *x, long k, long b, int nd, const long *n, const long *s) {
  long index[64], left = k, last = n[nd - 1], step = s[nd - 1];
  for (int d = nd - 1; d >= 0; d--) { index[d] = left % n[d]; left /= n[d]; }
  for (long done = 0; done < b;) {
    const T *p = x;
    for (int d = 0; d < nd; d++) p += index[d] * s[d];
    long run = last - index[nd - 1];
    if (run > b - done) run = b - done;
    if (step == 1) memcpy(y + done, p, run * sizeof(T));
    else for (long i = 0; i < run; i++) y[done + i] = p[i * step];
    done += run;
    index[nd - 1] = 0;
    for (int d = nd - 2; d >= 0 && ++index[d] == n[d]; d--) index[d] = 0;
  }
}

// Indices, of which negative ones count from the end; the flag tells that one is out of bounds.
//: wrapped
APART void wrapped_#(T *y, const T *x, long n, long size, int64_t *flag) {
  for (long i = 0; i < n; i++) {
    const T at = x[i] < 0 ? x[i] + size : x[i];
    const int inside = at >= 0 && at < size;
    y[i] = inside ? at : 0;
    if (!inside) *flag = 1;
  }
}

//: take
APART void take_#(T *y, const T *x, const int64_t *at, long n) { for (long i = 0; i < n; i++) y[i] = x[at[i]]; }

//: put
APART void put_#(T *y, const T *v, const int64_t *at, long n) { for (long i = 0; i < n; i++) y[at[i]] = v[i]; }

//: add_at
APART void add_at_#(T *y, const T *v, const int64_t *at, long n) { for (long i = 0; i < n; i++) y[at[i]] += v[i]; }

//: pick
APART void pick_#(T *y, const T *x, const int64_t *at, long n, long width) { for (long i = 0; i < n; i++) y[i] = x[i * width + at[i]]; }

// Pairwise, in the order of NumPy: the error grows with the logarithm of the count. Begun with 0, since a sum of -0 is 0.
//: sum
APART T sum_#(const T *x, long n, long s) {
  if (n > 128) {
    const long h = n / 2 & ~7;
    return sum_#(x, h, s) + sum_#(x + h * s, n - h, s);
  }
  T r[8], t = 0;
  long i = 0;
  if (n >= 8) {
    for (int j = 0; j < 8; j++) r[j] = x[j * s];
    if (s == 1) for (i = 8; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) r[j] += x[i + j];
    else for (i = 8; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) r[j] += x[(i + j) * s];
    t += ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; i < n; i++) t += x[i * s];
  return t;
}

//: sum_two
INLINE T sum_two_#(T a, T b) { return a + b; }

//: prod_two
INLINE T prod_two_#(T a, T b) { return a * b; }

//: amax_two
INLINE T amax_two_#(T a, T b) { return a > b || a != a ? a : b; }

//: amin_two
INLINE T amin_two_#(T a, T b) { return a < b || a != a ? a : b; }

//: all_two
INLINE T all_two_#(T a, T b) { return a & b; }

//: any_two
INLINE T any_two_#(T a, T b) { return a | b; }

//: dot
APART T dot_#(const T *a, long s, const T *b, long t, long n) {
  T r[8] = {0}, rest = 0;
  long i = 0;
  for (; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) r[j] += a[(i + j) * s] * b[(i + j) * t];
  for (; i < n; i++) rest += a[i * s] * b[i * t];
  return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7])) + rest;
}

// A row times a matrix of at least as many columns as a vector has elements, whose rows are adjacent in memory.
//: row
APART void row_#(T *c, const T *a, const T *b, long n, long k, long ak, long bk) {
  long j = 0;
  for (; j + 4 * W# <= n; j += 4 * W#) {
    V# s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (long p = 0; p < k; p++) { const T x_ = a[p * ak]; const V# x = SPLAT#(x_); s0 += x * *(const U# *)(b + p * bk + j + 0 * W#); s1 += x * *(const U# *)(b + p * bk + j + 1 * W#); s2 += x * *(const U# *)(b + p * bk + j + 2 * W#); s3 += x * *(const U# *)(b + p * bk + j + 3 * W#); }
    *(U# *)(c + j + 0 * W#) = s0; *(U# *)(c + j + 1 * W#) = s1; *(U# *)(c + j + 2 * W#) = s2; *(U# *)(c + j + 3 * W#) = s3;
  }
  for (; j < n; j += 1 * W#) {
    if (j + W# > n) j = n - W#; V# s0 = {};
    for (long p = 0; p < k; p++) { const T x_ = a[p * ak]; const V# x = SPLAT#(x_); s0 += x * *(const U# *)(b + p * bk + j + 0 * W#); }
    *(U# *)(c + j + 0 * W#) = s0;
  }
}

// The crossovers are measured: BLAS needs less time than loops do from matrices of about three rows on.
//: product <- dot row
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
}

//: all_finite
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
}

// A product with a matrix of zeros whose rows have a one each, which selects rows, or columns if it is on the right.
// Infinities and NaN times zero are NaN; a matrix that has them is multiplied. Sums with zeros are never -0.
//: selected <- product all_finite
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
}

//: cumsum SIGN=+ | cumprod SIGN=*
APART void NAME_#(T *y, const T *x, long outer, long n, long inner) {
  for (long o = 0; o < outer; o++, x += n * inner, y += n * inner) {
    memcpy(y, x, inner * sizeof(T));
    for (long i = inner; i < n * inner; i++) y[i] = y[i - inner] SIGN x[i];
  }
}

//: argmax SIGN=> | argmin SIGN=<
APART int64_t NAME_#(const T *x, long n, long s) {
  long at = 0;
  T best = x[0];
  for (long i = 1; i < n && best == best; i++) if (x[i * s] SIGN best || x[i * s] != x[i * s]) { best = x[i * s]; at = i; }
  return at;
}

//: prod <- prod_two
APART T prod_#(const T *x, long n, long s) {
  if (!n) return 1; T r = x[0];
  for (long i = 1; i < n; i++) r = prod_two_#(r, x[i * s]);
  return r;
}

//: amax START=x[0] FIRST=1 | amin START=x[0] FIRST=1 | all START=1 FIRST=0 | any START=0 FIRST=0 <- NAME_two
APART T NAME_#(const T *x, long n, long s) {
  T r = START;
  for (long i = FIRST; i < n; i++) r = NAME_two_#(r, x[i * s]);
  return r;
}

// Of many elements, in pairs.
//: squares EACH= | scaled_squares EACH=/scale <- sum
APART T NAME_#(const T *x, long n, long s, T scale) {
  if (n > 65536) {
    const long h = n / 2 & ~1023;
    return NAME_#(x, h, s, scale) + NAME_#(x + h * s, n - h, s, scale);
  }
  T r[32] = {0};
  for (long i = 0; i < n; i += 1024) {
    T q[32] = {0};
    const long e = n - i < 1024 ? n - i : 1024;
    long j = 0;
    for (; j + 32 <= e; j += 32) for (int l = 0; l < 32; l++) { const T v = x[(i + j + l) * s]EACH; q[l] += v * v; }
    for (; j < e; j++) { const T v = x[(i + j) * s]EACH; q[j & 31] += v * v; }
    for (int l = 0; l < 32; l++) r[l] += q[l];
  }
  return sum_#(r, 32, 1);
}

//: norm <- squares scaled_squares
APART T norm_#(const T *x, long n, long s) {
  const T length = sqrt(squares_#(x, n, s, 1));
  if ((length > (sizeof(T) == 8 ? 0x1p-511 : 0x1p-63) && length < __builtin_inf()) || !n) return length;
  T scale = 0;
  for (long i = 0; i < n; i++) { const T v = fabs(x[i * s]); if (v > scale || v != v) scale = v; if (v != v) return v; }
  if (!(scale > 0 && scale < __builtin_inf())) scale = 1;
  return (T)sqrt(scaled_squares_#(x, n, s, scale)) * scale;
}

// Rows are added in pairs of blocks, for each stretch of their elements.
//: sum_rows <- sum_two
APART void sum_rows_#(T *restrict y, const T *restrict x, long n, long s, long width) {
  if (n <= 128) {
    for (long j = 0; j < width; j++) y[j] = x[j] + 0;
    for (long i = 1; i < n; i++) for (long j = 0; j < width; j++) y[j] += x[i * s + j];
    return;
  }
  const long h = n / 2 & ~7;
  T t[512];
  for (long k = 0; k < width; k += 512) {
    const long w = width - k < 512 ? width - k : 512;
    sum_rows_#(y + k, x + k, h, s, w);
    sum_rows_#(t, x + k + h * s, n - h, s, w);
    for (long j = 0; j < w; j++) y[k + j] += t[j];
  }
}

// Of n rows of some width, at a stride.
//: prod_rows BY=prod | amax_rows BY=amax | amin_rows BY=amin <- BY_two
APART void NAME_#(T *restrict y, const T *restrict x, long n, long s, long width) {
  memcpy(y, x, width * sizeof(T));
  for (long i = 1; i < n; i++) for (long j = 0; j < width; j++) y[j] = BY_two_#(y[j], x[i * s + j]);
}
