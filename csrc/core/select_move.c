/* Loops of selections on the host: over truths, and moves of cells between offsets and a layout. */
#include <string.h>

#include "select.h"

int pac_merge_axes(pac_axis *axes, int n)
{
    int kept = 0;
    for (int k = 0; k < n; k++) {
        pac_axis x = axes[k];
        if (x.size == 1) continue;
        pac_axis *last = axes + kept - 1;
        if (kept && last->here == x.here * x.size && last->there == x.there * x.size) {
            *last = (pac_axis){last->size * x.size, x.here, x.there, 0};
        } else {
            axes[kept++] = x;
        }
    }
    return kept;
}

int64_t pac_few_elements(int ndim, const int64_t *shape)
{
    int64_t size = 1, more = 0;
    for (int k = 0; k < ndim; k++) {
        if (!shape[k]) return 0;
        if (shape[k] > PAC_SELECT_LIMIT || size > PAC_SELECT_LIMIT) more = 1; /* a later size may still be 0 */
        else size *= shape[k];
    }
    return more || size > PAC_SELECT_LIMIT ? -1 : size;
}

static void byte_range(const pac_array *a, uintptr_t *low, uintptr_t *high)
{
    *low = *high = a->ptr;
    for (int k = 0; k < PAC_NDIM(a); k++) {
        int64_t reach = (PAC_SHAPE(a)[k] - 1) * PAC_STRIDES(a)[k];
        *(reach < 0 ? low : high) += (uintptr_t)reach;
    }
    *high += (uintptr_t)PAC_ITEMSIZE(a);
}

