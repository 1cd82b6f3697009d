// Functions of vectors of float64 (lane d) and float32 (lane f), and of single elements: `$` is the letter of the lane, `@` the type of its elements,
// and SUFFIX the last letter of its functions. A text needs those behind the arrow of its head.

//: PRELUDE
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined __AVX512F__
#define WIDTH 64
#define SPLATd(x) (Vd){x,x,x,x,x,x,x,x}
#define SPLATf(x) (Vf){x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x}
#define MVEC1d(name) _ZGVeN8v_##name
#define MVEC2d(name) _ZGVeN8vv_##name
#define MVEC1f(name) _ZGVeN16v_##name##f
#define MVEC2f(name) _ZGVeN16vv_##name##f
#elif defined __AVX2__
#define WIDTH 32
#define SPLATd(x) (Vd){x,x,x,x}
#define SPLATf(x) (Vf){x,x,x,x,x,x,x,x}
#define MVEC1d(name) _ZGVdN4v_##name
#define MVEC2d(name) _ZGVdN4vv_##name
#define MVEC1f(name) _ZGVdN8v_##name##f
#define MVEC2f(name) _ZGVdN8vv_##name##f
#else
#define WIDTH 16
#define SPLATd(x) (Vd){x,x}
#define SPLATf(x) (Vf){x,x,x,x}
#define MVEC1d(name) _ZGVbN2v_##name
#define MVEC2d(name) _ZGVbN2vv_##name
#define MVEC1f(name) _ZGVbN4v_##name##f
#define MVEC2f(name) _ZGVbN4vv_##name##f
#endif
#ifdef __clang__
#define SCALARS static
#else /* statements without loops gain nothing from the optimizations that take the most time */
#define SCALARS static __attribute__((optimize("Og")))
#endif
#define INLINE static inline __attribute__((always_inline, unused))
#define APART static __attribute__((noinline, unused))
typedef double Ed; typedef int64_t Jd; typedef float Ef; typedef int32_t Jf; typedef unsigned char bool8;

//: LANE
typedef E$ V$ __attribute__((vector_size(WIDTH)));
typedef J$ I$ __attribute__((vector_size(WIDTH)));
typedef E$ U$ __attribute__((vector_size(WIDTH), aligned(1), may_alias));
typedef J$ UI$ __attribute__((vector_size(WIDTH), aligned(1), may_alias));
#define W$ ((long)(WIDTH / sizeof(E$)))
typedef unsigned char B$ __attribute__((vector_size(WIDTH / sizeof(E$)), aligned(1), may_alias));

//: select
INLINE V$ v_select$(I$ c, V$ a, V$ b) { return (V$)(((I$)a & c) | ((I$)b & ~c)); }

//: abs
INLINE V$ v_abs$(V$ a) { return (V$)((I$)a & ~(I$)SPLAT$(-0.0)); }

//: maximum <- select
INLINE V$ v_maximum$(V$ a, V$ b) { return v_select$((a > b) | (a != a), a, b); }

//: minimum <- select
INLINE V$ v_minimum$(V$ a, V$ b) { return v_select$((a < b) | (a != a), a, b); }

//: sign <- select
INLINE V$ v_sign$(V$ a) { return v_select$(a > 0, SPLAT$(1), v_select$(a < 0, SPLAT$(-1), a + SPLAT$(0.0))); }

//: mask
INLINE I$ v_mask$(const bool8 *x) { return __builtin_convertvector(*(const B$ *)x, I$) != 0; }

//: truth
INLINE void v_truth$(bool8 *y, I$ x) { *(B$ *)y = __builtin_convertvector(-x, B$); }

//: input
INLINE const @ *v_input$(const @ *x, @ *t, long b) {
  if (b % W$ == 0) return x;
  for (long i = 0; i < b; i++) t[i] = x[i];
  for (long i = b; i % W$; i++) t[i] = x[b - 1];
  return t;
}

//: input8
INLINE const bool8 *v_input8$(const bool8 *x, bool8 *t, long b) {
  if (b % W$ == 0) return x;
  memcpy(t, x, b);
  memset(t + b, 0, W$);
  return t;
}

