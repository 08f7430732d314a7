#include <pa_base.h>
#include <pa_stream.h>

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

typedef struct { float *data; int64_t n0; } view_f32_1c;
typedef struct { float *data; int64_t n0; int64_t n1; } view_f32_2c;
typedef struct { bool *data; int64_t n0; int64_t n1; } view_b_2c;

typedef struct {
    float *data_v_out;
    int64_t n0_v_out;
    float *data_v_x;
    int64_t n0_v_x;
    int64_t n1_v_x;
    bool *data_v_mask;
    int64_t n0_v_mask;
    int64_t n1_v_mask;
} kernel_masked_sum_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_1c v_out;
    view_f32_2c v_x;
    view_b_2c v_mask;
} kernel_masked_sum_env;

static inline __attribute__((always_inline)) void kernel_masked_sum_body0(const kernel_masked_sum_env *env, int64_t begin, int64_t end)
{
    const view_f32_1c v_out = env->v_out;
    const view_f32_2c v_x = env->v_x;
    const view_b_2c v_mask = env->v_mask;
    float v_s = 0;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t v_i = t;
        v_s = 0.0f;
        {
            const int64_t k1_first = 0, k1_stop = v_x.n1;
            float lane_v_s[32];
            for (int lane = 0; lane < 32; ++lane) lane_v_s[lane] = -0.0f;
            int64_t k2 = k1_first;
            const int64_t k2_past = k1_stop;
            const int64_t k2_full = k2 < k2_past ? k2_past - (int64_t)(((uint64_t)k2_past - (uint64_t)k2) % 32) : k2;
            for (; k2 < k2_full; k2 += 32) {
                _Pragma("GCC unroll 1")
                for (int lane = 0; lane < 32; ++lane) {
                    const int64_t v_j = k2 + lane;
                    lane_v_s[lane] = (lane_v_s[lane] + ((*(const uint8_t *)&v_mask.data[(v_i) * v_mask.n1 + v_j] != 0) ? v_x.data[(v_i) * v_x.n1 + v_j] : 0.0f));
                }
            }
            for (int lane = 0; k2 < k2_past; ++k2, ++lane) {
                PA_NOVECTOR;
                const int64_t v_j = k2;
                lane_v_s[lane] = (lane_v_s[lane] + ((*(const uint8_t *)&v_mask.data[(v_i) * v_mask.n1 + v_j] != 0) ? v_x.data[(v_i) * v_x.n1 + v_j] : 0.0f));
            }
            for (int lane = 0; lane < 16; ++lane) {
                lane_v_s[lane] = (lane_v_s[lane] + lane_v_s[lane + 16]);
            }
            for (int lane = 0; lane < 8; ++lane) {
                lane_v_s[lane] = (lane_v_s[lane] + lane_v_s[lane + 8]);
            }
            for (int lane = 0; lane < 4; ++lane) {
                lane_v_s[lane] = (lane_v_s[lane] + lane_v_s[lane + 4]);
            }
            for (int lane = 0; lane < 2; ++lane) {
                lane_v_s[lane] = (lane_v_s[lane] + lane_v_s[lane + 2]);
            }
            for (int lane = 0; lane < 1; ++lane) {
                lane_v_s[lane] = (lane_v_s[lane] + lane_v_s[lane + 1]);
            }
            v_s = (v_s + lane_v_s[0]);
        }
        v_out.data[v_i] = v_s;
    }
}
static void kernel_masked_sum_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_masked_sum_env *env = (const kernel_masked_sum_env *)context;
    const int64_t size = sizeof(float);
    const bool large = PA_CAN_STREAM && env->v_out.n0 * size >= PA_STREAM_MIN && (char *)env->v_out.data != (char *)env->v_x.data && (char *)env->v_out.data != (char *)env->v_mask.data;
    const int64_t step = large ? PA_STREAM_BLOCK / size : end - begin;
    float block[PA_STREAM_BLOCK / sizeof(float)] __attribute__((aligned(64)));
    kernel_masked_sum_env local = *env;
    for (int64_t from = begin, to; from < end; from = to) {
        /* blocks end where a line of the cache does */
        const int64_t skew = large ? ((int64_t)((uint64_t)(env->v_out.data + from) & 63)) / size : 0;
        to = end - from < step - skew ? end : from + step - skew;
        if (large) local.v_out.data = (float *)((uint64_t)block - (uint64_t)(from * size));
        kernel_masked_sum_body0(&local, from, to);
        if (large) pa_stream_copy(env->v_out.data + from, block, (to - from) * size);
    }
    if (large) PA_STREAM_END();
}

#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_masked_sum(const void *memory, pa_runtime *rt)
{
    const kernel_masked_sum_slots *slots = (const kernel_masked_sum_slots *)memory;
    kernel_masked_sum_env env;
    env.rt = rt;
    env.v_out.data = slots->data_v_out;
    env.v_out.n0 = slots->n0_v_out;
    env.v_x.data = slots->data_v_x;
    env.v_x.n0 = slots->n0_v_x;
    env.v_x.n1 = slots->n1_v_x;
    env.v_mask.data = slots->data_v_mask;
    env.v_mask.n0 = slots->n0_v_mask;
    env.v_mask.n1 = slots->n1_v_mask;
    view_f32_1c v_out = env.v_out;
    view_f32_2c v_x = env.v_x;
    view_b_2c v_mask = env.v_mask;
    (void)v_out;
    (void)v_x;
    (void)v_mask;
    {
        const int64_t count = v_x.n0;
        if (count > 0) rt->parallel_for(rt, kernel_masked_sum_loop0, &env, count, pa_grain(rt, count, 3 + (double)v_x.n1 * (4)));
    }
}
