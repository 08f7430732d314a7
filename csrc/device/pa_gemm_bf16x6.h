/* pa_gemm_bf16x6.h: products of float32 on tensor cores of bfloat16. A number of 24 bits is the sum of three bfloat16
   of 8 bits, so a product is that of nine pairs of parts. The six largest are computed, without rounding, and summed in
   float32; the others are less than 2^-23 of the product together. (Henry, Tang, Heinecke, "Leveraging the bfloat16
   artificial intelligence datatype for higher-precision computations", 2019.) Tensor cores round sums towards zero. So
   the largest products are summed in them for a stage only, and added to the others in float32, rounded to nearest.
   Numbers whose parts or products float32 doesn't hold as normal numbers, infinities and NaN are flagged, and then
   another kernel computes the product. */
#ifndef PA_GEMM_BF16X6_H
#define PA_GEMM_BF16X6_H
#include "pa_base.h"
#include "pa_half.h"

/* The parts follow each other along the depth of an operand, the largest first. Products of pairs of them are summed in
   this order, the smallest first. */
enum { PA_BF16X6_PARTS = 3, PA_BF16X6_PRODUCTS = 6 };
template <bool OF_B> PA_FN int pa_bf16x6_part(int product)
{
    const unsigned parts = OF_B ? 0 | 2 << 2 | 1 << 4 | 0 << 6 | 1 << 8 | 0 << 10 : 2 | 0 << 2 | 1 << 4 | 1 << 6;
    return (int)(parts >> 2 * product & 3);
}

/* Whether a block of pa_bf16x6_operands has set its flag. Called by all threads of a block. */
PA_FN bool pa_bf16x6_flagged(const uint32_t *flags, int64_t count)
{
    bool any = false;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) any |= flags[i] != 0;
    return __syncthreads_or(any);
}

/* An operand, and its parts: matrices of a batch, of `rows` lines along the depth, or across (`along` 0). `from` has
   bytes between rows and along the depth, `to` lines of `pitch` elements; the depth of a part is `each`, the rest of it
   zeros. */
#ifndef PA_GEMM_BATCHES
#define PA_GEMM_BATCHES 1
#endif
typedef struct pa_bf16x6_operand {
    const char *from;
    pa_bf16 *to;
    int64_t rows, depth, rs, cs, pitch, each, along;
    int64_t batch[PA_GEMM_BATCHES], steps[PA_GEMM_BATCHES];
} pa_bf16x6_operand;

enum { PA_BF16X6_CHUNK = 8 }; /* elements of a thread: 16 bytes of each part */
PA_FN int64_t pa_bf16x6_chunks(const pa_bf16x6_operand *o)
{
    int64_t chunks = o->along ? o->rows * (o->each / PA_BF16X6_CHUNK) : o->each * (o->pitch / PA_BF16X6_CHUNK);
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) chunks *= o->batch[d];
    return chunks;
}
/* Splits chunk `i`; whether it has a number out of range. */
PA_FN bool pa_bf16x6_chunk(const pa_bf16x6_operand *o, int64_t i)
{
    struct alignas(16) eight { pa_bf16 v[PA_BF16X6_CHUNK]; } parts[PA_BF16X6_PARTS];
    union { float4 vectors[2]; float v[PA_BF16X6_CHUNK]; } x;
    const int64_t across = (o->along ? o->each : o->pitch) / PA_BF16X6_CHUNK, lines = o->along ? o->rows : o->each;
    const int64_t first = i % across * PA_BF16X6_CHUNK, line = i / across % lines;
    int64_t matrix = i / across / lines;
    pa_bf16 *to = o->to + (matrix * lines * (o->along ? 1 : PA_BF16X6_PARTS) + line) * o->pitch + first;
    const int64_t part = o->along ? o->each : o->each * o->pitch; /* between parts */
    const int64_t step = o->along ? o->cs : o->rs, end = o->along ? o->depth : o->rows;
    const char *from = o->from + line * (o->along ? o->rs : o->cs) + first * step;
#pragma unroll
    for (int d = PA_GEMM_BATCHES - 1; d >= 0; --d) {
        from += matrix % o->batch[d] * o->steps[d];
        matrix /= o->batch[d];
    }
    const int inside = !o->along && line >= o->depth ? 0 : end - first < PA_BF16X6_CHUNK ? (int)(end - first) : 8;
    if (inside == PA_BF16X6_CHUNK && step == 4 && ((uint64_t)from & 15) == 0)
        x.vectors[0] = ((const float4 *)from)[0], x.vectors[1] = ((const float4 *)from)[1];
    else
#pragma unroll
        for (int e = 0; e < PA_BF16X6_CHUNK; ++e) x.v[e] = e < inside ? *(const float *)(from + e * step) : 0.0f;
    bool outside = false;
#pragma unroll
    for (int e = 0; e < PA_BF16X6_CHUNK; ++e) {
        /* 2^-48 to 2^50, and 0 */
        const uint32_t bits = pa_bits_f32(x.v[e]) & 0x7fffffffu;
        outside |= bits != 0 && bits - (79u << 23) > 98u << 23;
        float rest = x.v[e];
#pragma unroll
        for (int p = 0; p < PA_BF16X6_PARTS; ++p) {
            parts[p].v[e] = pa_bf16_from_f32(rest);
            rest -= pa_f32_from_bf16(parts[p].v[e]);
        }
    }
#pragma unroll
    for (int p = 0; p < PA_BF16X6_PARTS; ++p) *(eight *)(to + p * part) = parts[p];
    return outside;
}
/* Splits both operands. A flag for each block: whether it has met a number out of range. */
PA_FN void pa_bf16x6_operands(const pa_bf16x6_operand *a, const pa_bf16x6_operand *b, uint32_t *flags)
{
    const int64_t of_a = pa_bf16x6_chunks(a), all = of_a + pa_bf16x6_chunks(b), step = (int64_t)gridDim.x * blockDim.x;
    bool outside = false;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step)
        outside |= i < of_a ? pa_bf16x6_chunk(a, i) : pa_bf16x6_chunk(b, i - of_a);
    outside = __syncthreads_or(outside);
    if (threadIdx.x == 0) flags[blockIdx.x] = outside;
}
#endif
