/* pa_matrix_amd.h: a wave's products of 16 x 16 elements by the matrix instructions of AMD GPUs: MFMA of CDNA 3 in
   waves of 64, WMMA of RDNA 3 in waves of 32 (AMD Instinct MI300 and RDNA 3 ISA guides; AMD's matrix instruction
   calculator). A fragment is 16 lines of an operand, rows of A or columns of B, from chunks of 16 bytes along the
   depth: lane l has line l % 16, with MFMA chunk l / 16 of four, with WMMA both chunks of two. An MFMA takes a part of
   each lane's chunk, the same of A and of B: in which order the depth is summed is free. Of the results lane l has
   column l % 16. PA_MATRIX_AMD says whether the target has such instructions for elements of so many bytes. */
#ifndef PA_MATRIX_AMD_H
#define PA_MATRIX_AMD_H
#include "pa_base.h"

#if defined(__gfx942__)
#define PA_MATRIX_AMD(bytes) ((bytes) == 2 || (bytes) == 4 || (bytes) == 8)
#define PA_MATRIX_WAVE 64
#elif defined(__GFX11__) && !(defined(__AMDGCN_WAVEFRONT_SIZE) && __AMDGCN_WAVEFRONT_SIZE == 64)
#define PA_MATRIX_AMD(bytes) ((bytes) == 2)
#define PA_MATRIX_WAVE 32
#else
#define PA_MATRIX_AMD(bytes) 0
#define PA_MATRIX_WAVE 0
#endif

#if PA_MATRIX_AMD(2)
#define PA_MATRIX_VECTOR(name, type, n) typedef type name __attribute__((ext_vector_type(n)))
PA_MATRIX_VECTOR(pa_matrix_chunk, uint32_t, 4);
PA_MATRIX_VECTOR(pa_matrix_f16x4, _Float16, 4);
PA_MATRIX_VECTOR(pa_matrix_f16x16, _Float16, 16);
PA_MATRIX_VECTOR(pa_matrix_i16x4, short, 4);
PA_MATRIX_VECTOR(pa_matrix_i16x16, short, 16);
PA_MATRIX_VECTOR(pa_matrix_f32x4, float, 4);
PA_MATRIX_VECTOR(pa_matrix_f32x8, float, 8);
PA_MATRIX_VECTOR(pa_matrix_f64x4, double, 4);

#if defined(__gfx942__)
enum {
    PA_MATRIX_CHUNKS = 4, /* of the depth of a fragment */
    PA_MATRIX_OWN = 1,    /* of these, a lane's */
    PA_MATRIX_RESULTS = 4 /* of a lane */
};
PA_FN int pa_matrix_first_chunk(int lane) { return lane / 16; }
template <class SUM> struct pa_matrix_results { typedef pa_matrix_f32x4 type; };
template <> struct pa_matrix_results<double> { typedef pa_matrix_f64x4 type; };
/* The row of a lane's result `e`. */
PA_FN int pa_matrix_row(float, int e, int lane) { return lane / 16 * 4 + e; }
PA_FN int pa_matrix_row(double, int e, int lane) { return lane / 16 + e * 4; }
#else
enum { PA_MATRIX_CHUNKS = 2, PA_MATRIX_OWN = 2, PA_MATRIX_RESULTS = 8 };
PA_FN int pa_matrix_first_chunk(int) { return 0; }
template <class SUM> struct pa_matrix_results { typedef pa_matrix_f32x8 type; };
PA_FN int pa_matrix_row(float, int e, int lane) { return e * 2 + lane / 16; }
#endif

union pa_matrix_fragment {
    pa_matrix_chunk chunks[PA_MATRIX_OWN];
#if defined(__gfx942__)
    pa_matrix_f16x4 f16[2];
    pa_matrix_i16x4 bf16[2];
    float f32[4];
    double f64[2];
#else
    pa_matrix_f16x16 f16;
    pa_matrix_i16x16 bf16;
#endif
};

/* c += a b, of elements of the first argument's type. */
#if defined(__gfx942__)
#define PA_MATRIX_MULTIPLY(type, results, parts, builtin, part)                                                        \
    PA_FN void pa_matrix_multiply(type, results &c, const pa_matrix_fragment &a, const pa_matrix_fragment &b)          \
    {                                                                                                                  \
        _Pragma("unroll") for (int k = 0; k < parts; ++k) c = builtin(a.part[k], b.part[k], c, 0, 0, 0);               \
    }
PA_MATRIX_MULTIPLY(pa_f16, pa_matrix_f32x4, 2, __builtin_amdgcn_mfma_f32_16x16x16f16, f16)
PA_MATRIX_MULTIPLY(pa_bf16, pa_matrix_f32x4, 2, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k, bf16)
PA_MATRIX_MULTIPLY(float, pa_matrix_f32x4, 4, __builtin_amdgcn_mfma_f32_16x16x4f32, f32)
PA_MATRIX_MULTIPLY(double, pa_matrix_f64x4, 2, __builtin_amdgcn_mfma_f64_16x16x4f64, f64)
#else
#define PA_MATRIX_MULTIPLY(type, builtin, part)                                                                        \
    PA_FN void pa_matrix_multiply(type, pa_matrix_f32x8 &c, const pa_matrix_fragment &a, const pa_matrix_fragment &b)  \
    {                                                                                                                  \
        c = builtin(a.part, b.part, c);                                                                                \
    }
PA_MATRIX_MULTIPLY(pa_f16, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32, f16)
PA_MATRIX_MULTIPLY(pa_bf16, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32, bf16)
#endif
#endif
#endif
