/* pa_team_gpu.h: checked accesses, and exclusive scans over the threads of a warp and the warps of a team. With the
   macros PA_ACC, PA_COMBINE(a, b), PA_IDENTITY and PA_TEAM (threads).
   A warp is 32 threads here, also where the hardware's has 64. */
#ifndef PA_TEAM_GPU_H
#define PA_TEAM_GPU_H
#include "pa_base.h"
#include "pa_check.h"

#if PA_CUDA
#define PA_SHFL_UP(x, d) __shfl_up_sync(0xffffffffu, x, d, 32)
#define PA_SHFL(x, lane) __shfl_sync(0xffffffffu, x, lane, 32)
#else
#define PA_SHFL_UP(x, d) __shfl_up(x, d, 32)
#define PA_SHFL(x, lane) __shfl(x, lane, 32)
#endif
enum { PA_BLOCK = 256, PA_BLOCK_WARPS = PA_BLOCK / 32 };

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pa_row { T v[N]; };
template <typename T> union pa_words { T value; unsigned word[(sizeof(T) + 3) / 4]; };

/* An operand's address and memory range. An access outside is reported; loads give zeros, stores do nothing. */
typedef struct pa_operand { char *at; const char *low, *high; int which; } pa_operand;
#ifdef PA_DEBUG_CHECKS
PA_FN bool pa_inside(const pa_operand *p, pa_runtime *rt, int64_t tile, const char *at, int64_t size)
{
    if (at >= p->low && at + size <= p->high) return true;
    pa_fail_index(rt, 0, p->which, 0, tile, (at - p->low) / size, (p->high - p->low) / size, 0,
                  (p->high - p->low) / size);
    return false;
}
#define PA_INSIDE(p, at, size) pa_inside(&(p), rt, tile, at, size)
#define PA_ALIGNED(at, size) false /* elements one by one */
#else
#define PA_INSIDE(p, at, size) true
#define PA_ALIGNED(at, size) ((((uint64_t)(at)) & ((size) < 16 ? (size) - 1 : 15)) == 0)
#endif

template <typename T> PA_FN T pa_zero(void)
{
    union { T value; unsigned char bytes[sizeof(T)]; } u;
    for (int k = 0; k < (int)sizeof(T); ++k) u.bytes[k] = 0;
    return u.value;
}
/* N adjacent elements from `first` on, of which `left` exist; zeros for the others. */
template <typename T, int N> PA_FN pa_row<T, N> pa_load_row(const pa_operand *p, pa_runtime *rt, int64_t tile,
                                                            int64_t first, int64_t left, int64_t step)
{
    const char *at = p->at + first * step;
    if (step == (int64_t)sizeof(T) && left >= N && PA_ALIGNED(at, sizeof(T) * N)) return *(const pa_row<T, N> *)at;
    pa_row<T, N> x;
#pragma unroll
    for (int j = 0; j < N; ++j)
        x.v[j] = j < left && PA_INSIDE(*p, at + j * step, sizeof(T)) ? *(const T *)(at + j * step) : pa_zero<T>();
    return x;
}
template <typename T> PA_FN void pa_store_element(const pa_operand *p, pa_runtime *rt, int64_t tile, int64_t index, T x)
{
    char *at = p->at + index * (int64_t)sizeof(T);
    if (PA_INSIDE(*p, at, sizeof(T))) *(T *)at = x;
}

PA_FN PA_ACC pa_shfl_up(PA_ACC x, int d)
{
    pa_words<PA_ACC> u;
    u.value = x;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(PA_ACC) / 4); ++k) u.word[k] = PA_SHFL_UP(u.word[k], d);
    return u.value;
}
PA_FN PA_ACC pa_shfl(PA_ACC x, int lane)
{
    pa_words<PA_ACC> u;
    u.value = x;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(PA_ACC) / 4); ++k) u.word[k] = PA_SHFL(u.word[k], lane);
    return u.value;
}
/* Exclusive scan over a warp, and its total. */
PA_FN PA_ACC pa_warp_exclusive_scan(PA_ACC x, PA_ACC *all)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const PA_ACC other = pa_shfl_up(x, d);
        if (lane >= d) x = PA_COMBINE(other, x);
    }
    *all = pa_shfl(x, 31);
    x = pa_shfl_up(x, 1);
    return lane ? x : (PA_ACC)PA_IDENTITY;
}
/* The same over the warps of a team, each of which has `x`. */
PA_FN PA_ACC pa_team_exclusive_scan(PA_ACC x, PA_ACC *all)
{
    PA_ACC before = PA_IDENTITY;
#if PA_TEAM > 32
    __shared__ PA_ACC totals[PA_BLOCK_WARPS];
    const int warp = (int)threadIdx.x / 32;
    __syncthreads(); /* all have read the last call's totals */
    if (threadIdx.x % 32 == 0) totals[warp] = x;
    __syncthreads();
    PA_ACC sum = PA_IDENTITY;
#pragma unroll
    for (int w = 0; w < PA_BLOCK_WARPS; ++w) {
        if (w == warp) before = sum;
        sum = PA_COMBINE(sum, totals[w]);
    }
    *all = sum;
#else
    *all = x;
#endif
    return before;
}

#endif
