/* Layouts of elementwise launches, by the rules of pyarray/kernels/elementwise/elementwise.py: `map_layout`. */
#include "map.h"
#include <string.h>

/* Elements: smaller operands stay in the cache without tiles. */
#define TILED_FROM (1 << 14)

static int64_t magnitude(int64_t n) { return n < 0 ? -n : n; }

int pac_map_broadcast(int count, pac_array *const *arrays, int64_t *shape) {
    int ndim = 0;
    for (int k = 0; k < count; ++k)
        if (arrays[k] && PAC_NDIM(arrays[k]) > ndim) ndim = PAC_NDIM(arrays[k]);
    if (ndim > PAC_MAP_NDIM) return -1;
    for (int axis = 0; axis < ndim; ++axis) shape[axis] = 1;
    for (int k = 0; k < count; ++k) {
        if (!arrays[k]) continue;
        const int lead = ndim - PAC_NDIM(arrays[k]);
        for (int axis = lead; axis < ndim; ++axis) {
            const int64_t n = PAC_SHAPE(arrays[k])[axis - lead];
            if (n == 1 || n == shape[axis]) continue;
            if (shape[axis] != 1) return -1;
            shape[axis] = n;
        }
    }
    int64_t nbytes = 16; /* of the largest elements */
    for (int axis = 0; axis < ndim; ++axis)
        if (__builtin_mul_overflow(nbytes, shape[axis] ? shape[axis] : 1, &nbytes)) return -1;
    return ndim;
}

/* Axes, the slowest first, by the magnitude of strides; axes of one element come last. */
static void memory_order(int ndim, const int64_t *shape, const int64_t *strides, int *order) {
    for (int axis = 0; axis < ndim; ++axis) {
        const int64_t step = shape[axis] > 1 ? magnitude(strides[axis]) : 0;
        int at = axis;
        for (; at > 0; --at) {
            const int other = order[at - 1];
            if ((shape[other] > 1 ? magnitude(strides[other]) : 0) >= step) break;
            order[at] = other;
        }
        order[at] = axis;
    }
}

static int same_shape(const pac_array *a, int ndim, const int64_t *shape) {
    return PAC_NDIM(a) == ndim && !memcmp(PAC_SHAPE(a), shape, (size_t)ndim * sizeof *shape);
}

void pac_map_result_strides(int count, pac_array *const *arrays, int ndim, const int64_t *shape, int itemsize,
                            int64_t *strides) {
    int order[PAC_MAP_NDIM], other[PAC_MAP_NDIM], in_c_order = 0, alike = 0;
    for (int axis = 0; axis < ndim; ++axis) in_c_order |= !shape[axis];
    for (int k = 0; k < count && !in_c_order; ++k) {
        if (!arrays[k] || !same_shape(arrays[k], ndim, shape)) continue;
        if (!(arrays[k]->key & PAC_STRIDED)) in_c_order = 1;
        memory_order(ndim, shape, PAC_STRIDES(arrays[k]), alike ? other : order);
        if (alike++ && memcmp(order, other, (size_t)ndim * sizeof *order)) in_c_order = 1;
    }
    int64_t step = itemsize;
    for (int k = ndim - 1; k >= 0; --k) {
        const int axis = in_c_order || !alike ? k : order[k];
        strides[axis] = step;
        step *= shape[axis] ? shape[axis] : 1;
    }
}

/* Columns of strides of the output and the operands along the output's axes, with `shape`. */
typedef struct {
    int ndim, count;
    int64_t shape[PAC_MAP_NDIM], steps[PAC_MAP_NDIM][PAC_MAP_OPERANDS + 1];
} columns;

/* The axes by the output's strides, longest first, so that it is written front to back; neighbours are merged where
   each stride of the outer is that of the inner times its size. */
static void read_columns(int count, pac_array *const *arrays, columns *c) {
    const pac_array *out = arrays[0];
    const int ndim = PAC_NDIM(out);
    int order[PAC_MAP_NDIM];
    for (int axis = 0; axis < ndim; ++axis) {
        int at = axis;
        for (; at > 0 && magnitude(PAC_STRIDES(out)[order[at - 1]]) < magnitude(PAC_STRIDES(out)[axis]); --at)
            order[at] = order[at - 1];
        order[at] = axis;
    }
    c->ndim = 0;
    c->count = count;
    for (int k = 0; k < ndim; ++k) {
        const int axis = order[k];
        const int64_t n = PAC_SHAPE(out)[axis];
        if (n == 1) continue;
        int64_t *steps = c->steps[c->ndim];
        for (int x = 0; x < count; ++x) {
            const int at = arrays[x] ? axis - (ndim - PAC_NDIM(arrays[x])) : -1;
            const int repeats = at < 0 || (PAC_SHAPE(arrays[x])[at] == 1);
            steps[x] = repeats ? 0 : PAC_STRIDES(arrays[x])[at];
        }
        int merges = c->ndim > 0;
        for (int x = 0; x < count && merges; ++x) merges = c->steps[c->ndim - 1][x] == steps[x] * n;
        if (merges) {
            c->shape[c->ndim - 1] *= n;
            memcpy(c->steps[c->ndim - 1], steps, sizeof c->steps[0]);
        } else
            c->shape[c->ndim++] = n;
    }
}

