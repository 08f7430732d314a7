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
    float *data_v_x;
    int64_t n0_v_x;
    int64_t n1_v_x;
    int64_t s0_v_x;
    int64_t s1_v_x;
} kernel_centre_slots;

#if PA_IN_UNIT(0, 3426)
extern "C" __global__ void __launch_bounds__(64, 12) kernel_centre_block0_64(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 64, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
        }
    }
}
#endif

#if PA_IN_UNIT(1, 3428)
extern "C" __global__ void __launch_bounds__(128, 6) kernel_centre_block0_128(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 128, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
        }
    }
}
#endif

#if PA_IN_UNIT(2, 3428)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_block0_256(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 256, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
        }
    }
}
#endif

#if PA_IN_UNIT(3, 3428)
extern "C" __global__ void __launch_bounds__(512, 2) kernel_centre_block0_512(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 512, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
        }
    }
}
#endif

#if PA_IN_UNIT(4, 3431)
extern "C" __global__ void __launch_bounds__(1024, 1) kernel_centre_block0_1024(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 1024, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 4 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
        }
    }
}
#endif

#if PA_IN_UNIT(5, 5016)
extern "C" __global__ void __launch_bounds__(1024, 1) kernel_centre_block0_1024_shared(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = rank * 4, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 1024, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    extern __shared__ __align__(16) unsigned char row_memory[];
    pa_vector<float, 4> *const shared0 = (pa_vector<float, 4> *)(row_memory + 0) + rank;
    #if !PA_CUDA || __CUDA_ARCH__ >= 900
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 8 || first < row_size) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll 2
            for (int n = 8; n * (team * 4) < row_size; ++n) {
                const int first = n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
            }
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 8 || first < row_size) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            #pragma unroll 2
            for (int n = 8; n * (team * 4) < row_size; ++n) {
                const int first = n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int64_t v_j = row_low + first + j;
                    lane_v_s = (lane_v_s + cached0[c].v[j]);
                }
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = c * (team * 4);
                if (c < 8 || first < row_size) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    pa_store_streamed(row1 + first, stored1);
                }
            }
            #pragma unroll 2
            for (int n = 8; n * (team * 4) < row_size; ++n) {
                const int first = n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                pa_vector<float, 4> stored1;
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int64_t v_j = row_low + first + j;
                    stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                }
                pa_store_streamed(row1 + first, stored1);
            }
        }
    }
    #endif
}
#endif

#if PA_IN_UNIT(6, 4490)
extern "C" __global__ void __launch_bounds__(64, 12) kernel_centre_block0_64_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 64, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
}
#endif

#if PA_IN_UNIT(7, 4492)
extern "C" __global__ void __launch_bounds__(128, 6) kernel_centre_block0_128_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 128, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
}
#endif

#if PA_IN_UNIT(8, 4492)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_block0_256_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 256, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
}
#endif

#if PA_IN_UNIT(9, 4492)
extern "C" __global__ void __launch_bounds__(512, 2) kernel_centre_block0_512_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 512, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
}
#endif

#if PA_IN_UNIT(10, 4495)
extern "C" __global__ void __launch_bounds__(1024, 1) kernel_centre_block0_1024_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 1024, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 3 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
}
#endif

