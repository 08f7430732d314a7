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

typedef struct { float *data; int64_t n0; int64_t n1; } view_f32_2c;

typedef struct {
    float *data_v_out;
    int64_t n0_v_out;
    int64_t n1_v_out;
    float *data_v_x;
    int64_t n0_v_x;
    int64_t n1_v_x;
} kernel_shifted_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_2c v_out;
    view_f32_2c v_x;
    bool no_alias; /* what is written shares no memory with the others */
} kernel_shifted_env;

static inline __attribute__((always_inline)) void kernel_shifted_body0(const kernel_shifted_env *env, int64_t begin, int64_t end)
{
    const view_f32_2c v_out = env->v_out;
    const view_f32_2c v_x = env->v_x;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t v_i = t;
        for (int64_t v_j = 0, k1_stop = v_out.n1; v_j < k1_stop; ++v_j) {
            v_out.data[(v_i) * v_out.n1 + v_j] = (v_x.data[(v_i) * v_x.n1 + v_j] + 1.0f);
        }
    }
}
#if PA_IN_UNIT(0, 469)
__attribute__((noinline)) PA_SHARED void kernel_shifted_noalias0(const kernel_shifted_env *env, int64_t begin, int64_t end, float *__restrict__ p_v_out, float *__restrict__ p_v_x)
{
    kernel_shifted_env local = *env;
    local.v_out.data = p_v_out;
    local.v_x.data = p_v_x;
    kernel_shifted_body0(&local, begin, end);
}
#else
__attribute__((noinline)) PA_SHARED void kernel_shifted_noalias0(const kernel_shifted_env *env, int64_t begin, int64_t end, float *__restrict__ p_v_out, float *__restrict__ p_v_x);
#endif
#if PA_IN_UNIT(1, 234)
__attribute__((noinline, cold)) PA_SHARED void kernel_shifted_overlap0(const kernel_shifted_env *env, int64_t begin, int64_t end)
{
    kernel_shifted_body0(env, begin, end);
}
#else
__attribute__((noinline, cold)) PA_SHARED void kernel_shifted_overlap0(const kernel_shifted_env *env, int64_t begin, int64_t end);
#endif
#if PA_IN_UNIT(2, 0)
PA_SHARED void kernel_shifted_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_shifted_env *env = (const kernel_shifted_env *)context;
    if (PA_NO_ALIAS || env->no_alias) kernel_shifted_noalias0(env, begin, end, env->v_out.data, env->v_x.data);
    else
    kernel_shifted_overlap0(env, begin, end);
}
#else
PA_SHARED void kernel_shifted_loop0(void *context, int64_t begin, int64_t end);
#endif

#if PA_IN_UNIT(3, 327)
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_shifted(const void *memory, pa_runtime *rt)
{
    const kernel_shifted_slots *slots = (const kernel_shifted_slots *)memory;
    kernel_shifted_env env;
    env.rt = rt;
    env.v_out.data = slots->data_v_out;
    env.v_out.n0 = slots->n0_v_out;
    env.v_out.n1 = slots->n1_v_out;
    env.v_x.data = slots->data_v_x;
    env.v_x.n0 = slots->n0_v_x;
    env.v_x.n1 = slots->n1_v_x;
    view_f32_2c v_out = env.v_out;
    view_f32_2c v_x = env.v_x;
    (void)v_out;
    (void)v_x;
    const char *low_v_out = (const char *)v_out.data, *high_v_out = low_v_out;
    high_v_out += v_out.n0 * v_out.n1 * (int64_t)sizeof(float);
    const char *low_v_x = (const char *)v_x.data, *high_v_x = low_v_x;
    high_v_x += v_x.n0 * v_x.n1 * (int64_t)sizeof(float);
    env.no_alias = (high_v_out <= low_v_x || high_v_x <= low_v_out);
    {
        const int64_t count = v_out.n0;
        if (count > 0) rt->parallel_for(rt, kernel_shifted_loop0, &env, count, pa_grain(rt, count, 2 + (double)v_out.n1 * (4)));
    }
}
#endif
