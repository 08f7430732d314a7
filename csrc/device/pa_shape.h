/* pa_shape.h: reshaped views, and delinearization of indices. */

#ifndef PA_SHAPE_H
#define PA_SHAPE_H

#include "pa_base.h"
#include "pa_check.h"

/* a / b of numbers that aren't negative, b not 0; a division of 64 bits is several times slower than one of 32 bits */
PA_FN int64_t pa_shape_over(int64_t a, int64_t b)
{
    return (a | b) >> 31 ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* Whether a view of `all` elements can have a shape of `count` sizes m; if `missing` isn't -1, the size of that axis is
   computed first. If it can't, all sizes become 0, and `requested` is the shape's number of elements, -1 if no array
   can have the shape. */
PA_FN bool pa_shape_fits(int64_t *m, int count, int missing, int64_t all, int64_t *requested)
{
    bool fits = true;
    int64_t others = 1;
    for (int k = 0; k < count; ++k) {
        if (k == missing) continue;
        others = pa_bound_mul(others, m[k], &fits);
        fits = fits && m[k] >= 0;
    }
    if (missing >= 0) m[missing] = fits && others > 0 ? pa_shape_over(all, others) : 0;
    *requested = !fits ? -1 : missing < 0 ? others : others * m[missing];
    if (*requested == all) return true;
    if (missing >= 0 && fits) *requested = others;
    for (int k = 0; k < count; ++k) m[k] = 0;
    return false;
}

/* The strides t of a view with `axes` sizes n and strides s when it is reshaped, in C order, to `count` sizes m. False
   if that would take a copy. n and s are overwritten. */
PA_FN bool pa_shape_strides(int64_t *n, int64_t *s, int axes, const int64_t *m, int64_t *t, int count)
{
    int rank = 0; /* axes of more than one element */
    for (int k = 0; k < count; ++k) t[k] = 0;
    for (int k = 0; k < axes; ++k) {
        if (n[k] == 0) return true;
        if (n[k] == 1) continue;
        n[rank] = n[k];
        s[rank++] = s[k];
    }
    for (int i = 0, j = 0, a, b; i < rank; i = a, j = b) { /* axes i to a and j to b have as many elements */
        int64_t left = n[i], right = m[j];
        for (a = i + 1, b = j + 1; left != right;)
            if (left < right) left *= n[a++];
            else right *= m[b++];
        for (int k = i; k + 1 < a; ++k)
            if (s[k] != n[k + 1] * s[k + 1]) return false;
        int64_t step = s[a - 1];
        for (int k = b - 1; k >= j; step *= m[k--]) t[k] = step;
    }
    return true;
}

#endif
