"""What differs between targets, as records of text: `emit` has no branches on the target."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..driver.kernel_step import ROW_SHARED


@dataclass(frozen=True)
class Dialect:
    """`prelude` follows the includes; `function` and `body` qualify helper functions and loop bodies; `loop`
    is the head of a parallel loop's function, `entry` the frame of the kernel; `start` starts a loop from the entry;
    `lanes` stands before the loop over the accumulators of an unordered reduction; `nontemporal` says that large
    results go to memory past the cache, `blocks` that the loop's function gets blocks of iterations:
    otherwise an iteration is a thread of a grid, and reductions are plain loops. `matrix_units` says which matrix
    instructions compute products of tiles of halves: "mma" (`pa_tile_mma.h`) or "waves" (`pa_tile_waves.h`), "" for
    none; `copies_ahead`, that threads go on while they copy to shared memory; `shared_rows`, how many bytes of a row
    kernels keep in shared memory."""

    prelude: str
    function: str
    body: str
    loop: str
    start: str
    lanes: str
    entry: str
    nontemporal: bool = False
    blocks: bool = False
    matrix_units: str = ""
    copies_ahead: bool = False
    shared_rows: int = 0


CPU = Dialect(
    prelude="""\
/* Iterations per block: enough work to be worth a wake-up, few enough blocks for stealing to be cheap, and
   where they are few, as many for each thread. */
static inline int64_t pa_grain(const pa_runtime *rt, int64_t count, double cost)
{
    const int64_t even = count / 64 + 1;
    if (even * cost >= 65536) return even;
    int64_t blocks = (int64_t)(count * cost / 32768);
    if (blocks < 2) return count;
    if (blocks > rt->threads) blocks -= blocks % rt->threads;
    return (count - 1) / blocks + 1;
}
""",
    function="static inline",
    body="static inline __attribute__((always_inline))",
    loop="void {symbol}_loop{number}(void *context, int64_t begin, int64_t end)",
    start="""\
{{
    const int64_t count = {count};
    if (count > 0) rt->parallel_for(rt, {symbol}_loop{number}, &env, count, {grain});
}}
""",
    # unrolled too early, the loop over the lanes would not be vectorised
    lanes='_Pragma("GCC unroll 1")',
    entry="""\
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void {symbol}(const void *memory, pa_runtime *rt)
{{
    const {symbol}_slots *slots = (const {symbol}_slots *)memory;
    {symbol}_env env;
{body}}}
""",
    nontemporal=True,
    blocks=True,
)

GPU = Dialect(
    prelude="""\
