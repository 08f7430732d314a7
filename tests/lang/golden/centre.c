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

typedef struct {
    pa_runtime *rt;
    view_f32_2s v_out;
    view_f32_2s v_x;
    bool unit; /* every strided array has neighbours along its last axis */
    bool no_alias; /* what is written shares no memory with the others */
} kernel_centre_env;

static inline __attribute__((always_inline)) void kernel_centre_body0(const kernel_centre_env *env, int64_t begin, int64_t end, const bool unit)
{
    view_f32_2s v_out = env->v_out;
    if (unit) v_out.s1 = (int64_t)sizeof(float);
    view_f32_2s v_x = env->v_x;
    if (unit) v_x.s1 = (int64_t)sizeof(float);
    float v_first = 0;
    float v_s = 0;
    for (int64_t t = begin; t < end; ++t) {
        const int64_t v_i = t;
        v_first = (*((float *)((char *)v_x.data + (v_i * v_x.s0 + 0 * v_x.s1))));
        v_s = 0.0f;
        {
            const int64_t k1_first = 0, k1_stop = v_x.n1;
            float lane_v_s[16];
            for (int lane = 0; lane < 16; ++lane) lane_v_s[lane] = -0.0f;
            int64_t k2 = k1_first;
            const int64_t k2_past = k1_stop;
            const int64_t k2_full = k2 < k2_past ? k2_past - (int64_t)(((uint64_t)k2_past - (uint64_t)k2) % 16) : k2;
            for (; k2 < k2_full; k2 += 16) {
                _Pragma("GCC unroll 1")
                for (int lane = 0; lane < 16; ++lane) {
                    const int64_t v_j = k2 + lane;
                    lane_v_s[lane] = (lane_v_s[lane] + (*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))));
                }
            }
            for (int lane = 0; k2 < k2_past; ++k2, ++lane) {
                PA_NOVECTOR;
                const int64_t v_j = k2;
                lane_v_s[lane] = (lane_v_s[lane] + (*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))));
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
        for (int64_t v_j = 0, k3_stop = v_x.n1; v_j < k3_stop; ++v_j) {
            *((float *)((char *)v_out.data + (v_i * v_out.s0 + v_j * v_out.s1))) = (((*((float *)((char *)v_x.data + (v_i * v_x.s0 + v_j * v_x.s1)))) - (v_s / ((float)v_x.n1))) + v_first);
        }
    }
}
#if PA_IN_UNIT(0, 2386)
__attribute__((noinline)) PA_SHARED void kernel_centre_noalias0(const kernel_centre_env *env, int64_t begin, int64_t end, float *__restrict__ p_v_out, float *__restrict__ p_v_x)
{
    kernel_centre_env local = *env;
    local.v_out.data = p_v_out;
    local.v_x.data = p_v_x;
    kernel_centre_body0(&local, begin, end, true);
}
#else
__attribute__((noinline)) PA_SHARED void kernel_centre_noalias0(const kernel_centre_env *env, int64_t begin, int64_t end, float *__restrict__ p_v_out, float *__restrict__ p_v_x);
#endif
#if PA_IN_UNIT(1, 1193)
__attribute__((noinline, cold)) PA_SHARED void kernel_centre_overlap0(const kernel_centre_env *env, int64_t begin, int64_t end)
{
    kernel_centre_body0(env, begin, end, true);
}
#else
__attribute__((noinline, cold)) PA_SHARED void kernel_centre_overlap0(const kernel_centre_env *env, int64_t begin, int64_t end);
#endif
#if PA_IN_UNIT(2, 2386)
PA_SHARED void kernel_centre_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_centre_env *env = (const kernel_centre_env *)context;
    if ((PA_NO_ALIAS || env->no_alias) && env->unit) kernel_centre_noalias0(env, begin, end, env->v_out.data, env->v_x.data);
    else
    if (env->unit) kernel_centre_overlap0(env, begin, end);
    else kernel_centre_body0(env, begin, end, false);
}
#else
PA_SHARED void kernel_centre_loop0(void *context, int64_t begin, int64_t end);
#endif

#if PA_IN_UNIT(3, 541)
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_centre(const void *memory, pa_runtime *rt)
{
    const kernel_centre_slots *slots = (const kernel_centre_slots *)memory;
    kernel_centre_env env;
    env.rt = rt;
    env.v_out.data = slots->data_v_out;
    env.v_out.n0 = slots->n0_v_out;
    env.v_out.n1 = slots->n1_v_out;
    env.v_out.s0 = slots->s0_v_out;
    env.v_out.s1 = slots->s1_v_out;
    env.v_x.data = slots->data_v_x;
    env.v_x.n0 = slots->n0_v_x;
    env.v_x.n1 = slots->n1_v_x;
    env.v_x.s0 = slots->s0_v_x;
    env.v_x.s1 = slots->s1_v_x;
    view_f32_2s v_out = env.v_out;
    view_f32_2s v_x = env.v_x;
    (void)v_out;
    (void)v_x;
    env.unit = v_out.s1 == (int64_t)sizeof(float) && v_x.s1 == (int64_t)sizeof(float);
    const char *low_v_out = (const char *)v_out.data, *high_v_out = low_v_out;
    if (v_out.n0 > 0 && v_out.n1 > 0) {
        high_v_out += (int64_t)sizeof(float);
        if (v_out.s0 < 0) low_v_out += (v_out.n0 - 1) * v_out.s0; else high_v_out += (v_out.n0 - 1) * v_out.s0;
        if (v_out.s1 < 0) low_v_out += (v_out.n1 - 1) * v_out.s1; else high_v_out += (v_out.n1 - 1) * v_out.s1;
    }
    const char *low_v_x = (const char *)v_x.data, *high_v_x = low_v_x;
    if (v_x.n0 > 0 && v_x.n1 > 0) {
        high_v_x += (int64_t)sizeof(float);
        if (v_x.s0 < 0) low_v_x += (v_x.n0 - 1) * v_x.s0; else high_v_x += (v_x.n0 - 1) * v_x.s0;
        if (v_x.s1 < 0) low_v_x += (v_x.n1 - 1) * v_x.s1; else high_v_x += (v_x.n1 - 1) * v_x.s1;
    }
    env.no_alias = (high_v_out <= low_v_x || high_v_x <= low_v_out);
    {
        const int64_t count = v_x.n0;
        if (count > 0) rt->parallel_for(rt, kernel_centre_loop0, &env, count, pa_grain(rt, count, 4 + (double)v_x.n1 * (3) + (double)v_x.n1 * (9)));
    }
}
#endif
