/* pa_prefetch.h: prefetches rows of arrays into the second-level cache, ahead of their use. */
#ifndef PA_PREFETCH_H
#define PA_PREFETCH_H
#include "pa_base.h"

/* Rows of an array, `step` bytes apart. A list of them ends with one that has no address. */
typedef struct {
    const char *at;
    int64_t step, rows, bytes;
} pa_prefetch_next;

/* So many of the rows, which are then no longer in the list. */
PA_FN void pa_prefetch_rows(pa_prefetch_next *next, int64_t count)
{
    for (; next->at; ++next)
        for (; next->rows > 0; --next->rows, next->at += next->step) {
            if (count-- == 0) return;
            const char *line = (const char *)((uintptr_t)next->at & ~(uintptr_t)63);
            for (; line < next->at + next->bytes; line += 64) __builtin_prefetch(line, 0, 2);
        }
}

#endif
