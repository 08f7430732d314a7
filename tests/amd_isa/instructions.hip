// Instructions that the compiler rarely chooses by itself, by their builtins: out[lane] of in[lane].
struct two { const int *a; int *b; };
struct three { const int *a, *b; int *c; };
#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define LANES_OF(name, expression) \
    KERNEL name(const two m) { const int x = m.a[threadIdx.x]; m.b[threadIdx.x] = expression; }
#define DPP(name, control, rows, banks, zero) \
    LANES_OF(name, __builtin_amdgcn_update_dpp(-7, x, control, rows, banks, zero))

DPP(dpp_quad, 0x1b, 15, 15, false)
DPP(dpp_shift_left, 0x101, 15, 15, false)
DPP(dpp_shift_right, 0x113, 15, 15, true)
DPP(dpp_rotate, 0x125, 15, 15, false)
DPP(dpp_mirror, 0x140, 15, 15, false)
DPP(dpp_half_mirror, 0x141, 15, 15, false)
DPP(dpp_rows, 0x111, 5, 15, false)
DPP(dpp_banks, 0x111, 15, 6, true)
LANES_OF(swizzle_swap, __builtin_amdgcn_ds_swizzle(x, 0x041f))
LANES_OF(swizzle_quad, __builtin_amdgcn_ds_swizzle(x, 0x80b1))
LANES_OF(bpermute, __builtin_amdgcn_ds_bpermute(4 * (threadIdx.x ^ 5), x))
LANES_OF(permute, __builtin_amdgcn_ds_permute(4 * (threadIdx.x ^ 9), x))
LANES_OF(read_first, __builtin_amdgcn_readfirstlane(x))
LANES_OF(read_lane, __builtin_amdgcn_readlane(x, 11))
LANES_OF(before, (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)))
LANES_OF(byte_permute, (int)__builtin_amdgcn_perm(x, 0x11223344, 0x0c070100))
LANES_OF(align_bits, (int)__builtin_amdgcn_alignbit(x, 0x12345678, 8))
LANES_OF(sad, (int)__builtin_amdgcn_sad_u8(x, 0x10203040, 5))
LANES_OF(median, __builtin_amdgcn_fmed3f(x, -3.5f, 20.25f) * 4)
LANES_OF(bit_field, (int)__builtin_amdgcn_sbfe(x * 77777, 5, 9))
LANES_OF(ballot, __popcll(__ballot(x & 1)))
#ifdef __gfx1100__
LANES_OF(row_share, __builtin_amdgcn_update_dpp(-7, x, 0x153, 15, 15, false))
LANES_OF(row_xmask, __builtin_amdgcn_update_dpp(-7, x, 0x166, 15, 15, false))
LANES_OF(permlane, __builtin_amdgcn_permlane16(x, x, 0x76543210, 0xfedcba98, false, false))
LANES_OF(permlane_x, __builtin_amdgcn_permlanex16(x, x, 0x01234567, 0x89abcdef, false, false))
#else
LANES_OF(row_newbcast, __builtin_amdgcn_update_dpp(-7, x, 0x153, 15, 15, false))
LANES_OF(bcast15, __builtin_amdgcn_update_dpp(-7, x, 0x142, 15, 15, false))
LANES_OF(bcast31, __builtin_amdgcn_update_dpp(-7, x, 0x143, 15, 15, false))
LANES_OF(wave_shift, __builtin_amdgcn_update_dpp(-7, x, 0x138, 15, 15, false))
#endif

template <typename T> __device__ void divide(const three m)
{
    const T *x = (const T *)m.a, *by = (const T *)m.b;
    T *quotients = (T *)m.c;
    for (int k = 0; k < 32; ++k) quotients[k * blockDim.x + threadIdx.x] = x[threadIdx.x] / by[k];
}
KERNEL divide_f32(const three m) { divide<float>(m); }
KERNEL divide_f64(const three m) { divide<double>(m); }