PA_FN int64_t pa_thread(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
PA_FN int64_t pa_threads(void) { return (int64_t)gridDim.x * blockDim.x; }
#define PA_BLOCK_SIZE 256 /* threads, of a block that shares an iteration */
#define PA_WARP_BITS (PA_WARP == 64 ? 6 : 5)
#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
#define PA_WARP warpSize
#define PA_TEAM_STEP (8 - PA_WARP_BITS) /* parts of a block have no barrier of their own */
typedef int pa_lanes;
#define PA_ALL_LANES 0
PA_FN pa_lanes pa_lanes_of(int team) { return PA_ALL_LANES; }
PA_FN void pa_lanes_sync(pa_lanes lanes) { __builtin_amdgcn_wave_barrier(); __threadfence_block(); }
PA_FN void pa_warps_sync(int warps) { __syncthreads(); }
PA_FN unsigned pa_shuffle_word(unsigned x, int d, pa_lanes lanes) { return (unsigned)__shfl_xor((int)x, d); }
PA_FN int pa_opaque(int x) { return x; }
#else
#define PA_WARP 32 /* warpSize is no constant there: each division by it takes twenty instructions */
#define PA_TEAM_STEP 1
typedef unsigned pa_lanes; /* of a warp that a team has */
#define PA_ALL_LANES 0xffffffffu
PA_FN pa_lanes pa_lanes_of(int team)
{
    return team < PA_WARP ? ((1u << team) - 1u) << ((int)threadIdx.x & (PA_WARP - 1) & -team) : PA_ALL_LANES;
}
PA_FN void pa_lanes_sync(pa_lanes lanes)
{
    if (lanes == PA_ALL_LANES) __syncwarp();
    else if (lanes & (lanes - 1)) __syncwarp(lanes);
}
PA_FN void pa_warps_sync(int warps)
{
    const int team = warps * PA_WARP;
    if (team == PA_BLOCK_SIZE) __syncthreads();
    else asm volatile("bar.sync %0, %1;" ::"r"(1 + (int)threadIdx.x / team), "r"(team) : "memory");
}
PA_FN unsigned pa_shuffle_word(unsigned x, int d, pa_lanes lanes) { return __shfl_xor_sync(lanes, x, d); }
/* a number of which the compiler knows nothing */
PA_FN int pa_opaque(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}
#endif
PA_FN int pa_lane(void) { return (int)(threadIdx.x % PA_WARP); }
template <typename T> PA_FN T pa_shuffle(T x, int d, pa_lanes lanes = PA_ALL_LANES)
{
    union { T value; unsigned word[(sizeof(T) + 3) / 4]; } u;
    for (int k = 0; k < (int)((sizeof(T) + 3) / 4); ++k) u.word[k] = 0;
    u.value = x;
    for (int k = 0; k < (int)((sizeof(T) + 3) / 4); ++k) u.word[k] = pa_shuffle_word(u.word[k], d, lanes);
    return u.value;
}
#define PA_WARPS 32 /* of a block, at most */
PA_FN int64_t pa_more(int64_t a, int64_t b) { return b > a ? b : a; }
PA_FN int64_t pa_less(int64_t a, int64_t b) { return b < a ? b : a; }
/* a team meets: so many of the block's warps, or these lanes of one */
PA_FN void pa_team_sync(int warps, pa_lanes lanes)
{
    if (warps > 1) pa_warps_sync(warps);
    else pa_lanes_sync(lanes);
}
/* this thread's first iteration when each takes `share` of them, a block's width apart */
PA_FN int64_t pa_chunk(int share) { return (int64_t)blockIdx.x * blockDim.x * share + threadIdx.x; }
/* whether tiles of 32 x 32 have more elements inside the matrix than outside */
PA_FN bool pa_in_tiles(int64_t rows, int64_t columns)
{
    return (rows + 31) / 32 * ((columns + 31) / 32) * 512 <= rows * columns;
}
/* whether neighbours in memory are along the first of two axes */
PA_FN bool pa_nearer(int64_t a, int64_t b)
{
    return a != 0 && (a < 0 ? -a : a) < (b < 0 ? -b : b);
}
PA_FN bool pa_aligned(const void *p, int64_t size)
{
    return ((uint64_t)p & (uint64_t)((size < 16 ? size : 16) - 1)) == 0;
}
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pa_vector { T v[N]; };
/* of arrays that don't fit into the cache, elements that one block loads once; coherent, since it may store there */
template <typename V> PA_FN V pa_load_streamed(const void *p)
{
#if defined(__HIPCC__) || defined(__HIPCC_RTC__) || __CUDA_ARCH__ < 700
    return *(const V *)p;
#else
    union { V value; uint4 words[(sizeof(V) + 15) / 16]; } u;
    if (sizeof(V) % 16) return *(const V *)p;
    for (int k = 0; k < (int)(sizeof(V) / 16); ++k) {
        uint4 *w = &u.words[k];
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w->x), "=r"(w->y), "=r"(w->z), "=r"(w->w) : "l"((const uint4 *)p + k) : "memory");
    }
    return u.value;
#endif
}
template <typename V> PA_FN void pa_store_streamed(void *p, V x)
{
#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
    *(V *)p = x;
#else
    union { V value; uint4 words[(sizeof(V) + 15) / 16]; } u;
    u.value = x;
    if (sizeof(V) % 16) *(V *)p = x;
    else
        for (int k = 0; k < (int)(sizeof(V) / 16); ++k) __stcs((uint4 *)p + k, u.words[k]);
#endif
}
/* rest % size, and rest becomes rest / size; 64-bit division takes five times as long */
PA_FN int64_t pa_split(int64_t *rest, int64_t size, int64_t count)
{
    const int64_t index = *rest;
    if (count <= 0x7fffffff) {
        const uint32_t q = (uint32_t)index / (uint32_t)size;
        *rest = q;
        return (int64_t)((uint32_t)index - q * (uint32_t)size);
    }
    *rest = index / size;
    return index - *rest * size;
}
""",
    function="__device__ static inline",
    body="__device__ static inline",
    loop="",
    start="",
    lanes="",
    entry="""\
extern "C" __global__ void __launch_bounds__(256) {symbol}(const {slots} memory)
{{
    const {slots} *slots = &memory;
    (void)slots;
""",
)

# text for the null device is recorded, and never run
DIALECTS = {
    "cpu": CPU,
    "cuda": replace(GPU, matrix_units="mma", copies_ahead=True, shared_rows=ROW_SHARED),
    "hip": replace(GPU, matrix_units="waves"),
    "null": CPU,
}
