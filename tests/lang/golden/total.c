#include <pa_base.h>

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

typedef struct {
    float *data_v_v;
    int64_t n0_v_v;
    float *data_v_out;
    int64_t n0_v_out;
} kernel_total_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_1c v_v;
    view_f32_1c v_out;
} kernel_total_env;

static inline __attribute__((always_inline)) void kernel_total_body0(const kernel_total_env *env, int64_t begin, int64_t end)
{
    const view_f32_1c v_v = env->v_v;
    const view_f32_1c v_out = env->v_out;
    float v_s = 0;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t v__ = t;
        v_s = 0.0f;
        {
            const int64_t k1_first = 0, k1_stop = v_v.n0;
            float lane_v_s[16];
            for (int lane = 0; lane < 16; ++lane) lane_v_s[lane] = -0.0f;
            int64_t k2 = k1_first;
            const int64_t k2_past = k1_stop;
            const int64_t k2_full = k2 < k2_past ? k2_past - (int64_t)(((uint64_t)k2_past - (uint64_t)k2) % 16) : k2;
            for (; k2 < k2_full; k2 += 16) {
                _Pragma("GCC unroll 1")
                for (int lane = 0; lane < 16; ++lane) {
                    const int64_t v_i = k2 + lane;
                    lane_v_s[lane] = (lane_v_s[lane] + v_v.data[v_i]);
                }
            }
            for (int lane = 0; k2 < k2_past; ++k2, ++lane) {
                PA_NOVECTOR;
                const int64_t v_i = k2;
                lane_v_s[lane] = (lane_v_s[lane] + v_v.data[v_i]);
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
        v_out.data[0] = v_s;
    }
}
static void kernel_total_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_total_env *env = (const kernel_total_env *)context;
    kernel_total_body0(env, begin, end);
}

#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_total(const void *memory, pa_runtime *rt)
{
    const kernel_total_slots *slots = (const kernel_total_slots *)memory;
    kernel_total_env env;
    env.rt = rt;
    env.v_v.data = slots->data_v_v;
    env.v_v.n0 = slots->n0_v_v;
    env.v_out.data = slots->data_v_out;
    env.v_out.n0 = slots->n0_v_out;
    view_f32_1c v_v = env.v_v;
    view_f32_1c v_out = env.v_out;
    (void)v_v;
    (void)v_out;
    {
        const int64_t count = 1;
        if (count > 0) rt->parallel_for(rt, kernel_total_loop0, &env, count, pa_grain(rt, count, 3 + (double)v_v.n0 * (3)));
    }
}