typedef _Float16 fp16;
typedef fp16 fp16x2 __attribute__((ext_vector_type(2)));
typedef fp16 fp16x4 __attribute__((ext_vector_type(4)));
typedef fp16 fp16x16 __attribute__((ext_vector_type(16)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef unsigned short u16x2 __attribute__((ext_vector_type(2)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x16 __attribute__((ext_vector_type(16)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef double f64x4 __attribute__((ext_vector_type(4)));

KERNEL packed_halves(const three m)
{
    const fp16x2 x = ((const fp16x2 *)m.a)[threadIdx.x], y = ((const fp16x2 *)m.b)[threadIdx.x];
    ((fp16x2 *)m.c)[threadIdx.x] = x * y + x.yx - y;
}
KERNEL dot_halves(const three m)
{
    ((float *)m.c)[threadIdx.x] =
        __builtin_amdgcn_fdot2(((const fp16x2 *)m.a)[threadIdx.x], ((const fp16x2 *)m.b)[threadIdx.x], 1.5f, false);
}
// out[lane] = a . b + 7: bytes and groups of four bits, whose signs the instruction's name or its modifiers say.
#define DOT_OF(name, expression)                                                      \
    KERNEL name(const three m)                                                        \
    {                                                                                 \
        const int a = m.a[threadIdx.x], b = m.b[threadIdx.x];                         \
        m.c[threadIdx.x] = (int)(expression);                                         \
    }
DOT_OF(dot_uint8_uint8, __builtin_amdgcn_udot4(a, b, 7, false))
DOT_OF(dot_uint4_uint4, __builtin_amdgcn_udot8(a, b, 7, false))
#ifdef __gfx1100__
DOT_OF(dot_int8_int8, __builtin_amdgcn_sudot4(true, a, true, b, 7, false))
DOT_OF(dot_int8_uint8, __builtin_amdgcn_sudot4(true, a, false, b, 7, false))
DOT_OF(dot_uint8_int8, __builtin_amdgcn_sudot4(false, a, true, b, 7, false))
DOT_OF(dot_int4_int4, __builtin_amdgcn_sudot8(true, a, true, b, 7, false))
DOT_OF(dot_int4_uint4, __builtin_amdgcn_sudot8(true, a, false, b, 7, false))
DOT_OF(dot_uint4_int4, __builtin_amdgcn_sudot8(false, a, true, b, 7, false))
#else
DOT_OF(dot_int8_int8, __builtin_amdgcn_sdot4(a, b, 7, false))
DOT_OF(dot_int4_int4, __builtin_amdgcn_sdot8(a, b, 7, false))
DOT_OF(dot_int16_int16, __builtin_amdgcn_sdot2(__builtin_bit_cast(i16x2, a), __builtin_bit_cast(i16x2, b), 7, false))
DOT_OF(dot_uint16_uint16, __builtin_amdgcn_udot2(__builtin_bit_cast(u16x2, a), __builtin_bit_cast(u16x2, b), 7, false))
#endif
KERNEL mixed_fma(const three m)
{
    const fp16x2 x = ((const fp16x2 *)m.a)[threadIdx.x], y = ((const fp16x2 *)m.b)[threadIdx.x];
    ((float *)m.c)[threadIdx.x] = __builtin_fmaf((float)x.y, -(float)y.x, (float)x.x);
}
KERNEL mixed_fma_halves(const three m)
{
    const fp16x2 x = ((const fp16x2 *)m.a)[threadIdx.x], y = ((const fp16x2 *)m.b)[threadIdx.x];
    const float low = __builtin_fmaf((float)x.x, 2.5f, (float)y.y);
    const float high = __builtin_fmaf((float)x.y, -2.5f, (float)y.x);
    ((fp16x2 *)m.c)[threadIdx.x] = fp16x2{(fp16)low, (fp16)high};
}
KERNEL quotient(const three m)
{
    ((float *)m.c)[threadIdx.x] = ((const float *)m.a)[threadIdx.x] / ((const float *)m.b)[threadIdx.x];
}
KERNEL quotient_double(const three m)
{
    ((double *)m.c)[threadIdx.x] = ((const double *)m.a)[threadIdx.x] / ((const double *)m.b)[threadIdx.x];
}
KERNEL root_double(const three m) { ((double *)m.c)[threadIdx.x] = sqrt(((const double *)m.a)[threadIdx.x]); }

// Sums and differences that stay where they would leave their type: of words, of halves, and of pairs of halves.
template <typename T> static __device__ void saturate(const three &m)
{
    const T a = ((const T *)m.a)[threadIdx.x], b = ((const T *)m.b)[threadIdx.x];
    ((T *)m.c)[2 * threadIdx.x] = __builtin_elementwise_add_sat(a, b);
    ((T *)m.c)[2 * threadIdx.x + 1] = __builtin_elementwise_sub_sat(a, b);
}
// Vectors of one, as the builtins widen a half to an int.
typedef short i16x1 __attribute__((ext_vector_type(1)));
typedef unsigned short u16x1 __attribute__((ext_vector_type(1)));
KERNEL saturate_int32(const three m) { saturate<int>(m); }
KERNEL saturate_uint32(const three m) { saturate<unsigned>(m); }
KERNEL saturate_int16(const three m) { saturate<i16x1>(m); }
KERNEL saturate_uint16(const three m) { saturate<u16x1>(m); }
KERNEL saturate_int16_pairs(const three m) { saturate<i16x2>(m); }
KERNEL saturate_uint16_pairs(const three m) { saturate<u16x2>(m); }

// C = A B + C by one matrix instruction; A by rows, B and C by rows.
#ifdef __gfx1100__
KERNEL matrix_halves(const three m)
{
    const int lane = threadIdx.x % 16, high = threadIdx.x / 16;
    fp16x16 a, b;
    f32x8 c;
    for (int k = 0; k < 16; ++k) {
        a[k] = ((const fp16 *)m.a)[lane * 16 + k];
        b[k] = ((const fp16 *)m.b)[k * 16 + lane];
    }
    for (int v = 0; v < 8; ++v) c[v] = ((float *)m.c)[(2 * v + high) * 16 + lane];
    c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
    for (int v = 0; v < 8; ++v) ((float *)m.c)[(2 * v + high) * 16 + lane] = c[v];
}
KERNEL matrix_bfloats(const three m)
{
    const int lane = threadIdx.x % 16, high = threadIdx.x / 16;
    i16x16 a, b;
    f32x8 c;
    for (int k = 0; k < 16; ++k) {
        a[k] = ((const short *)m.a)[lane * 16 + k];
        b[k] = ((const short *)m.b)[k * 16 + lane];
    }
    for (int v = 0; v < 8; ++v) c[v] = ((float *)m.c)[(2 * v + high) * 16 + lane];
    c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c);
    for (int v = 0; v < 8; ++v) ((float *)m.c)[(2 * v + high) * 16 + lane] = c[v];
}
#else
KERNEL matrix_halves(const three m)
{
    const int lane = threadIdx.x % 16, group = threadIdx.x / 16;
    fp16x4 a, b;
    f32x4 c;
    for (int k = 0; k < 4; ++k) {
        a[k] = ((const fp16 *)m.a)[lane * 16 + 4 * group + k];
        b[k] = ((const fp16 *)m.b)[(4 * group + k) * 16 + lane];
    }
    for (int v = 0; v < 4; ++v) c[v] = ((float *)m.c)[(4 * group + v) * 16 + lane];
    c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0);
    for (int v = 0; v < 4; ++v) ((float *)m.c)[(4 * group + v) * 16 + lane] = c[v];
}
KERNEL matrix_bfloats(const three m)
{
    const int lane = threadIdx.x % 16, group = threadIdx.x / 16;
    i16x4 a, b;
    f32x4 c;
    for (int k = 0; k < 4; ++k) {
        a[k] = ((const short *)m.a)[lane * 16 + 4 * group + k];
        b[k] = ((const short *)m.b)[(4 * group + k) * 16 + lane];
    }
    for (int v = 0; v < 4; ++v) c[v] = ((float *)m.c)[(4 * group + v) * 16 + lane];
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0);
    for (int v = 0; v < 4; ++v) ((float *)m.c)[(4 * group + v) * 16 + lane] = c[v];
}
KERNEL matrix_floats(const three m) // 32 x 32, depth 2
{
    const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
    f32x16 c;
    for (int v = 0; v < 16; ++v) c[v] = ((float *)m.c)[(8 * (v / 4) + 4 * group + v % 4) * 32 + lane];
    const float a = ((const float *)m.a)[lane * 2 + group], b = ((const float *)m.b)[group * 32 + lane];
    c = __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, c, 0, 0, 0);
    for (int v = 0; v < 16; ++v) ((float *)m.c)[(8 * (v / 4) + 4 * group + v % 4) * 32 + lane] = c[v];
}
KERNEL matrix_doubles(const three m) // 16 x 16, depth 4
{
    const int lane = threadIdx.x % 16, group = threadIdx.x / 16;
    f64x4 c;
    for (int v = 0; v < 4; ++v) c[v] = ((double *)m.c)[(4 * v + group) * 16 + lane];
    c = __builtin_amdgcn_mfma_f64_16x16x4f64(((const double *)m.a)[lane * 4 + group],
                                             ((const double *)m.b)[group * 16 + lane], c, 0, 0, 0);
    for (int v = 0; v < 4; ++v) ((double *)m.c)[(4 * v + group) * 16 + lane] = c[v];
}
#endif
