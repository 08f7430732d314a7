/* pa_gemm_loader.h: how the threads of a block load slices of the operands of a matrix product on a grid. */
#ifndef PA_GEMM_LOADER_H
#define PA_GEMM_LOADER_H

#if PA_G_ASYNC
template <int N> PA_FN void pa_cp_async(unsigned to, const char *from)
{
    if (N == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(N));
}
template <int N> PA_FN void pa_cp_async_or_zero(unsigned to, const char *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(inside ? N : 0), "n"(N));
}
#endif

/* A thread's loads of the slices of an operand, of which a tile has `ROWS` rows (columns, for B): ELEMENTS in each, by
   vectors if `vectorized`. `k_major`: contiguous along the depth. */
template <int ROWS> struct pa_gemm_loader {
    enum { ELEMENTS = PA_G_DEPTH * ROWS / PA_G_THREADS, LINE = ROWS + PA_G_PAD };
    const char *at; /* element 0 in the next slice */
    int64_t stride; /* bytes to the next element or vector */
    int shared_index, shared_stride; /* elements in shared memory: of element 0, and to the next element or vector */
    int rows;                        /* that are inside */
    bool vectorized, k_major;

    __device__ inline void start(const char *base, int64_t left, int64_t rs, int64_t cs, bool along)
    {
        const uint64_t mask = alignof(pa_gemm_vector) - 1;
        k_major = along;
        vectorized = (along ? cs : rs) == (int64_t)sizeof(PA_T) &&
                     (((uint64_t)base | (uint64_t)(along ? rs : cs)) & mask) == 0 && !(PA_G_ASYNC && k_major);
        rows = left < ROWS ? (int)left : ROWS;
        const int step = vectorized ? PA_G_VECTOR : 1, row = row_of(0), depth = depth_of(0);
        shared_index = depth * LINE + row;
        shared_stride = (depth_of(step) - depth) * LINE + row_of(step) - row;
        stride = (depth_of(step) - depth) * cs + (row_of(step) - row) * rs;
        at = base + row * rs + depth * cs;
    }
    /* Indices of element e in the slice along the contiguous axis and along the other one. Sizes are powers of two. */
    __device__ inline int group() const
    {
        return (k_major ? (int)PA_G_DEPTH : ROWS) / (vectorized ? (int)PA_G_VECTOR : 1);
    }
    __device__ inline int fast_index(int e) const
    {
        const int t = (int)threadIdx.x & (group() - 1);
        return vectorized ? t * PA_G_VECTOR + e % PA_G_VECTOR : t;
    }
    __device__ inline int slow_index(int e) const
    {
        const int shift = 31 - __clz(group());
        return ((int)threadIdx.x >> shift) + (vectorized ? e / PA_G_VECTOR : e) * (PA_G_THREADS >> shift);
    }
    __device__ inline int row_of(int e) const { return k_major ? slow_index(e) : fast_index(e); }
    __device__ inline int depth_of(int e) const { return k_major ? fast_index(e) : slow_index(e); }
};

/* The next slice where some of it may be outside the matrix, of whose depth `depths` are left: zeros there. */
template <int ROWS> PA_FN void pa_gemm_load_edge(const pa_gemm_grid *g, pa_runtime *rt, int which, uint32_t tile,
                                                 const pa_gemm_loader<ROWS> *w, int64_t depths, int64_t rs, int64_t cs,
                                                 PA_G_ELEMENT *to)
{
#pragma unroll 1
    for (int e = 0; e < pa_gemm_loader<ROWS>::ELEMENTS; ++e) {
        const int row = w->row_of(e), depth = w->depth_of(e);
        const char *p = w->at + (row - w->row_of(0)) * rs + (depth - w->depth_of(0)) * cs;
        bool inside = false;
        if (row < w->rows && depth < depths) inside = PA_G_INSIDE(which, p);
        PA_G_ELEMENT *element = to + depth * pa_gemm_loader<ROWS>::LINE + row;
#if PA_G_ASYNC
        pa_cp_async_or_zero<PA_G_SIZE>((unsigned)__cvta_generic_to_shared(element), p, inside);
#else
        if (inside) *element = PA_LOAD(*(const PA_T *)p);
        else PA_G_ZERO(*element);
#endif
    }
}

#if PA_G_ASYNC
/* Starts to copy the next slice: all of it is inside. `to` is an address of cp.async. */
template <int ROWS> PA_FN void pa_gemm_load_async(const pa_gemm_loader<ROWS> *w, unsigned to)
{
    typedef pa_gemm_loader<ROWS> loader;
    to += w->shared_index * PA_G_SIZE;
    if (w->vectorized) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS / PA_G_VECTOR; ++e)
            pa_cp_async<16>(to + e * w->shared_stride * PA_G_SIZE, w->at + e * w->stride);
    } else {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e)
            pa_cp_async<PA_G_SIZE>(to + e * w->shared_stride * PA_G_SIZE, w->at + e * w->stride);
    }
}
#else
/* Loads the next slice into registers: all of it is inside. */
template <int ROWS> PA_FN void pa_gemm_load(const pa_gemm_loader<ROWS> *w, PA_G_ELEMENT *to)
{
    typedef pa_gemm_loader<ROWS> loader;
    if (w->vectorized) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; e += PA_G_VECTOR) {
            const pa_gemm_vector x = *(const pa_gemm_vector *)(w->at + e / PA_G_VECTOR * w->stride);
#pragma unroll
            for (int j = 0; j < PA_G_VECTOR; ++j) to[e + j] = PA_LOAD(x.v[j]);
        }
    } else {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e) to[e] = PA_LOAD(*(const PA_T *)(w->at + e * w->stride));
    }
}

/* Stores the loaded elements to shared memory. */
template <int ROWS>
PA_FN void pa_gemm_store_shared(const pa_gemm_loader<ROWS> *w, const PA_G_ELEMENT *from, PA_G_ELEMENT *to)
{
    typedef pa_gemm_loader<ROWS> loader;
    to += w->shared_index;
    if (w->vectorized && !w->k_major) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; e += PA_G_PART)
            *(pa_gemm_fragment *)(to + e / PA_G_VECTOR * w->shared_stride +
                                  e % PA_G_VECTOR) = *(const pa_gemm_fragment *)(from + e);
    } else if (w->vectorized) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e)
            to[e / PA_G_VECTOR * w->shared_stride + e % PA_G_VECTOR * loader::LINE] = from[e];
    } else {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e) to[e * w->shared_stride] = from[e];
    }
}
#endif
#endif
