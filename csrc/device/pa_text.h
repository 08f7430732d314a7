/* pa_text.h: frame of ElementwiseKernel and ReductionKernel (pyarray/kernels/cpp): the index of an iteration, and `raw`
   arrays, whose accesses PA_DEBUG_CHECKS makes checked. */
#ifndef PA_TEXT_H
#define PA_TEXT_H
#include "pa_cpp.h"
#ifdef PA_DEBUG_CHECKS
#include "pa_check.h"
#endif

/* The location of a check, for failure records. */
struct pa_text_at {
    pa_runtime *rt;
    int64_t tid;
};

/* The number of an iteration as an index into the loop's shape: `_ind`. */
template <int N> struct pa_indexer {
    int64_t size_, shape_[N], index_[N];
    __device__ int64_t size() const { return size_; }
    __device__ const int64_t (&get() const)[N] { return index_; }
    __device__ void start()
    {
        size_ = 1;
        for (int k = 0; k < N; ++k) size_ *= shape_[k];
    }
    __device__ void set(int64_t i)
    {
        if (size_ <= 0x7fffffff) { /* 64-bit division is several times slower */
            uint32_t rest = (uint32_t)i;
            for (int k = N - 1; k > 0; --k) {
                const uint32_t n = (uint32_t)shape_[k], q = rest / n;
                index_[k] = (int64_t)(rest - q * n);
                rest = q;
            }
            index_[0] = (int64_t)rest;
            return;
        }
        for (int k = N - 1; k > 0; --k) {
            index_[k] = i % shape_[k];
            i /= shape_[k];
        }
        index_[0] = i;
    }
};

/* A `raw` array: linear indices are in C order, whatever the strides. C says that they are addresses, too. */
template <typename T, int N, bool C> struct pa_raw {
    static const int ndim = N;
    T *data_;
    int64_t size_, shape_[N], strides_[N];
#ifdef PA_DEBUG_CHECKS
    int64_t offset_;
    int32_t site_; /* of linear indices; the axes' follow */
    const pa_text_at *at_;
    mutable T scrap_;
    __device__ bool inside(int axis, int64_t i, int64_t n) const
    {
        return pa_check_index(at_->rt, 0, site_ + axis, 0, at_->tid, i, n, offset_, size_);
    }
#else
    __device__ bool inside(int, int64_t, int64_t) const { return true; }
#endif
    __device__ int64_t size() const { return size_; }
    __device__ const int64_t *shape() const { return shape_; }
    __device__ const int64_t *strides() const { return strides_; }
    __device__ T &scrap() const
    {
#ifdef PA_DEBUG_CHECKS
        return scrap_;
#else
        return *data_;
#endif
    }
    __device__ T &at(int64_t i) const
    {
        if (!inside(0, i, size_)) return scrap();
        if (C) return data_[i];
        int64_t bytes = 0;
        for (int k = N - 1; k > 0; --k) {
            bytes += i % shape_[k] * strides_[k];
            i /= shape_[k];
        }
        return *(T *)((char *)data_ + bytes + i * strides_[0]);
    }
    template <typename I> __device__ T &at(const I (&i)[N]) const
    {
        int64_t bytes = 0;
        bool all = true;
        for (int k = 0; k < N; ++k) {
            all &= inside(k + 1, (int64_t)i[k], shape_[k]);
            bytes += (int64_t)i[k] * strides_[k];
        }
        return all ? *(T *)((char *)data_ + bytes) : scrap();
    }
    __device__ T &operator[](int64_t i) { return at(i); }
    __device__ const T &operator[](int64_t i) const { return at(i); }
    template <typename I> __device__ T &operator[](const I (&i)[N]) { return at(i); }
    template <typename I> __device__ const T &operator[](const I (&i)[N]) const { return at(i); }
};

#endif
