/* pa_gemm_wgmma.h: instructions by which a warpgroup of sm_90 multiplies in shared memory. */
#ifndef PA_GEMM_WGMMA_H
#define PA_GEMM_WGMMA_H

#include "pa_wgmma_registers.h"

/* On sm_90, four warps at once: 64 x N of C += what the descriptors name in shared memory. */
#if PA_BYTES == 1 && !PA_M_FLOAT8
#define PA_M_SUM "+r"
#else
#define PA_M_SUM "+f"
#endif
#define PA_M_1(x) PA_M_SUM((x)[0]), PA_M_SUM((x)[1]), PA_M_SUM((x)[2]), PA_M_SUM((x)[3])
#define PA_M_4(x, n) PA_M_1(x[n]), PA_M_1(x[n + 1]), PA_M_1(x[n + 2]), PA_M_1(x[n + 3])
#define PA_M_8(x, n) PA_M_4(x, n), PA_M_4(x, n + 4)
#if PA_M_FLOAT8 /* lines of both are along the depth, as of all that isn't of two bytes */
#define PA_M_ISSUE(N, SUMS, A, B, GO, ALONG_A, ALONG_B, ...)                                                           \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " GO ", 0; wgmma.mma_async.sync.aligned.m64n" N "k32.f32." PA_MMA "." \
                 PA_MMA " {" SUMS "}, " A ", " B ", p, 1, 1; }"                                                        \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(go))
#elif PA_BYTES == 1
#define PA_M_ISSUE(N, SUMS, A, B, GO, ALONG_A, ALONG_B, ...)                                                           \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " GO ", 0; wgmma.mma_async.sync.aligned.m64n" N "k32.s32." PA_MMA "." \
                 PA_MMA " {" SUMS "}, " A ", " B ", p; }"                                                              \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(go))
#elif PA_BYTES == 4
#define PA_M_ISSUE(N, SUMS, A, B, GO, ALONG_A, ALONG_B, ...)                                                           \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " GO ", 0; wgmma.mma_async.sync.aligned.m64n" N "k8.f32.tf32.tf32 {"  \
                 SUMS "}, " A ", " B ", p, 1, 1; }"                                                                    \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(go))
#else
#define PA_M_ISSUE(N, SUMS, A, B, GO, ALONG_A, ALONG_B, ...)                                                           \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " GO ", 0; wgmma.mma_async.sync.aligned.m64n" N "k16.f32." PA_MMA     \
                 "." PA_MMA " {" SUMS "}, " A ", " B ", p, 1, 1, " ALONG_A ", " ALONG_B "; }"                          \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(go), "n"(!K_MAJOR_A), "n"(!K_MAJOR_B))
#endif
/* Of COLUMNS. Without `go` c is written only. */
template <int COLUMNS, bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_wgmma(PA_ACC (*c)[4], uint64_t a, uint64_t b, int go = 1)
{
    if constexpr (COLUMNS == 64) PA_M_ISSUE("64", PA_REGISTERS_32, "%32", "%33", "%34", "%35", "%36", PA_M_8(c, 0));
    else if constexpr (COLUMNS == 128)
        PA_M_ISSUE("128", PA_REGISTERS_64, "%64", "%65", "%66", "%67", "%68", PA_M_8(c, 0), PA_M_8(c, 8));
    else
        PA_M_ISSUE("256", PA_REGISTERS_128, "%128", "%129", "%130", "%131", "%132", PA_M_8(c, 0), PA_M_8(c, 8),
                   PA_M_8(c, 16), PA_M_8(c, 24));
}

#if PA_BYTES == 4
/* The same with a in registers. */
#define PA_M_ISSUE_FROM(N, SUMS, A, B, GO, ...)                                                                        \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " GO ", 0; wgmma.mma_async.sync.aligned.m64n" N "k8.f32.tf32.tf32 {"  \
                 SUMS "}, {" A "}, " B ", p, 1, 1; }"                                                                  \
                 : __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1))
PA_FN void pa_wgmma_from(float (*c)[4], const uint32_t *a, uint64_t b)
{
#if PA_M_COLUMNS == 64
    PA_M_ISSUE_FROM("64", PA_REGISTERS_32, "%32, %33, %34, %35", "%36", "%37", PA_M_8(c, 0));
#elif PA_M_COLUMNS == 128
    PA_M_ISSUE_FROM("128", PA_REGISTERS_64, "%64, %65, %66, %67", "%68", "%69", PA_M_8(c, 0), PA_M_8(c, 8));
#else
    PA_M_ISSUE_FROM("256", PA_REGISTERS_128, "%128, %129, %130, %131", "%132", "%133", PA_M_8(c, 0), PA_M_8(c, 8),
                    PA_M_8(c, 16), PA_M_8(c, 24));
#endif
}
#endif

/* A descriptor of lines whose chunks are swizzled: bytes between groups of 8 lines, and between panels across the
   depth. */
template <bool K_MAJOR> PA_FN uint64_t pa_wgmma_descriptor(unsigned address)
{
    const uint64_t line = K_MAJOR ? PA_M_DEPTH * PA_M_SIZE : 128, kind = line == 128 ? 1 : 2;
    return kind << 62 | line * 8 >> 4 << 32 | (uint64_t)(PA_M_PANEL >> 4) << 16 | (address & 0x3ffff) >> 4;
}

/* No sum is read before. */
template <int N> PA_FN void pa_mma_keep(PA_ACC (&sum)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) asm volatile("" : PA_M_SUM(sum[j][e])::"memory");
}

/* Adds the products of a stage, whose operands the descriptors name: summed by themselves, then added to `sum` in
   float32, where tensor cores keep too few bits. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_wgmma_add_stage(PA_ACC (&sum)[PA_M_COLUMNS / 8][4], uint64_t a, uint64_t b)
{
    enum {
        WIDTH = PA_M_COLUMNS > 128 ? 128 : PA_M_COLUMNS, /* for want of registers */
        NEXT_A = (K_MAJOR_A ? 32 : 2048) >> 4,
        NEXT_B = (K_MAJOR_B ? 32 : 2048) >> 4,
        NEXT_PART = (K_MAJOR_B ? WIDTH * 128 : WIDTH / 64 * PA_M_PANEL) >> 4
    };
#pragma unroll
    for (int part = 0; part < PA_M_COLUMNS / WIDTH; ++part) {
        PA_ACC some[WIDTH / 8][4];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int d = 0; d < PA_M_STEPS; ++d)
            pa_wgmma<WIDTH, K_MAJOR_A, K_MAJOR_B>(some, a + d * NEXT_A, b + part * NEXT_PART + d * NEXT_B, d != 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        pa_mma_keep(some);
#pragma unroll
        for (int j = 0; j < WIDTH / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sum[part * WIDTH / 8 + j][e] += some[j][e];
    }
}
/* Starts to add the products of a stage, to sums in tensor cores where they have the bits for it: those begin with
   the products, without `go`. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_wgmma_stage(PA_ACC (&sum)[PA_M_COLUMNS / 8][4], uint64_t a, uint64_t b, int go = 1)
{
#if PA_M_FLOAT8 /* about 14 bits */
    pa_wgmma_add_stage<true, true>(sum, a, b);
#else
    enum { NEXT_A = (K_MAJOR_A ? 32 : 2048) >> 4, NEXT_B = (K_MAJOR_B ? 32 : 2048) >> 4 };
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int d = 0; d < PA_M_STEPS; ++d)
        pa_wgmma<PA_M_COLUMNS, K_MAJOR_A, K_MAJOR_B>(sum, a + d * NEXT_A, b + d * NEXT_B, d ? 1 : go);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
#endif
