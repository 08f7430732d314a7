/* pa_stream.h: nontemporal stores of results that are too large for the cache. A plain store reads the cache line
   first, a third of the traffic of an addition. The loop computes a block into a buffer in the first-level cache, which
   pa_stream_copy stores. */
#ifndef PA_STREAM_H
#define PA_STREAM_H
#include "pa_base.h"

#define PA_STREAM_MIN ((int64_t)16 << 20) /* bytes of an array that doesn't stay in the cache */
#define PA_STREAM_BLOCK 8192              /* bytes of the buffer */

#if defined(__AVX__)
typedef float pa_wide __attribute__((vector_size(32), may_alias));
typedef float pa_wide_unaligned __attribute__((vector_size(32), may_alias, aligned(4)));
#else
typedef float pa_wide __attribute__((vector_size(16), may_alias));
typedef float pa_wide_unaligned __attribute__((vector_size(16), may_alias, aligned(4)));
#endif

/* The builtins, since <immintrin.h> takes longer to read than the kernel to compile. */
#if defined(__clang__)
#define PA_STREAM_STORE(p, v) __builtin_nontemporal_store(v, p)
#define PA_STREAM_END() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define PA_CAN_STREAM 1
#elif defined(__AVX__)
#define PA_STREAM_STORE(p, v) __builtin_ia32_movntps256((float *)(p), v)
#define PA_STREAM_END() __builtin_ia32_sfence()
#define PA_CAN_STREAM 1
#elif defined(__SSE2__)
#define PA_STREAM_STORE(p, v) __builtin_ia32_movntps((float *)(p), v)
#define PA_STREAM_END() __builtin_ia32_sfence()
#define PA_CAN_STREAM 1
#else
#define PA_STREAM_STORE(p, v) (*(p) = (v))
#define PA_STREAM_END() ((void)0)
#define PA_CAN_STREAM 0
#endif

/* Copies `size` bytes to `to`; whole vectors past the cache. Before others read them, PA_STREAM_END. */
PA_FN void pa_stream_copy(void *to, const void *from, int64_t size)
{
    char *target = (char *)to;
    const char *source = (const char *)from;
    for (; size > 0 && ((uint64_t)target & (sizeof(pa_wide) - 1)); --size) *target++ = *source++;
    for (; size >= (int64_t)sizeof(pa_wide); size -= (int64_t)sizeof(pa_wide)) {
        PA_STREAM_STORE((pa_wide *)target, *(const pa_wide_unaligned *)source);
        target += sizeof(pa_wide);
        source += sizeof(pa_wide);
    }
    while (size-- > 0) *target++ = *source++;
}

#endif