#if PA_IN_UNIT(11, 6315)
extern "C" __global__ void __launch_bounds__(1024, 1) kernel_centre_block0_1024_shared_edges(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int rank = (int)threadIdx.x, row_low = 0, row_size = (int)(v_x.n1) - row_low;
    const int64_t t = blockIdx.x;
    const int team = 1024, warps = team >> PA_WARP_BITS;
    const pa_lanes lanes = pa_lanes_of(team);
    extern __shared__ __align__(16) unsigned char row_memory[];
    pa_vector<float, 4> *const shared0 = (pa_vector<float, 4> *)(row_memory + 0) + rank;
    #if !PA_CUDA || __CUDA_ARCH__ >= 900
    if (t < count) {
        const int64_t v_i = t;
        float v_first = 0;
        float v_s = 0;
        pa_vector<float, 4> cached0[8];
        float edge0;
        float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
        float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
        const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
        const int64_t vectors_end = row_size - (row_size - head) % 4;
        const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
        const int begin = head + rank * 4, end = (int)vectors_end;
        const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            float lane_v_s = -0.0f;
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 7 || first < end) {
                    cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
                }
            }
            #pragma unroll 2
            for (int n = 8; begin + n * (team * 4) < end; ++n) {
                const int first = begin + n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                cached0[c] = pa_load_streamed<pa_vector<float, 4>>(row0 + first);
            }
            if (edge >= 0) edge0 = row0[edge];
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 7 || first < end) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        lane_v_s = (lane_v_s + cached0[c].v[j]);
                    }
                }
            }
            #pragma unroll 2
            for (int n = 8; begin + n * (team * 4) < end; ++n) {
                const int first = begin + n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int64_t v_j = row_low + first + j;
                    lane_v_s = (lane_v_s + cached0[c].v[j]);
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                lane_v_s = (lane_v_s + edge0);
            }
            {
                for (int d = PA_WARP / 2; d > 0; d /= 2) {
                    lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                }
            }
            if (warps > 1) {
                __shared__ float all_lane_v_s[PA_WARPS];
                const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                if (pa_lane() == 0) {
                    all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                }
                __syncthreads();
                lane_v_s = all_lane_v_s[first_warp];
                for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                    lane_v_s = (lane_v_s + all_lane_v_s[w]);
                }
            }
            v_s = (v_s + lane_v_s);
        }
        {
            #pragma unroll
            for (int c = 0; c < 8; ++c) {
                const int first = begin + c * (team * 4);
                if (c < 7 || first < end) {
                    pa_vector<float, 4> stored1;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int64_t v_j = row_low + first + j;
                        stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                    }
                    if (aligned1) {
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    } else {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                    }
                }
            }
            #pragma unroll 2
            for (int n = 8; begin + n * (team * 4) < end; ++n) {
                const int first = begin + n * (team * 4), c = 0;
                pa_vector<float, 4> *const cached0 = shared0 + (n - 8) * team;
                pa_vector<float, 4> stored1;
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int64_t v_j = row_low + first + j;
                    stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                }
                if (aligned1) {
                    *(pa_vector<float, 4> *)(row1 + first) = stored1;
                } else {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                }
            }
            if (edge >= 0) {
                const int64_t v_j = row_low + edge;
                float stored1;
                stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                row1[edge] = stored1;
            }
        }
    }
    #endif
}
#endif