int pac_may_overlap(const pac_array *a, const pac_array *b)
{
    if (!a->size || !b->size) return 0;
    uintptr_t a_low, a_high, b_low, b_high;
    byte_range(a, &a_low, &a_high);
    byte_range(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

/* ---- truths ---------------------------------------------------------------------------------------------------- */

/* The bits that `mask` leaves of an element of one or two parts: all but the sign of a floating number, whose zeros are
   two and whose NaNs aren't zero. */
#define TRUTHS(name, type, parts, mask)                                                        \
    static void name(uint8_t *to, const char *from, int64_t stride, int64_t count)             \
    {                                                                                          \
        for (int64_t k = 0; k < count; k++, from += stride) {                                  \
            type x[parts];                                                                     \
            memcpy(x, from, sizeof x);                                                         \
            to[k] = ((x[0] | x[(parts)-1]) & (type)(mask)) != 0;                               \
        }                                                                                      \
    }

TRUTHS(truths_1, uint8_t, 1, UINT8_MAX)
TRUTHS(truths_2, uint16_t, 1, UINT16_MAX)
TRUTHS(truths_4, uint32_t, 1, UINT32_MAX)
TRUTHS(truths_8, uint64_t, 1, UINT64_MAX)
TRUTHS(truths_float8, uint8_t, 1, INT8_MAX)
TRUTHS(truths_half, uint16_t, 1, INT16_MAX)
TRUTHS(truths_float, uint32_t, 1, INT32_MAX)
TRUTHS(truths_double, uint64_t, 1, INT64_MAX)
TRUTHS(truths_c64, uint32_t, 2, INT32_MAX)
TRUTHS(truths_c128, uint64_t, 2, INT64_MAX)

typedef void (*truths_loop)(uint8_t *to, const char *from, int64_t stride, int64_t count);
static const truths_loop truths_loops[PAC_CODES] = {
    truths_1, truths_1, truths_2, truths_4, truths_8, truths_1, truths_2, truths_4, truths_8, /* bool, integers */
    truths_half, truths_half, truths_float, truths_double, truths_c64, truths_c128, truths_float8, truths_float8,
};

const uint8_t *pac_truths(const pac_array *a, uint8_t *space, uint8_t **made)
{
    int single_bytes = truths_loops[PAC_CODE(a)] == truths_1;
    *made = NULL;
    if (single_bytes && !(a->key & PAC_STRIDED)) return (const uint8_t *)pac_host_memory(a);
    if (a->size > PAC_SELECT_SPACE) {
        *made = space = PyMem_Malloc((size_t)a->size);
        if (!space) return (const uint8_t *)PyErr_NoMemory();
    }
    if (!a->size) return space;
    pac_axis axes[PAC_SELECT_NDIM];
    for (int k = 0; k < PAC_NDIM(a); k++) axes[k] = (pac_axis){PAC_SHAPE(a)[k], PAC_STRIDES(a)[k], 0, 0};
    int n = pac_merge_axes(axes, PAC_NDIM(a));
    pac_axis last = n ? axes[--n] : (pac_axis){1, 0, 0, 0};
    const char *here = pac_host_memory(a), *none = NULL;
    uint8_t *to = space;
    do {
        truths_loops[PAC_CODE(a)](to, here, last.here, last.size);
        to += last.size;
    } while (pac_next_place(axes, n, &here, &none));
    return space;
}

#define BYTES_OF(x) (UINT64_C(0x0101010101010101) * (x))
#define ALTERNATE_BYTES UINT64_C(0x00FF00FF00FF00FF)

/* The highest bit of each of eight bytes that isn't 0: masks that were other types hold more than 0 and 1. */
static inline uint64_t true_bits(const uint8_t *bytes)
{
    uint64_t x;
    memcpy(&x, bytes, sizeof x);
    return (((x & BYTES_OF(0x7F)) + BYTES_OF(0x7F)) | x) & BYTES_OF(0x80);
}

int64_t pac_count_true(const uint8_t *bytes, int64_t n)
{
    int64_t count = 0, k = 0;
    while (n - k >= 8) {
        uint64_t sums = 0; /* of each byte's column, in 255 steps at most */
        int64_t end = n - k >= 8 * 255 ? k + 8 * 255 : n - 7;
        for (; k < end; k += 8) sums += true_bits(bytes + k) >> 7;
        sums = (sums & ALTERNATE_BYTES) + (sums >> 8 & ALTERNATE_BYTES);
        count += (int64_t)(sums * UINT64_C(0x0001000100010001) >> 48);
    }
    for (; k < n; k++) count += bytes[k] != 0;
    return count;
}

/* Elements between two tests of bounds: that of the mask is there for masks which others change meanwhile. */
enum { STEPS = 8 };

int pac_list_true(const uint8_t *bytes, int64_t n, int64_t count, int64_t *positions)
{
    int64_t at = 0, k = 0;
    if (count * 8 < n) { /* few: most of the words are 0, which a processor foresees */
        for (; count - at >= STEPS && n - k >= STEPS; k += STEPS) {
            for (uint64_t bits = true_bits(bytes + k); bits; bits &= bits - 1) {
                positions[at++] = k + (__builtin_ctzll(bits) >> 3);
            }
        }
        for (; at < count && n - k >= STEPS; k += STEPS) { /* the last ones */
            for (uint64_t bits = true_bits(bytes + k); bits && at < count; bits &= bits - 1) {
                positions[at++] = k + (__builtin_ctzll(bits) >> 3);
            }
        }
    }
    while (count - at >= STEPS && n - k >= STEPS) { /* without a branch, which would be foreseen half of the time */
        for (int step = 0; step < STEPS; step++, k++) {
            positions[at] = k;
            at += bytes[k] != 0;
        }
    }
    for (; at < count && k < n; k++) {
        if (bytes[k]) positions[at++] = k;
    }
    return at == count;
}

#define COMPRESS(size)                                                                                     \
    static int compress_##size(char *to, const char *from, const uint8_t *mask, int64_t n, int64_t count)  \
    {                                                                                                      \
        int64_t at = 0;                                                                                    \
        int64_t k = 0;                                                                                     \
        while (count - at >= STEPS && n - k >= STEPS) {                                                    \
            for (int step = 0; step < STEPS; step++, k++) {                                                \
                memcpy(to + at * size, from + k * size, size);                                             \
                at += mask[k] != 0;                                                                        \
            }                                                                                              \
        }                                                                                                  \
        for (; at < count && k < n; k++) {                                                                 \
            memcpy(to + at * size, from + k * size, size);                                                 \
            at += mask[k] != 0;                                                                            \
        }                                                                                                  \
        return at == count;                                                                                \
    }

COMPRESS(1)
COMPRESS(2)
COMPRESS(4)
COMPRESS(8)
COMPRESS(16)

int pac_compress(char *to, const char *from, const uint8_t *mask, int64_t n, int64_t count, int itemsize)
{
    switch (itemsize) {
    case 1: return compress_1(to, from, mask, n, count);
    case 2: return compress_2(to, from, mask, n, count);
    case 4: return compress_4(to, from, mask, n, count);
    case 8: return compress_8(to, from, mask, n, count);
    default: return compress_16(to, from, mask, n, count);
    }
}

/* ---- moves ----------------------------------------------------------------------------------------------------- */

/* Cells of `cell` bytes: from offsets to steps, from steps to offsets (the last of several for one offset stays), and
   from steps to steps. */
typedef struct cell_loops {
    void (*gather)(char *to, int64_t step, const char *from, const int64_t *offsets, int64_t count, size_t cell);
    void (*scatter)(char *to, const int64_t *offsets, const char *from, int64_t step, int64_t count, size_t cell);
    void (*copy)(char *to, int64_t to_step, const char *from, int64_t step, int64_t count, size_t cell);
} cell_loops;

#define CELL_LOOPS(name, size)                                                                                        \
    static void gather_##name(char *to, int64_t step, const char *from, const int64_t *offsets, int64_t count,        \
                              size_t cell)                                                                            \
    {                                                                                                                 \
        (void)cell;                                                                                                   \
        for (int64_t k = 0; k < count; k++, to += step) memcpy(to, from + offsets[k], size);                          \
    }                                                                                                                 \
    static void scatter_##name(char *to, const int64_t *offsets, const char *from, int64_t step, int64_t count,       \
                               size_t cell)                                                                           \
    {                                                                                                                 \
        (void)cell;                                                                                                   \
        for (int64_t k = 0; k < count; k++, from += step) memcpy(to + offsets[k], from, size);                        \
    }                                                                                                                 \
    static void copy_##name(char *to, int64_t to_step, const char *from, int64_t step, int64_t count, size_t cell)    \
    {                                                                                                                 \
        (void)cell;                                                                                                   \
        for (int64_t k = 0; k < count; k++, to += to_step, from += step) memcpy(to, from, size);                      \
    }                                                                                                                 \
    static const cell_loops loops_##name = {gather_##name, scatter_##name, copy_##name};

