#include <pa_base.h>
#include <pa_check.h>

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

/* where a thread is, for the failure record; a failure lands in `scrap` and ends its iteration's loops */
typedef struct { pa_runtime *rt; int32_t loop; int64_t tid; pa_c128 *scrap; bool failed; } pa_at;
typedef struct { float *data; int64_t offset; int64_t n0; } view_f32_1c;

typedef struct {
    float *data_v_v;
    int64_t offset_v_v;
    int64_t n0_v_v;
    double v_factor;
} kernel_scale_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_1c v_v;
    float v_factor;
} kernel_scale_env;

static inline float *checked_f32_1c(const bool inside, pa_at *at, const pa_frame *up, int32_t site, const view_f32_1c v, int64_t i0)
{
    return inside || pa_check_index(at->rt, up, site + 0, at->loop, at->tid, i0, v.n0, v.offset, v.n0)
        ? v.data + (i0) : (at->failed = true, (float *)PA_SCRAP(at));
}

static inline __attribute__((always_inline)) float func_damp(const bool inside, pa_at *at, const pa_frame *up, view_f32_1c v_v, int64_t v_i, float v_factor)
{
    return ((*checked_f32_1c(inside, at, up, 0, v_v, v_i)) * v_factor);
}

static inline __attribute__((always_inline)) void kernel_scale_body0(const kernel_scale_env *env, int64_t begin, int64_t end, const bool inside)
{
    PA_SCRAP_ROOM;
    pa_at here = {env->rt, 0, 0, scrap};
    pa_at *at = &here;
    const pa_frame *up = 0;
    pa_frame call1 = {0, 1};
    const view_f32_1c v_v = env->v_v;
    const float v_factor = env->v_factor;
    for (int64_t t = begin; t < end; ++t) {
        at->tid = t; at->failed = false;
        const int64_t v_i = t;
        { const float value = func_damp(inside, at, &call1, v_v, v_i, v_factor); v_v.data[v_i] = value; }
    }
}
static void kernel_scale_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_scale_env *env = (const kernel_scale_env *)context;
    bool inside = true;
    const int64_t q0 = begin;
    const int64_t q1 = (end - 1);
    inside = inside && q0 >= 0 && q1 < env->v_v.n0;
    if (inside) kernel_scale_body0(env, begin, end, true);
    else kernel_scale_body0(env, begin, end, false);
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
    env.v_v.offset = slots->offset_v_v;
    env.v_v.n0 = slots->n0_v_v;
    env.v_factor = (float)slots->v_factor;
    view_f32_1c v_v = env.v_v;
    float v_factor = env.v_factor;
    (void)v_v;
    (void)v_factor;
    PA_SCRAP_ROOM;
    pa_at here = {rt, 0, -1, scrap};
    pa_at *at = &here;
    const pa_frame *up = 0;
    (void)at; (void)up;
    {
        const int64_t count = v_v.n0;
        if (count > 0) rt->parallel_for(rt, kernel_scale_loop0, &env, count, pa_grain(rt, count, 4));
    }
    at->loop = 1;
}
