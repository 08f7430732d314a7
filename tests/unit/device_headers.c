/* The functions of csrc/device as loops over arrays, for test_device_headers.py: <function>(out, a, b, n), b unused
   where there is
   one argument. Compiled as a generated kernel is. */
#include "pa_base.h"
#include "pa_check.h"
#include "pa_shape.h"
#include "pa_int.h"
#include "pa_real.h"
#include "pa_float8.h"
#include "pa_complex.h"
#include "pa_atomic.h"

#ifdef __cplusplus
#define API extern "C" __attribute__((visibility("default")))
#else
#define API __attribute__((visibility("default")))
#endif

#define LOOP1(F, O, A) API void v_##F(O *o, const A *a, const A *b, int64_t n) { \
    (void)b; for (int64_t i = 0; i < n; i++) o[i] = F(a[i]); }
#define LOOP2(F, O, A) API void v_##F(O *o, const A *a, const A *b, int64_t n) { \
    for (int64_t i = 0; i < n; i++) o[i] = F(a[i], b[i]); }

#define INT(S, T, U, W, N)                                                                                             \
    LOOP2(pa_add_##S, T, T) LOOP2(pa_sub_##S, T, T) LOOP2(pa_mul_##S, T, T) LOOP1(pa_neg_##S, T, T)                    \
    LOOP1(pa_square_##S, T, T) LOOP2(pa_min_##S, T, T) LOOP2(pa_max_##S, T, T) LOOP2(pa_shl_##S, T, T)                 \
    LOOP2(pa_shr_##S, T, T) LOOP2(pa_pow_##S, T, T) LOOP2(pa_floordiv_##S, T, T) LOOP2(pa_mod_##S, T, T)               \
    LOOP1(pa_abs_##S, T, T) LOOP1(pa_sign_##S, T, T) LOOP2(pa_fmod_##S, T, T)
#define REAL(S, T)                                                                                                     \
    LOOP1(pa_sin_##S, T, T) LOOP1(pa_cos_##S, T, T) LOOP1(pa_tan_##S, T, T) LOOP1(pa_asin_##S, T, T)                   \
    LOOP1(pa_acos_##S, T, T) LOOP1(pa_atan_##S, T, T) LOOP1(pa_sinh_##S, T, T) LOOP1(pa_cosh_##S, T, T)                \
    LOOP1(pa_tanh_##S, T, T) LOOP1(pa_asinh_##S, T, T) LOOP1(pa_acosh_##S, T, T) LOOP1(pa_atanh_##S, T, T)             \
    LOOP1(pa_exp_##S, T, T) LOOP1(pa_exp2_##S, T, T) LOOP1(pa_expm1_##S, T, T) LOOP1(pa_log_##S, T, T)                 \
    LOOP1(pa_log2_##S, T, T) LOOP1(pa_log10_##S, T, T) LOOP1(pa_log1p_##S, T, T) LOOP1(pa_sqrt_##S, T, T)              \
    LOOP1(pa_cbrt_##S, T, T) LOOP1(pa_floor_##S, T, T) LOOP1(pa_ceil_##S, T, T) LOOP1(pa_trunc_##S, T, T)              \
    LOOP1(pa_rint_##S, T, T) LOOP1(pa_round_##S, T, T) LOOP1(pa_fabs_##S, T, T) LOOP1(pa_abs_##S, T, T)                \
    LOOP1(pa_erf_##S, T, T) LOOP1(pa_erfc_##S, T, T) LOOP1(pa_lgamma_##S, T, T) LOOP1(pa_tgamma_##S, T, T)             \
    LOOP1(pa_sign_##S, T, T) LOOP1(pa_square_##S, T, T) LOOP1(pa_recip_##S, T, T) LOOP1(pa_neg_##S, T, T)              \
    LOOP2(pa_pow_##S, T, T) LOOP2(pa_atan2_##S, T, T) LOOP2(pa_hypot_##S, T, T) LOOP2(pa_copysign_##S, T, T)           \
    LOOP2(pa_nextafter_##S, T, T) LOOP2(pa_fmod_##S, T, T) LOOP2(pa_mod_##S, T, T) LOOP2(pa_floordiv_##S, T, T)        \
    LOOP2(pa_max_##S, T, T) LOOP2(pa_min_##S, T, T) LOOP2(pa_fmax_##S, T, T) LOOP2(pa_fmin_##S, T, T)                  \
    LOOP2(pa_logaddexp_##S, T, T) LOOP2(pa_logaddexp2_##S, T, T) LOOP2(pa_heaviside_##S, T, T)                         \
    LOOP1(pa_isnan_##S, bool, T) LOOP1(pa_isinf_##S, bool, T) LOOP1(pa_isfinite_##S, bool, T) \
    LOOP1(pa_signbit_##S, bool, T) \
    LOOP1(pa_cast_##S##_b, bool, T) LOOP1(pa_cast_##S##_i8, int8_t, T) LOOP1(pa_cast_##S##_i16, int16_t, T)            \
    LOOP1(pa_cast_##S##_i32, int32_t, T) LOOP1(pa_cast_##S##_i64, int64_t, T) LOOP1(pa_cast_##S##_u8, uint8_t, T)      \
    LOOP1(pa_cast_##S##_u16, uint16_t, T) LOOP1(pa_cast_##S##_u32, uint32_t, T) LOOP1(pa_cast_##S##_u64, uint64_t, T)
#define COMPLEX(S, T)                                                                                                  \
    LOOP1(pa_exp_##S, pa_##S, pa_##S) LOOP1(pa_log_##S, pa_##S, pa_##S) LOOP1(pa_sqrt_##S, pa_##S, pa_##S)             \
    LOOP1(pa_sin_##S, pa_##S, pa_##S) LOOP1(pa_cos_##S, pa_##S, pa_##S) LOOP1(pa_tan_##S, pa_##S, pa_##S)              \
    LOOP1(pa_sinh_##S, pa_##S, pa_##S) LOOP1(pa_cosh_##S, pa_##S, pa_##S) LOOP1(pa_tanh_##S, pa_##S, pa_##S)           \
    LOOP1(pa_asin_##S, pa_##S, pa_##S) LOOP1(pa_acos_##S, pa_##S, pa_##S) LOOP1(pa_atan_##S, pa_##S, pa_##S)           \
    LOOP1(pa_asinh_##S, pa_##S, pa_##S) LOOP1(pa_acosh_##S, pa_##S, pa_##S) LOOP1(pa_atanh_##S, pa_##S, pa_##S)        \
    LOOP1(pa_expm1_##S, pa_##S, pa_##S) LOOP1(pa_log1p_##S, pa_##S, pa_##S) LOOP1(pa_log2_##S, pa_##S, pa_##S)         \
    LOOP1(pa_log10_##S, pa_##S, pa_##S) LOOP1(pa_square_##S, pa_##S, pa_##S) LOOP1(pa_recip_##S, pa_##S, pa_##S)       \
    LOOP1(pa_sign_##S, pa_##S, pa_##S) LOOP1(pa_round_##S, pa_##S, pa_##S) LOOP1(pa_neg_##S, pa_##S, pa_##S)           \
    LOOP1(pa_conj_##S, pa_##S, pa_##S) LOOP1(pa_abs_##S, T, pa_##S) LOOP1(pa_angle_##S, T, pa_##S)                     \
    LOOP1(pa_real_##S, T, pa_##S) LOOP1(pa_imag_##S, T, pa_##S) LOOP1(pa_isnan_##S, bool, pa_##S)                      \
    LOOP1(pa_isinf_##S, bool, pa_##S) LOOP1(pa_isfinite_##S, bool, pa_##S) LOOP1(pa_cast_##S##_b, bool, pa_##S)        \
    LOOP2(pa_add_##S, pa_##S, pa_##S) LOOP2(pa_sub_##S, pa_##S, pa_##S) LOOP2(pa_mul_##S, pa_##S, pa_##S)              \
    LOOP2(pa_div_##S, pa_##S, pa_##S) LOOP2(pa_pow_##S, pa_##S, pa_##S) LOOP2(pa_eq_##S, bool, pa_##S)                 \
    LOOP2(pa_ne_##S, bool, pa_##S)
#define NARROW(S)                                                                                                      \
    LOOP1(pa_f32_from_##S, float, pa_##S) LOOP1(pa_f64_from_##S, double, pa_##S)                                       \
    LOOP1(pa_##S##_from_f32, pa_##S, float) LOOP1(pa_##S##_from_f64, pa_##S, double)
/* every element is applied to *o, and the old value goes back into b */
#define ATOM(OP, S, T) API void v_pa_atomic_##OP##_##S(T *o, const T *a, T *b, int64_t n) { \
    for (int64_t i = 0; i < n; i++) b[i] = pa_atomic_##OP##_##S(o, a[i]); }
#define CAS(S, T) API void v_pa_atomic_cas_##S(T *o, const T *a, T *b, int64_t n) { \
    for (int64_t i = 0; i < n; i++) b[i] = pa_atomic_cas_##S(o, a[i], b[i]); }
#define ATOMS(S, T) ATOM(add, S, T) ATOM(sub, S, T) ATOM(min, S, T) ATOM(max, S, T) ATOM(exchange, S, T) CAS(S, T)
#define BITS(S, T) ATOM(and, S, T) ATOM(or, S, T) ATOM(xor, S, T)
#define ATOMIC_INT(S, T, U, W, N) ATOMS(S, T) BITS(S, T)

COMPLEX(c64, float) COMPLEX(c128, double)
#ifndef PA_COMPLEX_OWN
PA_SIGNED_TYPES(INT) PA_UNSIGNED_TYPES(INT)
REAL(f32, float) REAL(f64, double)
NARROW(f16) NARROW(bf16) NARROW(e4m3) NARROW(e5m2)
PA_SIGNED_TYPES(ATOMIC_INT) PA_UNSIGNED_TYPES(ATOMIC_INT)
ATOMS(f32, float) ATOMS(f64, double) ATOMS(f16, pa_f16) ATOMS(bf16, pa_bf16) ATOMS(e4m3, pa_e4m3)
ATOMS(e5m2, pa_e5m2) BITS(b, bool)
ATOM(exchange, b, bool) CAS(b, bool)
ATOM(add, c64, pa_c64) ATOM(sub, c64, pa_c64) ATOM(add, c128, pa_c128) ATOM(sub, c128, pa_c128)

API int64_t x_range_len(int64_t a, int64_t b, int64_t s) { return pa_range_len(a, b, s); }
API int64_t x_slice_start(int64_t i, int64_t n) { return pa_slice_start(i, n); }
API int64_t x_slice_stop(int64_t i, int64_t n) { return pa_slice_stop(i, n); }
API int64_t x_slice_start_step(int64_t i, int64_t n, int64_t s) { return pa_slice_start_step(i, n, s); }
API int64_t x_slice_stop_step(int64_t i, int64_t n, int64_t s) { return pa_slice_stop_step(i, n, s); }
API int64_t x_slice_start_none(int64_t n, int64_t s) { return pa_slice_start_none(n, s); }
API int64_t x_slice_stop_none(int64_t n, int64_t s) { return pa_slice_stop_none(n, s); }
API int64_t x_slice_len(int64_t a, int64_t b, int64_t s) { return pa_slice_len(a, b, s); }
API int64_t x_in_range(int64_t i, int64_t n, int64_t unused) { (void)unused; return pa_in_range(i, n); }
API int64_t x_in_view(int64_t o, int64_t s, int64_t n) { return pa_in_view(o, s, n); }

static void keep(pa_runtime *rt, const pa_failure *c) { *rt->failure = *c; }
/* one failing check below `depth` frames, sites 1 (outermost) to depth; 0 when nothing was reported */
API int x_check(pa_failure *out, int kind, int depth, int64_t index, int64_t extent, int64_t offset, int64_t size)
{
    static pa_frame frames[100];
    pa_runtime rt;
    bool fine;
    const pa_frame *up;
    rt.fail = keep;
    rt.failure = out;
    for (int i = 0; i < depth; i++) {
        frames[i].up = i ? &frames[i - 1] : 0;
        frames[i].site = i + 1;
    }
    up = depth ? &frames[depth - 1] : 0;
    fine = kind == PA_FAIL_INDEX ? pa_check_index(&rt, up, 7, 2, 16, index, extent, offset, size)
         : kind == PA_FAIL_STEP0 ? pa_check_step(&rt, up, 7, 2, 16, index)
                                 : pa_check_view(&rt, up, kind, 7, 2, 16, offset, size, extent, 0);
    return fine ? 0 : out->set;
}
#endif
