#include <pa_base.h>
#include <pa_int.h>

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
    int64_t v_n;
} kernel_transposed_slots;

typedef struct {
    pa_runtime *rt;
    view_f32_2s v_a;
    view_f32_2s v_b;
    int64_t v_n;
    int64_t v_s;
    int64_t size0_0;
    int64_t size0_1;
    bool unit; /* every strided array has neighbours along its last axis */
} kernel_transposed_env;

static inline int64_t tested_product_2(int64_t n0, int64_t n1)
{
    if (n0 <= 0 || n1 <= 0) return 0;
    int64_t all = n0;
    if (all > 0x7fffffffffffffffll / n1) return 0;
    all *= n1;
    return all;
}

static inline __attribute__((always_inline)) void kernel_transposed_body0(const kernel_transposed_env *env, int64_t begin, int64_t end, const bool unit)
{
    view_f32_2s v_a = env->v_a;
    if (unit) v_a.s1 = (int64_t)sizeof(float);
    view_f32_2s v_b = env->v_b;
    if (unit) v_b.s1 = (int64_t)sizeof(float);
    const int64_t v_s = env->v_s;
    const int64_t size_v_i = env->size0_0;
    const int64_t size_v_j = env->size0_1;
    int64_t rest = begin;
    int64_t at_v_j = rest % size_v_j;
    rest /= size_v_j;
    int64_t at_v_i = rest % size_v_i;
    rest /= size_v_i;
    for (int64_t t = begin; t < end;) {
        const int64_t first = at_v_j;
        const int64_t row = size_v_j - first < end - t ? size_v_j - first : end - t;
        const int64_t row_v_i = at_v_i;
        for (int64_t k = first; k < first + row; ++k) {
            const int64_t v_j = k;
            const int64_t v_i = row_v_i;
            *((float *)((char *)v_a.data + (v_i * v_a.s0 + v_j * v_a.s1))) = ((*((float *)((char *)v_b.data + (v_j * v_b.s0 + v_i * v_b.s1)))) + ((float)v_s));
        }
        t += row;
        at_v_j = 0;
        if (++at_v_i == size_v_i) {
            at_v_i = 0;
        }
    }
}
static void kernel_transposed_loop0(void *context, int64_t begin, int64_t end)
{
    const kernel_transposed_env *env = (const kernel_transposed_env *)context;
    if (env->unit) kernel_transposed_body0(env, begin, end, true);
    else kernel_transposed_body0(env, begin, end, false);
}

#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) void kernel_transposed(const void *memory, pa_runtime *rt)
{
    const kernel_transposed_slots *slots = (const kernel_transposed_slots *)memory;
    kernel_transposed_env env;
    env.rt = rt;
    env.v_a.data = slots->data_v_a;
    env.v_a.n0 = slots->n0_v_a;
    env.v_a.n1 = slots->n1_v_a;
    env.v_a.s0 = slots->s0_v_a;
    env.v_a.s1 = slots->s1_v_a;
    env.v_b.data = slots->data_v_b;
    env.v_b.n0 = slots->n0_v_b;
    env.v_b.n1 = slots->n1_v_b;
    env.v_b.s0 = slots->s0_v_b;
    env.v_b.s1 = slots->s1_v_b;
    env.v_n = (int64_t)slots->v_n;
    view_f32_2s v_a = env.v_a;
    view_f32_2s v_b = env.v_b;
    int64_t v_n = env.v_n;
    (void)v_a;
    (void)v_b;
    (void)v_n;
    env.unit = v_a.s1 == (int64_t)sizeof(float) && v_b.s1 == (int64_t)sizeof(float);
    int64_t v_s = 0;
    v_s = pa_add_i64(v_n, 1);
    env.size0_0 = pa_range_len(0, v_n, 1);
    env.size0_1 = v_a.n1;
    env.v_s = v_s;
    {
        const int64_t count = tested_product_2(env.size0_0, env.size0_1);
        if (count > 0) rt->parallel_for(rt, kernel_transposed_loop0, &env, count, pa_grain(rt, count, 4));
    }
}
