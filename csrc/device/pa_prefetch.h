/* pa_prefetch.h: prefetches rows of arrays into the second-level cache, ahead of their use. */
#ifndef PA_PREFETCH_H
#define PA_PREFETCH_H
#include "pa_base.h"

/* Rows of an array, `step` bytes apart, of whose first one `past` bytes are already prefetched. A list of them ends
   with one that has no address. */
typedef struct {
    const char *at;
    int64_t step, rows, bytes, past;
} pa_prefetch_next;

#define PA_PREFETCH_LINE 64

/* The most cache lines that the rows of a list can have. */
PA_FN int64_t pa_prefetch_count(const pa_prefetch_next *next)
{
    int64_t count = 0;
    for (; next && next->at; ++next) /* of the iteration behind the last one, rows may be fewer than none */
        if (next->rows > 0 && next->bytes > 0) count += next->rows * ((next->bytes - 2) / PA_PREFETCH_LINE + 2);
    return count;
}

/* So many lines of the rows, which are then no longer in the list. Processors drop some of many prefetches at a time
   (a Zen 3: of 12 lines half, of 4 none), so it is called for a few lines, often. */
PA_FN void pa_prefetch_lines(pa_prefetch_next *next, int64_t count)
{
    for (; next->at; ++next)
        for (; next->rows > 0; --next->rows, next->at += next->step, next->past = 0) {
            const char *first = (const char *)((uintptr_t)next->at & ~(uintptr_t)(PA_PREFETCH_LINE - 1));
            for (; first + next->past < next->at + next->bytes; next->past += PA_PREFETCH_LINE) {
                if (count-- == 0) return;
                __builtin_prefetch(first + next->past, 0, 2);
            }
        }
}

#endif
