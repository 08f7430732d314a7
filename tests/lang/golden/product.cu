#include <pa_base.h>

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

typedef struct { float *data; int64_t n0; int64_t n1; int64_t s0; int64_t s1; } view_f32_2s;

typedef struct {
    float *data_v_out;
    int64_t n0_v_out;
    int64_t n1_v_out;
    int64_t s0_v_out;
    int64_t s1_v_out;
    float *data_v_a;
    int64_t n0_v_a;
    int64_t n1_v_a;
    int64_t s0_v_a;
    int64_t s1_v_a;
    float *data_v_b;
    int64_t n0_v_b;
    int64_t n1_v_b;
    int64_t s0_v_b;
    int64_t s1_v_b;
} kernel_product_slots;

__device__ static inline int64_t product_2(int64_t n0, int64_t n1)
{
    if (n0 <= 0 || n1 <= 0) return 0;
    int64_t all = n0;
    all *= n1;
    return all;
}

extern "C" __global__ void __launch_bounds__(256) kernel_product_0(const kernel_product_slots memory)
{
    const kernel_product_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_a;
    v_a.data = slots->data_v_a;
    v_a.n0 = slots->n0_v_a;
    v_a.n1 = slots->n1_v_a;
    v_a.s0 = slots->s0_v_a;
    v_a.s1 = slots->s1_v_a;
    (void)v_a;
    view_f32_2s v_b;
    v_b.data = slots->data_v_b;
    v_b.n0 = slots->n0_v_b;
    v_b.n1 = slots->n1_v_b;
    v_b.s0 = slots->s0_v_b;
    v_b.s1 = slots->s1_v_b;
    (void)v_b;
    const int64_t size0_0 = v_out.n0;
    const int64_t size0_1 = v_out.n1;
    const int64_t count = product_2(size0_0, size0_1);
    if (size0_1 % 4 == 0
        && (v_out.s1) == 4
        && (((uint64_t)v_out.data | (uint64_t)(v_out.s0)) & 15) == 0
        && (v_a.s1) == 4
        && (((uint64_t)v_a.data | (uint64_t)(v_a.s0)) & 15) == 0
        && (v_b.s0) == 4
        && (((uint64_t)v_b.data | (uint64_t)(v_b.s1)) & 15) == 0) {
        const int64_t across = size0_1 / 4, vectors = count / 4;
        for (int64_t t = pa_thread(); t < vectors; t += pa_threads()) {
            int64_t rest = t;
            const int64_t line = pa_split(&rest, across, vectors) * 4;
            const int64_t v_i = rest;
            pa_vector<float, 4> result;
            float *value = result.v;
            {
                const int64_t v_j = line;
                const pa_vector<float, 4> line0 = *(const pa_vector<float, 4> *)((float *)((char *)v_a.data + (v_i * v_a.s0 + v_j * v_a.s1)));
                const pa_vector<float, 4> line1 = *(const pa_vector<float, 4> *)((float *)((char *)v_b.data + (v_j * v_b.s0 + v_i * v_b.s1)));
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const int64_t v_j = line + k;
                    value[k] = (line0.v[k] * line1.v[k]);
                }
                *(pa_vector<float, 4> *)((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1))) = result;
            }
        }
        return;
    }
    if (pa_in_tiles(size0_0, size0_1)) {
        const int64_t down = (size0_0 + 31) / 32, across = (size0_1 + 31) / 32;
        const int64_t tiles = down * across;
        const int tile_x = threadIdx.x % 32, tile_y = threadIdx.x / 32;
        __shared__ float tile0[32][33];
        __shared__ float tile1[32][33];
        __shared__ float tile2[32][33];
        for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int64_t rest = tile;
            const int64_t left = pa_split(&rest, across, tiles) * 32;
            const int64_t top = pa_split(&rest, down, tiles) * 32;
            const int high = (int)pa_less(size0_0 - top, 32);
            const int wide = (int)pa_less(size0_1 - left, 32);
            const bool turn0 = pa_nearer((v_out.s0), (v_out.s1));
            const int64_t step0 = 8 * (turn0 ? (v_out.s1) : (v_out.s0));
            char *at0;
            {
                const int64_t v_i = top + (turn0 ? tile_x : tile_y), v_j = left + (turn0 ? tile_y : tile_x);
                at0 = (char *)((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1)));
            }
            const bool turn1 = pa_nearer((v_a.s0), (v_a.s1));
            const int64_t step1 = 8 * (turn1 ? (v_a.s1) : (v_a.s0));
            char *at1;
            {
                const int64_t v_i = top + (turn1 ? tile_x : tile_y), v_j = left + (turn1 ? tile_y : tile_x);
                at1 = (char *)((float *)((char *)v_a.data + (v_i * v_a.s0 + v_j * v_a.s1)));
            }
            const bool turn2 = pa_nearer((v_b.s1), (v_b.s0));
            const int64_t step2 = 8 * (turn2 ? (v_b.s0) : (v_b.s1));
            char *at2;
            {
                const int64_t v_i = top + (turn2 ? tile_x : tile_y), v_j = left + (turn2 ? tile_y : tile_x);
                at2 = (char *)((float *)((char *)v_b.data + (v_j * v_b.s0 + v_i * v_b.s1)));
            }
            float own1[4];
            float own2[4];
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                if ((turn1 ? tile_x < high && tile_y + k * 8 < wide : tile_y + k * 8 < high && tile_x < wide)) own1[k] = *(float *)(at1 + k * step1);
            }
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                if ((turn2 ? tile_x < high && tile_y + k * 8 < wide : tile_y + k * 8 < high && tile_x < wide)) own2[k] = *(float *)(at2 + k * step2);
            }
            if (turn1) {
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    tile1[tile_y + k * 8][tile_x] = own1[k];
                }
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    own1[k] = tile1[tile_x][tile_y + k * 8];
                }
                __syncthreads();
            }
            if (turn2) {
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    tile2[tile_y + k * 8][tile_x] = own2[k];
                }
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    own2[k] = tile2[tile_x][tile_y + k * 8];
                }
                __syncthreads();
            }
            float value[4];
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int64_t v_i = top + tile_y + k * 8, v_j = left + tile_x;
                if (tile_y + k * 8 < high && tile_x < wide) {
                    value[k] = (own1[k] * own2[k]);
                }
            }
            if (turn0) {
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    tile0[tile_y + k * 8][tile_x] = value[k];
                }
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < 4; ++k) {
                    value[k] = tile0[tile_x][tile_y + k * 8];
                }
                __syncthreads();
            }
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                if ((turn0 ? tile_x < high && tile_y + k * 8 < wide : tile_y + k * 8 < high && tile_x < wide)) *(float *)(at0 + k * step0) = value[k];
            }
        }
    } else {
        for (int64_t t = pa_thread(); t < count; t += pa_threads()) {
            int64_t rest = t;
            const int64_t v_j = pa_split(&rest, size0_1, count);
            const int64_t v_i = rest;
            *((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1))) = ((*((float *)((char *)v_a.data + (v_i * v_a.s0 + v_j * v_a.s1)))) * (*((float *)((char *)v_b.data + (v_j * v_b.s0 + v_i * v_b.s1)))));
        }
    }
}