//: exponential
INLINE Vd fused_(Vd a, Vd b, Vd c) { Vd r; for (int i = 0; i < Wd; i++) r[i] = __builtin_fma(a[i], b[i], c[i]); return r; }
INLINE Vd power_(Id n) { return (Vd)((n + 1023) << 52); }
INLINE Vd scaled_(Vd x, Id n) { const Id half = n >> 1; return x * power_(half) * power_(n - half); }
/* q = exp(r) - 1 to full relative accuracy, where x = n log(2) + r: the Taylor polynomial of degree 13 for |r| <= log(2) / 2. */
INLINE Vd exponential_(Vd x, Id *n) {
  const Vd shift = SPLATd(0x1.8p52), shifted = fused_(x, SPLATd(0x1.71547652b82fep+0), shift), k = shifted - shift;
  const Vd r = fused_(k, SPLATd(-0x1.abc9e3b39803fp-56), fused_(k, SPLATd(-0x1.62e42fefa39efp-1), x));
  Vd p = SPLATd(0x1.6124613a86d09p-33);
  p = fused_(p, r, SPLATd(0x1.1eed8eff8d898p-29));
  p = fused_(p, r, SPLATd(0x1.ae64567f544e4p-26));
  p = fused_(p, r, SPLATd(0x1.27e4fb7789f5cp-22));
  p = fused_(p, r, SPLATd(0x1.71de3a556c734p-19));
  p = fused_(p, r, SPLATd(0x1.a01a01a01a01ap-16));
  p = fused_(p, r, SPLATd(0x1.a01a01a01a01ap-13));
  p = fused_(p, r, SPLATd(0x1.6c16c16c16c17p-10));
  p = fused_(p, r, SPLATd(0x1.1111111111111p-7));
  p = fused_(p, r, SPLATd(0x1.5555555555555p-5));
  p = fused_(p, r, SPLATd(0x1.5555555555555p-3));
  p = fused_(p, r, SPLATd(0.5));
  *n = (Id)shifted - (Id)shift;
  return fused_(r * r, p, r);
}

//: exp <- select exponential
INLINE Vd exp_(Vd x) {
  Id n;
  x = v_selectd(x > SPLATd(800.0), SPLATd(800.0), v_selectd(x < SPLATd(-800.0), SPLATd(-800.0), x));
  const Vd q = exponential_(x, &n);
  return scaled_(SPLATd(1.0) + q, n);
}

//: tanh_sech_square <- select abs exponential
/* tanh(x) and 1 - tanh(x)^2: with w = 2^n (1 + q) = exp(-2|x|) they are (1 - w) / (1 + w) and 4 w / (1 + w)^2, in which
   1 - w = (1 - 2^n) - 2^n q does not cancel. Both are corrected by the error of the reciprocal. */
INLINE void tanh_pair_(Vd x, Vd *value, Vd *slope) {
  const Vd one = SPLATd(1.0);
  Id n;
  Vd t = v_absd(x) * SPLATd(-2.0);
  t = v_selectd(t < SPLATd(-800.0), SPLATd(-800.0), t);
  const Vd q = exponential_(t, &n);
  const Id far = n < -1000;
  const Vd s = power_((n & ~far) | (-1000 & far)), head = one + s, below = fused_(s, q, head), rest = fused_(s, q, head - below);
  const Vd inverse = one / below, error = fused_(-rest, inverse, fused_(-below, inverse, one));
  const Vd y = fused_(-s, q, one - s) * inverse, z = SPLATd(4.0) * (one + q) * inverse * inverse;
  *value = (Vd)((Id)fused_(y, error, y) | ((Id)x & (Id)SPLATd(-0.0)));
  *slope = scaled_(fused_(z, error + error, z), n);
}

//: sqrt | floor | ceil | trunc | rint
INLINE V$ v_NAME$(V$ a) { V$ r; for (int i = 0; i < W$; i++) r[i] = __builtin_NAMESUFFIX(a[i]); return r; }

//: sech_square
INLINE double sech_square_(double x) {
  const double z = exp(-fabs(x)), s = 2 * z / (1 + z * z);
  return s * s;
}

//: remainder
INLINE double remainder_(double a, double b) {
  const double r = fmod(a, b);
  return r ? ((b < 0) != (r < 0) ? r + b : r) : copysign(b == b ? r : r + b, b);
}

//: floor_divide
INLINE double floor_divide_(double a, double b) {
  if (!b) return a / b;
  double r = fmod(a, b), q = (a - r) / b;
  if (r && (b < 0) != (r < 0)) q -= 1;
  if (!q) return copysign(0, a / b);
  const double f = floor(q);
  return q - f > 0.5 ? f + 1 : f;
}