CELL_LOOPS(1, 1)
CELL_LOOPS(2, 2)
CELL_LOOPS(4, 4)
CELL_LOOPS(8, 8)
CELL_LOOPS(16, 16)
CELL_LOOPS(any, cell)

static const cell_loops *loops_of(int64_t cell)
{
    switch (cell) {
    case 1: return &loops_1;
    case 2: return &loops_2;
    case 4: return &loops_4;
    case 8: return &loops_8;
    case 16: return &loops_16;
    default: return &loops_any;
    }
}

/* All of one place of the middle, then the next: for a middle that is shorter than the last axis. */
static void move_runs(const pac_selection *s, int64_t cell, char *other, int64_t step, pac_axis *axes, int n, int into)
{
    const cell_loops *loops = loops_of(cell);
    pac_axis last = axes[--n];
    for (int64_t k = 0; k < s->count; k++) {
        const char *here = (const char *)s->at + s->offsets[k], *there = other + k * step;
        do {
            if (into) loops->copy((char *)here, last.here, there, last.there, last.size, (size_t)cell);
            else loops->copy((char *)there, last.there, here, last.here, last.size, (size_t)cell);
        } while (pac_next_place(axes, n, &here, &there));
    }
}

void pac_move_selected(const pac_selection *s, int itemsize, char *other, const int64_t *steps, int64_t step, int into)
{
    pac_axis axes[PAC_SELECT_AXES];
    int n = 0;
    for (int k = 0; k < s->ndim; k++) {
        if (k >= s->before && k < s->before + s->middle) continue;
        axes[n++] = (pac_axis){s->shape[k], s->strides[k], steps[k], 0};
    }
    n = pac_merge_axes(axes, n);
    int64_t cell = itemsize;
    if (n && axes[n - 1].here == cell && axes[n - 1].there == cell) cell *= axes[--n].size;
    if (n && axes[n - 1].size > s->count) {
        move_runs(s, cell, other, step, axes, n, into);
        return;
    }
    const cell_loops *loops = loops_of(cell);
    const char *here = (const char *)s->at, *there = other;
    do {
        if (into) loops->scatter((char *)here, s->offsets, there, step, s->count, (size_t)cell);
        else loops->gather((char *)there, step, here, s->offsets, s->count, (size_t)cell);
    } while (pac_next_place(axes, n, &here, &there));
}