#if PA_IN_UNIT(12, 6074)
extern "C" __global__ void __launch_bounds__(256, 4) kernel_centre_short0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        int row_bits = narrow;
        while (row_bits < PA_WARP_BITS && row_size > (16 << row_bits)) ++row_bits;
        const int bits = row_bits, team = 1 << bits, warps = 1, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        const int stride = team * 4, begin = rank * 4, end = (int)row_size;
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 4> cached0[4];
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 4> *)(row0 + first);
                    }
                }
                #pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        pa_vector<float, 4> stored1;
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    }
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(13, 6379)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_long0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        int row_bits = few ? 8 : PA_WARP_BITS;
        while (row_bits < 8 && row_size > (32 << row_bits)) row_bits += PA_TEAM_STEP;
        const int bits = row_bits, team = 1 << bits, warps = team >> PA_WARP_BITS, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        const int stride = PA_WARP * 4; /* of a thread's vectors */
        const int vectors = ((int)row_size / 4 + team - 1) >> bits; /* of a thread */
        const int part = vectors * stride;
        const int begin = rank / PA_WARP * part + rank % PA_WARP * 4;
        const int end = (int)pa_less((rank / PA_WARP + 1) * part, row_size);
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 4> cached0[8];
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 4> *)(row0 + first);
                    }
                }
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * stride;
                    if (first < end) {
                        pa_vector<float, 4> stored1;
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        *(pa_vector<float, 4> *)(row1 + first) = stored1;
                    }
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(14, 6114)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_even8_0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        const int bits = 3, team = 1 << bits, warps = 1, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        const int stride = team * 2, begin = rank * 2, end = (int)row_size;
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 2> cached0[16];
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 2> *)(row0 + first);
                    }
                }
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        pa_vector<float, 2> stored1;
                        #pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        *(pa_vector<float, 2> *)(row1 + first) = stored1;
                    }
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(15, 6115)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_even16_0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        const int bits = 4, team = 1 << bits, warps = 1, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        const int stride = team * 2, begin = rank * 2, end = (int)row_size;
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 2> cached0[16];
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 2> *)(row0 + first);
                    }
                }
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 2 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        pa_vector<float, 2> stored1;
                        #pragma unroll
                        for (int j = 0; j < 2; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        *(pa_vector<float, 2> *)(row1 + first) = stored1;
                    }
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(16, 6117)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_single16_0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        const int bits = 4, team = 1 << bits, warps = 1, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        const int stride = team * 1, begin = rank * 1, end = (int)row_size;
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 1> cached0[16];
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 1 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 1> *)(row0 + first);
                    }
                }
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 1 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 1; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 16; ++c) {
                    if (c * team * 1 >= end) break;
                    const int first = begin + c * stride;
                    if (first < end) {
                        pa_vector<float, 1> stored1;
                        #pragma unroll
                        for (int j = 0; j < 1; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        *(pa_vector<float, 1> *)(row1 + first) = stored1;
                    }
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(17, 7036)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_edged0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    {
        const int bits = PA_WARP_BITS, team = 1 << bits, warps = 1, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            pa_vector<float, 4> cached0[8];
            float edge0;
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
            const int64_t vectors_end = row_size - (row_size - head) % 4;
            const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
            const int begin = head + rank * 4, end = (int)vectors_end;
            const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * (team * 4);
                    if (first < end) {
                        cached0[c] = *(const pa_vector<float, 4> *)(row0 + first);
                    }
                }
                if (edge >= 0) edge0 = row0[edge];
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * (team * 4);
                    if (first < end) {
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            lane_v_s = (lane_v_s + cached0[c].v[j]);
                        }
                    }
                }
                if (edge >= 0) {
                    const int64_t v_j = row_low + edge;
                    lane_v_s = (lane_v_s + edge0);
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                #pragma unroll
                for (int c = 0; c < 8; ++c) {
                    const int first = begin + c * (team * 4);
                    if (first < end) {
                        pa_vector<float, 4> stored1;
                        #pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int64_t v_j = row_low + first + j;
                            stored1.v[j] = ((cached0[c].v[j] - (v_s / ((float)v_x.n1))) + v_first);
                        }
                        if (aligned1) {
                            *(pa_vector<float, 4> *)(row1 + first) = stored1;
                        } else {
                            #pragma unroll
                            for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                        }
                    }
                }
                if (edge >= 0) {
                    const int64_t v_j = row_low + edge;
                    float stored1;
                    stored1 = ((edge0 - (v_s / ((float)v_x.n1))) + v_first);
                    row1[edge] = stored1;
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

#if PA_IN_UNIT(18, 11378)
extern "C" __global__ void __launch_bounds__(256, 3) kernel_centre_0(const kernel_centre_slots memory)
{
    const kernel_centre_slots *slots = &memory;
    (void)slots;
    view_f32_2s v_out;
    v_out.data = slots->data_v_out;
    v_out.n0 = slots->n0_v_out;
    v_out.n1 = slots->n1_v_out;
    v_out.s0 = slots->s0_v_out;
    v_out.s1 = slots->s1_v_out;
    (void)v_out;
    view_f32_2s v_x;
    v_x.data = slots->data_v_x;
    v_x.n0 = slots->n0_v_x;
    v_x.n1 = slots->n1_v_x;
    v_x.s0 = slots->s0_v_x;
    v_x.s1 = slots->s1_v_x;
    (void)v_x;
    const int64_t count = v_x.n0;
    const int64_t most = pa_more(pa_more(0, v_out.n0 * v_out.n1), v_x.n0 * v_x.n1);
    const bool few = count <= 512 && count < most / 64;
    int wide = PA_WARP_BITS;
    while (wide < 8 && count < most >> (5 + wide)) wide += PA_TEAM_STEP;
    const int64_t row_low = 0;
    const int64_t row_size = v_x.n1;
    const bool whole = row_size % 4 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 15) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 15) == 0;
    const bool dense = row_size > 0
        && v_x.s1 == (int64_t)sizeof(float)
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 3) == 0
        && v_out.s1 == (int64_t)sizeof(float);
    const bool aligned = true
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 3) == 0;
    const bool even = row_size % 2 == 0
        && (((uint64_t)((float *)((char *)v_x.data + (0 * v_x.s0 + row_low * v_x.s1))) | (uint64_t)(v_x.s0)) & 7) == 0
        && (((uint64_t)((float *)((char *)v_out.data + (0 * v_out.s0 + row_low * v_out.s1))) | (uint64_t)(v_out.s0)) & 7) == 0;
    const bool long_rows = whole || row_size >= 16;
    const int64_t longest = pa_more(0, v_x.n1);
    int narrow = PA_WARP_BITS;
    for (; narrow > 0; --narrow) {
        const bool full = count >= (int64_t)1 << (17 + 1 - narrow);
        const int of_half = narrow - 1 + (dense && long_rows && narrow > 1 ? 5 : 4);
        if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;
    }
    wide = narrow < PA_WARP_BITS ? narrow : wide;
    if (dense && long_rows) {
        const int bits = few ? 8 : wide, team = 1 << bits, warps = team >> PA_WARP_BITS, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            float *const row0 = (float *)((char *)v_x.data + (v_i * v_x.s0 + row_low * v_x.s1));
            float *const row1 = (float *)((char *)v_out.data + (v_i * v_out.s0 + row_low * v_out.s1));
            const int head = (int)pa_less((int)(-(uint64_t)row0 & 15) / 4, row_size);
            const int64_t vectors_end = row_size - (row_size - head) % 4;
            const bool aligned1 = ((uint64_t)(row1 + head) & 15) == 0;
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                float both_lane_v_s[2] = {-0.0f, -0.0f};
                for (int64_t nearest = head + rank * 4; nearest < vectors_end; nearest += 2 * (int64_t)team * 4) {
                    pa_vector<float, 4> ahead0[2];
                    #pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int64_t first = pa_less(nearest + c * (int64_t)team * 4, vectors_end - 4);
                        ahead0[c] = *(const pa_vector<float, 4> *)(row0 + first);
                    }
                    #pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int64_t first = nearest + c * (int64_t)team * 4;
                        if (first < vectors_end) {
                            const pa_vector<float, 4> loaded0 = ahead0[c];
                            #pragma unroll
                            for (int j = 0; j < 4; ++j) {
                                const int64_t v_j = row_low + first + j;
                                both_lane_v_s[j & 1] = (both_lane_v_s[j & 1] + loaded0.v[j]);
                            }
                        }
                    }
                }
                for (int n = rank; n < head + (int)(row_size - vectors_end); n += team) {
                    const int64_t v_j = row_low + (n < head ? n : vectors_end - head + n);
                    lane_v_s = (lane_v_s + (*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))));
                }
                lane_v_s = (lane_v_s + both_lane_v_s[0]);
                lane_v_s = (lane_v_s + both_lane_v_s[1]);
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                for (int64_t nearest = head + rank * 4; nearest < vectors_end; nearest += 2 * (int64_t)team * 4) {
                    pa_vector<float, 4> ahead0[2];
                    #pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int64_t first = pa_less(nearest + c * (int64_t)team * 4, vectors_end - 4);
                        ahead0[c] = *(const pa_vector<float, 4> *)(row0 + first);
                    }
                    #pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int64_t first = nearest + c * (int64_t)team * 4;
                        if (first < vectors_end) {
                            const pa_vector<float, 4> loaded0 = ahead0[c];
                            pa_vector<float, 4> stored1;
                            #pragma unroll
                            for (int j = 0; j < 4; ++j) {
                                const int64_t v_j = row_low + first + j;
                                stored1.v[j] = ((loaded0.v[j] - (v_s / ((float)v_x.n1))) + v_first);
                            }
                            if (aligned1) {
                                *(pa_vector<float, 4> *)(row1 + first) = stored1;
                            } else {
                                #pragma unroll
                                for (int j = 0; j < 4; ++j) row1[first + j] = stored1.v[j];
                            }
                        }
                    }
                }
                for (int n = rank; n < head + (int)(row_size - vectors_end); n += team) {
                    const int64_t v_j = row_low + (n < head ? n : vectors_end - head + n);
                    *((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1))) = (((*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))) - (v_s / ((float)v_x.n1))) + v_first);
                }
            }
            pa_team_sync(warps, lanes);
        }
    } else {
        const int bits = few ? 8 : wide, team = 1 << bits, warps = team >> PA_WARP_BITS, rank = (int)threadIdx.x & (team - 1);
        const pa_lanes lanes = pa_lanes_of(team);
        const int64_t teams = (int64_t)gridDim.x << (8 - bits);
        const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
        for (int64_t t = first_team; t < count; t += teams) {
            const int64_t v_i = t;
            float v_first = 0;
            float v_s = 0;
            v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
            v_s = 0.0f;
            {
                float lane_v_s = -0.0f;
                const int64_t k1_stop = v_x.n1;
                int64_t k1 = rank;
                const int64_t k1_full = k1_stop > 0 ? k1_stop - 3 * (int64_t)team : 0;
                for (; k1 < k1_full; k1 += 4 * (int64_t)team) {
                    #pragma unroll
                    for (int ahead = 0; ahead < 4; ++ahead) {
                        const int64_t v_j = k1 + ahead * (int64_t)team;
                        lane_v_s = (lane_v_s + (*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))));
                    }
                }
                #pragma unroll 1
                for (; k1 < k1_stop; k1 += team) {
                    const int64_t v_j = k1;
                    lane_v_s = (lane_v_s + (*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))));
                }
                if (team >= PA_WARP) {
                    for (int d = PA_WARP / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, PA_ALL_LANES));
                    }
                } else {
                    for (int d = team / 2; d > 0; d /= 2) {
                        lane_v_s = (lane_v_s + pa_shuffle(lane_v_s, d, lanes));
                    }
                }
                if (warps > 1) {
                    __shared__ float all_lane_v_s[PA_WARPS];
                    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;
                    pa_team_sync(warps, lanes); /* the ones before have been read */
                    if (pa_lane() == 0) {
                        all_lane_v_s[threadIdx.x >> PA_WARP_BITS] = lane_v_s;
                    }
                    pa_team_sync(warps, lanes);
                    lane_v_s = all_lane_v_s[first_warp];
                    for (int w = first_warp + 1; w < first_warp + warps; ++w) {
                        lane_v_s = (lane_v_s + all_lane_v_s[w]);
                    }
                }
                v_s = (v_s + lane_v_s);
            }
            {
                const int64_t k2_stop = v_x.n1;
                int64_t k2 = rank;
                #pragma unroll 8
                for (; k2 < k2_stop; k2 += team) {
                    const int64_t v_j = k2;
                    *((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1))) = (((*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))) - (v_s / ((float)v_x.n1))) + v_first);
                }
            }
            pa_team_sync(warps, lanes);
        }
    }
}
#endif

