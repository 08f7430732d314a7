/* pa_grid_cpu.h: CUDA and HIP C++ kernels on a CPU. Included before everything else, it makes the kernel's text plain
   C++17 without system headers; after the text comes one line per kernel that is to be called:

       #include "pa_grid_cpu.h"
       extern "C" __global__ void scale(float *v, float f, int n) { ... }
       PA_GRID_ENTRY(scale, scale)        // PA_GRID_ENTRY(any_symbol, any<template, kernel>) works, too
       PA_GRID_DYNAMIC(buffer)            // only where the text says: extern __shared__ T buffer[];

   (`c++ -x c++ -std=c++17 -O1 -fPIC -shared -fno-exceptions -fno-rtti -ffp-contract=off -fno-strict-aliasing
   -Wl,-Bsymbolic -w`), which defines

       extern "C" int pa_grid_scale(pa_grid_launch *launch);     // 0, or 1 with launch->error set

   It runs blocks [first, first + count) of the launch on the calling thread; several threads may run ranges of one
   launch at the same time, each with a pa_grid_launch of its own. A block's threads run one after another on one stack;
   a thread that waits at a barrier or a shuffle keeps its stack, and the others run on further ones. The launch ends
   with an error if some threads never reach a barrier, if threads wait at different barriers, or if lanes of a mask are
   missing. Lanes of a warp wait for each other by source line, as if in lockstep. Not supported: textures, cooperative
   groups, inline PTX, half types, dynamic parallelism. */
#ifndef PA_GRID_CPU_H
#define PA_GRID_CPU_H
#define PA_GRID_CPU 1
#if !defined(__HIPCC_RTC__) && !defined(__CUDACC_RTC__)
#define __HIPCC_RTC__ 1
#endif

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
#if defined(__HIPCC_RTC__) /* as hiprtc's own, which are declared again later */
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
#endif
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#include "pa_grid_launch.h"

#define PA_GRID_THREADS 1024       /* of a block */
#define PA_GRID_SHARED_BYTES 65536 /* of dynamic shared memory */
#define PA_GRID_STACK 65536
#define PA_GRID_GUARD 65536 /* below each stack: the largest page that Linux has */

/* otherwise a kernel named read would resolve to the C library's function */
#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
/* implies static in a function, and unlike static can be combined with extern */
#define __shared__ thread_local

#define PA_GRID_VECTORS(T, N)                                                                                          \
    struct N##1 { T x; };                                                                                              \
    struct alignas(2 * sizeof(T)) N##2 { T x, y; };                                                                    \
    struct N##3 { T x, y, z; };                                                                                        \
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) N##4 { T x, y, z, w; };                                    \
    static inline N##1 make_##N##1(T x) { return {x}; }                                                                \
    static inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                        \
    static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                                \
    static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
PA_GRID_VECTORS(signed char, char) PA_GRID_VECTORS(unsigned char, uchar) PA_GRID_VECTORS(short, short)
PA_GRID_VECTORS(unsigned short, ushort) PA_GRID_VECTORS(int, int) PA_GRID_VECTORS(unsigned, uint)
PA_GRID_VECTORS(long, long) PA_GRID_VECTORS(unsigned long, ulong) PA_GRID_VECTORS(long long, longlong)
PA_GRID_VECTORS(unsigned long long, ulonglong) PA_GRID_VECTORS(float, float) PA_GRID_VECTORS(double, double)
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

/* ---- a block of threads ---- */

