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
    double v_factor;
} kernel_scale_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_1c v_v;
    float v_factor;
} kernel_scale_env;

static inline float func_damp(view_f32_1c v_v, int64_t v_i, float v_factor)
{
    return (v_v.data[v_i] * v_factor);
}

static inline __attribute__((always_inline)) void kernel_scale_body0(const kernel_scale_env *env, int64_t begin, int64_t end)
{
    const view_f32_1c v_v = env->v_v;
    const float v_factor = env->v_factor;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t v_i = t;
        { const float value = func_damp(v_v, v_i, v_factor); v_v.data[v_i] = value; }
    }
}
static void kernel_scale_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_scale_env *env = (const kernel_scale_env *)context;
    kernel_scale_body0(env, begin, end);
}

#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_scale(const void *memory, pa_runtime *rt)
{
    const kernel_scale_slots *slots = (const kernel_scale_slots *)memory;
    kernel_scale_env env;
    env.rt = rt;
    env.v_v.data = slots->data_v_v;
    env.v_v.n0 = slots->n0_v_v;
    env.v_factor = (float)slots->v_factor;
    view_f32_1c v_v = env.v_v;
    float v_factor = env.v_factor;
    (void)v_v;
    (void)v_factor;
    {
        const int64_t count = v_v.n0;
        if (count > 0) rt->parallel_for(rt, kernel_scale_loop0, &env, count, pa_grain(rt, count, 4));
    }
}
