/* Sorts rows of elements of 16 bits, as the upper halves of keys of 32 bits. PA_S_BITS is 32. */
#include "pa_sort_cpu.h"

typedef struct pa_sort_narrow {
    const pa_sort *job; /* of values that are as wide as keys */
    const uint16_t *x;
    uint16_t *out;
} pa_sort_narrow;

typedef uint16_t pa_halves_at __attribute__((vector_size(PA_S_LANES * 2), aligned(2), may_alias));

PA_S_NOINLINE void pa_sort_widen(void *context, int64_t begin, int64_t end)
{
    const pa_sort_narrow *narrow = (const pa_sort_narrow *)context;
    pa_key *to = (pa_key *)narrow->job->x;
    const int64_t size = narrow->job->rows * narrow->job->n, stop = end * PA_S_PIECE < size ? end * PA_S_PIECE : size;
    int64_t i = begin * PA_S_PIECE;
    for (; i + PA_S_LANES <= stop; i += PA_S_LANES)
        *(pa_keys_at *)(to + i) = __builtin_convertvector(*(const pa_halves_at *)(narrow->x + i), pa_keys) << 16;
    for (; i < stop; i++) to[i] = (pa_key)((pa_word)narrow->x[i] << 16);
}
PA_S_NOINLINE void pa_sort_narrow_back(void *context, int64_t begin, int64_t end)
{
    const pa_sort_narrow *narrow = (const pa_sort_narrow *)context;
    const pa_key *from = narrow->job->out;
    const int64_t size = narrow->job->rows * narrow->job->n, stop = end * PA_S_PIECE < size ? end * PA_S_PIECE : size;
    int64_t i = begin * PA_S_PIECE;
    for (; i + PA_S_LANES <= stop; i += PA_S_LANES)
        *(pa_halves_at *)(narrow->out + i) = __builtin_convertvector(*(const pa_keys_at *)(from + i) >> 16,
                                                                     pa_halves_at);
    for (; i < stop; i++) narrow->out[i] = (uint16_t)(from[i] >> 16);
}

/* job->tmp has two arrays of rows * n besides its own. */
PA_S_INLINE void pa_sort_all_narrow(pa_sort *job, const uint16_t *x, uint16_t *out)
{
    const int64_t size = job->rows * job->n, pieces = (size + PA_S_PIECE - 1) / PA_S_PIECE;
    pa_sort_narrow narrow = {job, x, out};
    job->x = job->tmp, job->out = job->tmp + size, job->tmp = job->out + size;
    job->rt->parallel_for(job->rt, pa_sort_widen, &narrow, pieces, 1);
    pa_sort_all(job);
    job->rt->parallel_for(job->rt, pa_sort_narrow_back, &narrow, pieces, 1);
}