extern "C" {
int printf(const char *, ...);
void *memcpy(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
}

enum { PA_GRID_RUNS, PA_GRID_BARRIER, PA_GRID_WARP, PA_GRID_ENDED };
struct pa_grid_thread {
    void *sp;
    uint64_t mask, value; /* of a shuffle or vote; mask 0: the lanes that arrive */
    int line, state;
};
/* At `stacks`; the stacks follow it. */
struct pa_grid_space {
    void *scheduler;
    int guarded; /* stacks that have their guard page */
    pa_grid_thread threads[PA_GRID_THREADS];
    uint64_t lane_values[PA_GRID_THREADS]; /* by thread: what the lanes of the last group exchange */
    uint64_t groups[PA_GRID_THREADS];      /* by warp: the lanes of the last group */
};
struct pa_grid_state {
    uint3 thread, block, block_dim, grid_dim;
    int warp, current, next, count, ended, votes;
    bool backwards;
    pa_grid_space *space;
    void (*call)(void (*)(), void **);
    void (*kernel)();
    void **params;
    const char *error;
};
#define threadIdx pa_grid.thread
#define blockIdx pa_grid.block
#define blockDim pa_grid.block_dim
#define gridDim pa_grid.grid_dim
#ifdef PA_GRID_LANES
#define warpSize PA_GRID_LANES
#else
#define warpSize pa_grid.warp
#endif

/* The scheduler is compiled with the kernel, or once in a library of the caller, which then runs a block at a time. */
#ifdef PA_GRID_RUNTIME
extern "C" pa_grid_state pa_grid;
extern "C" void pa_grid_wait(int state, int line, uint64_t mask, uint64_t value);
extern "C" void pa_grid_fail(const char *error);
extern "C" int pa_grid_blocks(pa_grid_launch *launch);
#else
#include "pa_grid_cpu_block.h"
#endif

/* Calls the kernel with the arguments at their addresses; braces evaluate them in order. */
template <typename... A> struct pa_grid_call {
    __forceinline__ pa_grid_call(void (*kernel)(A...), A... a) { kernel(a...); }
    static void call(void (*kernel)(), void **p)
    {
        pa_grid_call<A...>{(void (*)(A...))kernel, *(A *)*p++...};
    }
};
template <typename... A> static int pa_grid_start(pa_grid_launch *launch, void (*kernel)(A...))
{
    const size_t sizes[] = {sizeof(A)..., 0}, aligned[] = {alignof(A)..., 1};
    void *addresses[sizeof...(A) + 1];
    size_t end = 0;
    for (size_t k = 0; k < sizeof...(A); ++k) {
        end = (end + aligned[k] - 1) / aligned[k] * aligned[k];
        addresses[k] = (char *)launch->buffer + end;
        end += sizes[k];
    }
    pa_grid.error = !launch->params && launch->size < end ? "too few bytes of arguments for the kernel" : 0;
    pa_grid.call = pa_grid_call<A...>::call, pa_grid.kernel = (void (*)())kernel;
    pa_grid.params = launch->params ? launch->params : addresses;
    return pa_grid_blocks(launch);
}
#define PA_GRID_ENTRY(symbol, ...)                                                                                     \
    extern "C" __attribute__((visibility("default"))) int pa_grid_##symbol(pa_grid_launch *launch)                     \
    {                                                                                                                  \
        return pa_grid_start(launch, __VA_ARGS__);                                                                     \
    }
/* A definition without a type, which only the kernel's text has. */
#define PA_GRID_DYNAMIC(name)                                                                                          \
    asm(".pushsection .tbss,\"awT\",%nobits\n.p2align 6\n.globl " #name "\n.hidden " #name "\n.type " #name            \
        ",%object\n.size " #name ",65536\n" #name ":\n.zero 65536\n.popsection\n");

/* ---- barriers, fences, warps ---- */

static inline int pa_grid_sync(int line, int vote = 0)
{
    pa_grid_wait(PA_GRID_BARRIER, line, 0, (uint64_t)(vote != 0));
    return pa_grid.votes;
}
#define __syncthreads() ((void)pa_grid_sync(__LINE__))
#define __syncthreads_count(x) pa_grid_sync(__LINE__, (x) != 0)
#define __syncthreads_or(x) (pa_grid_sync(__LINE__, (x) != 0) != 0)
#define __syncthreads_and(x) (pa_grid_sync(__LINE__, (x) != 0) == pa_grid.count)
#define __builtin_amdgcn_s_barrier() __syncthreads()
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* Waits for a group of lanes and returns it; their values are in `lane_values` until this thread waits again. */
static inline uint64_t pa_grid_gather(int line, uint64_t mask, uint64_t value)
{
    pa_grid_wait(PA_GRID_WARP, line, mask, value);
    return pa_grid.space->groups[pa_grid.current / pa_grid.warp];
}
static inline int pa_grid_lane() { return pa_grid.current % pa_grid.warp; }
#define PA_GRID_ALL (~(uint64_t)0)
struct pa_grid_site {
    int line;
    void syncwarp(uint64_t mask = PA_GRID_ALL) const { pa_grid_gather(line, mask, 0); }
};
#define __syncwarp(...) (pa_grid_site{__LINE__}.syncwarp(__VA_ARGS__))
#define __builtin_amdgcn_wave_barrier() ((void)pa_grid_gather(__LINE__, 0, 0))
#define __activemask() pa_grid_gather(__LINE__, 0, 0)

/* The value of lane `from`; of a lane outside the group, an arbitrary pattern. */
template <typename T> static inline T pa_grid_shuffle(int line, uint64_t mask, T x, int from)
{
    static_assert(sizeof(T) <= 8, "shuffles move 8 bytes at most");
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    const uint64_t group = pa_grid_gather(line, mask, bits);
    bits = group >> from & 1 ? pa_grid.space->lane_values[pa_grid.current - pa_grid_lane() + from] : 0xa5a5a5a5a5a5a5a5;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#define PA_GRID_SHUFFLE(name, O, from)                                                                                 \
    template <typename T> static inline T pa_grid_##name(int line, uint64_t mask, T x, O other, int width = 0)         \
    {                                                                                                                  \
        width = width ? width : pa_grid.warp;                                                                          \
        const int lane = pa_grid_lane(), low = lane & ~(width - 1), source = (from);                                   \
        return pa_grid_shuffle(line, mask, x, source);                                                                 \
    }
PA_GRID_SHUFFLE(shfl, int, low | (other & (width - 1)))
PA_GRID_SHUFFLE(shfl_up, unsigned, lane - (int)other < low ? lane : lane - (int)other)
PA_GRID_SHUFFLE(shfl_down, unsigned, lane + (int)other >= low + width ? lane : lane + (int)other)
PA_GRID_SHUFFLE(shfl_xor, int, (lane ^ other) >= low + width ? lane : lane ^ other)
#define __shfl(...) pa_grid_shfl(__LINE__, 0, __VA_ARGS__)
#define __shfl_up(...) pa_grid_shfl_up(__LINE__, 0, __VA_ARGS__)
#define __shfl_down(...) pa_grid_shfl_down(__LINE__, 0, __VA_ARGS__)
#define __shfl_xor(...) pa_grid_shfl_xor(__LINE__, 0, __VA_ARGS__)
#define __shfl_sync(mask, ...) pa_grid_shfl(__LINE__, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) pa_grid_shfl_up(__LINE__, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) pa_grid_shfl_down(__LINE__, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) pa_grid_shfl_xor(__LINE__, mask, __VA_ARGS__)
static inline uint64_t pa_grid_ballot(int line, uint64_t mask, bool x, bool all = false)
{
    const uint64_t group = pa_grid_gather(line, mask, x),
                   *values = pa_grid.space->lane_values + pa_grid.current - pa_grid_lane();
    uint64_t votes = 0;
    for (int k = 0; k < pa_grid.warp; ++k)
        if (group >> k & 1 && values[k]) votes |= 1ull << k;
    return all ? votes == group : votes;
}
#define __ballot(x) pa_grid_ballot(__LINE__, 0, (x) != 0)
#define __any(x) ((int)(pa_grid_ballot(__LINE__, 0, (x) != 0) != 0))
#define __all(x) ((int)pa_grid_ballot(__LINE__, 0, (x) != 0, true))
#define __ballot_sync(mask, x) pa_grid_ballot(__LINE__, mask, (x) != 0)
#define __any_sync(mask, x) ((int)(pa_grid_ballot(__LINE__, mask, (x) != 0) != 0))
#define __all_sync(mask, x) ((int)pa_grid_ballot(__LINE__, mask, (x) != 0, true))
template <typename T, typename F> static inline T pa_grid_reduce(int line, uint64_t mask, T x, F combine)
{
    const uint64_t group = pa_grid_gather(line, mask, (uint64_t)x),
                   *values = pa_grid.space->lane_values + pa_grid.current - pa_grid_lane();
    for (int k = 0; k < pa_grid.warp; ++k)
        if (group >> k & 1 && k != pa_grid_lane()) x = combine(x, (T)values[k]);
    return x;
}
#define PA_GRID_COMBINE(expression) [](auto a, auto b) { return (decltype(a))(expression); }
#define __reduce_add_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(a + b))
#define __reduce_min_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(b < a ? b : a))
#define __reduce_max_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(b > a ? b : a))
#define __reduce_and_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(a & b))
#define __reduce_or_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(a | b))
#define __reduce_xor_sync(mask, x) pa_grid_reduce(__LINE__, mask, x, PA_GRID_COMBINE(a ^ b))

static inline void __trap() { pa_grid_fail("the kernel trapped"); }
#define assert(x) ((x) ? (void)0 : pa_grid_fail("an assertion of the kernel failed: " #x))

#include "pa_grid_cpu_math.h"
#endif