/* The axis along which an operand's elements lie closest, -1 if it has none. */
static int fastest_axis(const columns *c, int x) {
    int fast = -1;
    for (int axis = 0; axis < c->ndim; ++axis)
        if (c->steps[axis][x] && (fast < 0 || magnitude(c->steps[axis][x]) < magnitude(c->steps[fast][x]))) fast = axis;
    return fast;
}

/* Whether to tile; then the axis of the tile is moved to the last but one. */
static int tile(columns *c) {
    const int last = c->ndim - 1;
    for (int x = 1; x < c->count; ++x) {
        const int fast = fastest_axis(c, x);
        if (fast < 0 || !c->steps[last][x] || fast == last) continue;
        const int64_t n = c->shape[fast], m = c->shape[last];
        if (n * m < TILED_FROM || n < 4 || m < 4) continue;
        int64_t steps[PAC_MAP_OPERANDS + 1];
        memcpy(steps, c->steps[fast], sizeof steps);
        for (int axis = fast; axis + 1 < last; ++axis) {
            c->shape[axis] = c->shape[axis + 1];
            memcpy(c->steps[axis], c->steps[axis + 1], sizeof steps);
        }
        c->shape[last - 1] = n;
        memcpy(c->steps[last - 1], steps, sizeof steps);
        return 1;
    }
    return 0;
}

void pac_map_merge(int count, pac_array *const *arrays, pac_map_layout *layout) {
    columns c;
    read_columns(count, arrays, &c);
    layout->tiled = tile(&c);
    layout->ndim = c.ndim;
    memcpy(layout->shape, c.shape, sizeof layout->shape);
    for (int x = 0; x < count; ++x) {
        if (!arrays[x]) continue;
        pac_map_view *view = &layout->views[x];
        int64_t size;
        view->ndim = 0;
        view->axes = 0;
        for (int axis = 0; axis < c.ndim; ++axis) {
            if (x && !c.steps[axis][x]) continue;
            view->axes |= 1u << axis;
            view->shape[view->ndim] = c.shape[axis];
            view->strides[view->ndim++] = c.steps[axis][x];
        }
        view->strided = !pac_is_contiguous(view->ndim, view->shape, view->strides, PAC_ITEMSIZE(arrays[x]), &size);
    }
}

uint64_t pac_map_layout_key(int count, pac_array *const *arrays, const pac_map_layout *layout) {
    uint64_t key = (uint64_t)layout->ndim << 1 | (uint64_t)layout->tiled;
    for (int x = 0; x < count; ++x)
        key = key << 9 | (arrays[x] ? (uint64_t)layout->views[x].axes << 1 | (uint64_t)layout->views[x].strided : 0);
    return key;
}

static void byte_range(const pac_array *a, uintptr_t *low, uintptr_t *high) {
    *low = *high = a->ptr;
    for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
        const int64_t extent = (PAC_SHAPE(a)[axis] - 1) * PAC_STRIDES(a)[axis];
        if (extent < 0) *low += (uintptr_t)extent;
        else *high += (uintptr_t)extent;
    }
    *high += (uintptr_t)PAC_ITEMSIZE(a);
}

/* The bytes from an array's lowest address that elements without gaps between them cover; `step` becomes the
   greatest common divisor of itself and of the distances between such blocks. */
static int64_t block_of(const pac_array *a, int64_t *step) {
    int64_t extent = PAC_ITEMSIZE(a), strides[PAC_MAX_NDIM];
    for (int axis = 0; axis < PAC_NDIM(a); ++axis)
        strides[axis] = PAC_SHAPE(a)[axis] > 1 ? magnitude(PAC_STRIDES(a)[axis]) : 0;
    for (int grows = 1; grows;) {
        grows = 0;
        for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
            if (!strides[axis] || strides[axis] > extent) continue;
            extent += (PAC_SHAPE(a)[axis] - 1) * strides[axis];
            strides[axis] = 0; /* inside the block */
            grows = 1;
        }
    }
    for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
        int64_t stride = strides[axis];
        while (stride) {
            const int64_t rest = *step % stride;
            *step = stride;
            stride = rest;
        }
    }
    return extent;
}

/* Whether the blocks of one array lie in the gaps between those of the other, as columns or rows of a matrix do. */
static int lie_in_gaps(const pac_array *a, uintptr_t low, const pac_array *b, uintptr_t first) {
    int64_t step = 0;
    const int64_t size = block_of(a, &step), other = block_of(b, &step);
    if (!step) return 0;
    const int64_t difference = (int64_t)(first - low) % step, between = difference + (difference < 0 ? step : 0);
    return between >= size && step - between >= other;
}

int pac_overlap(const pac_array *a, const pac_array *b) {
    uintptr_t low, high, first, last;
    if (!a->size || !b->size) return 0;
    byte_range(a, &low, &high);
    byte_range(b, &first, &last);
    return low < last && first < high && !lie_in_gaps(a, low, b, first);
}

int pac_map_aliases(const pac_array *x, const pac_array *out) {
    if (x->buffer != out->buffer && !x->buffer->owner && !out->buffer->owner) return 0;
    const int ndim = PAC_NDIM(x);
    if (x->ptr == out->ptr && ndim == PAC_NDIM(out) && PAC_ITEMSIZE(x) == PAC_ITEMSIZE(out) &&
        !memcmp(x->dims, out->dims, 2 * (size_t)ndim * sizeof *x->dims))
        return 0;
    return pac_overlap(x, out);
}
