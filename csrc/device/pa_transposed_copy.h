/* pa_transposed_copy.h: copies of CPU kernels into tiles whose rows lie across the memory of an array, by 4 x 4
   transposes (where the compiler has shuffles), a line of memory at a time. */
#ifndef PA_TRANSPOSED_COPY_H
#define PA_TRANSPOSED_COPY_H
#include "pa_base.h"

#if defined(__clang__) || __GNUC__ >= 12
#define PA_HAS_SHUFFLES 1
#define PA_SHUFFLE __builtin_shufflevector
#else
#define PA_HAS_SHUFFLES 0
#define PA_SHUFFLE(x, ...) (x)
#endif

/* Element (i, j) of `to`, whose rows are `pitch` elements apart, is element i of line j. Lines are `step` bytes
   apart. */
#define PA_TRANSPOSED_COPY(BITS)                                                                                       \
    static __attribute__((noinline, unused)) void pa_transposed_copy_##BITS(                                           \
        void *to, int64_t pitch, const void *from, int64_t step, int64_t rows, int64_t columns)                        \
    {                                                                                                                  \
        typedef uint##BITS##_t one __attribute__((may_alias));                                                         \
        typedef uint##BITS##_t four __attribute__((vector_size(BITS / 2), aligned(BITS / 8), may_alias));              \
        enum { LINE = 64 * 8 / BITS };                                                                                 \
        const int64_t high = PA_HAS_SHUFFLES ? rows & -4 : 0, wide = columns & -4;                                     \
        for (int64_t first = 0; first < high; first += LINE)                                                           \
            for (int64_t j = 0; j < wide; j += 4)                                                                      \
                for (int64_t i = first; i < first + LINE && i < high; i += 4) {                                        \
                    const char *x = (const char *)from + i * (BITS / 8) + j * step;                                    \
                    one *y = (one *)to + i * pitch + j;                                                                \
                    const four r0 = *(const four *)x, r1 = *(const four *)(x + step);                                  \
                    const four r2 = *(const four *)(x + 2 * step), r3 = *(const four *)(x + 3 * step);                 \
                    const four s0 = PA_SHUFFLE(r0, r1, 0, 4, 1, 5), s1 = PA_SHUFFLE(r2, r3, 0, 4, 1, 5);               \
                    const four s2 = PA_SHUFFLE(r0, r1, 2, 6, 3, 7), s3 = PA_SHUFFLE(r2, r3, 2, 6, 3, 7);               \
                    *(four *)y = PA_SHUFFLE(s0, s1, 0, 1, 4, 5);                                                       \
                    *(four *)(y + pitch) = PA_SHUFFLE(s0, s1, 2, 3, 6, 7);                                             \
                    *(four *)(y + 2 * pitch) = PA_SHUFFLE(s2, s3, 0, 1, 4, 5);                                         \
                    *(four *)(y + 3 * pitch) = PA_SHUFFLE(s2, s3, 2, 3, 6, 7);                                         \
                }                                                                                                      \
        for (int64_t j = 0; j < columns; ++j)                                                                          \
            for (int64_t i = j < wide ? high : 0; i < rows; ++i)                                                       \
                ((one *)to)[i * pitch + j] = ((const one *)((const char *)from + j * step))[i];                        \
    }
PA_TRANSPOSED_COPY(16)
PA_TRANSPOSED_COPY(32)
PA_TRANSPOSED_COPY(64)
#endif
