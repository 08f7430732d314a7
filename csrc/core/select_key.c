/* Keys of selections on the host: their integers, slices, masks and index arrays as offsets. */
#include <string.h>

#include "select.h"

/* What was read of a key. Integers and arrays follow each other, else the axes of the arrays would come first. */
typedef struct key_reader {
    pac_array *a;
    pac_selection *s;
    int writes;
    int axis;                          /* the next one of `a` */
    int opened, closed;                /* an integer or array came; a slice came after that */
    int count, made_count;             /* of arrays; of those made of lists */
    pac_array *arrays[PAC_SELECT_ARRAYS], *made[PAC_SELECT_ARRAYS];
    int axes[PAC_SELECT_ARRAYS];       /* the first axis of `a` that each indexes */
    int after;                         /* axes after the arrays */
    int64_t shape[PAC_SELECT_NDIM], strides[PAC_SELECT_NDIM]; /* theirs */
} key_reader;

/* Integers and arrays are to have no slice among them. */
static int open_group(key_reader *r, int axes)
{
    if (r->closed || r->axis + axes > PAC_NDIM(r->a)) return 0;
    r->opened = 1;
    return 1;
}

static int keep_axis(key_reader *r, int64_t size, int64_t stride)
{
    if (r->opened) {
        r->closed = 1;
        r->shape[r->after] = size;
        r->strides[r->after++] = stride;
    } else {
        r->s->shape[r->s->before] = size;
        r->s->strides[r->s->before++] = stride;
    }
    r->axis++;
    return 1;
}

static int read_slice(key_reader *r, PyObject *item)
{
    if (r->axis >= PAC_NDIM(r->a)) return 0;
    const PySliceObject *x = (PySliceObject *)item;
    PyObject *parts[] = {x->start, x->stop, x->step};
    for (int k = 0; k < 3; k++) {
        if (parts[k] != Py_None && !PyLong_CheckExact(parts[k])) return 0; /* its __index__ may do anything */
    }
    Py_ssize_t start, stop, step, size = PAC_SHAPE(r->a)[r->axis];
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) { /* a step of 0 */
        PyErr_Clear();
        return 0;
    }
    int64_t stride = PAC_STRIDES(r->a)[r->axis];
    size = PySlice_AdjustIndices(size, &start, &stop, step);
    if (size) r->s->at += (uintptr_t)(start * stride);
    return keep_axis(r, size, size > 1 ? stride * step : 0);
}

static int read_integer(key_reader *r, PyObject *item)
{
    int overflow;
    int64_t index = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow || !open_group(r, 1)) return 0;
    int64_t size = PAC_SHAPE(r->a)[r->axis];
    if (index < -size || index >= size) return 0;
    r->s->at += (uintptr_t)((index < 0 ? index + size : index) * PAC_STRIDES(r->a)[r->axis++]);
    return 1;
}

static int read_list_item(PyObject *item, char *at, int code)
{
    if (code == PAC_BOOL) {
        *at = item == Py_True;
        return PyBool_Check(item);
    }
    int overflow;
    if (!PyLong_CheckExact(item)) return 0;
    int64_t value = PyLong_AsLongLongAndOverflow(item, &overflow);
    memcpy(at, &value, sizeof value);
    return !overflow;
}

/* A list of bools is a mask, one of integers and an empty one an index array. NULL without an exception: neither. */
static pac_array *array_from_list(PyObject *list, pac_array *a)
{
    int64_t size = PyList_GET_SIZE(list);
    if (size > PAC_SELECT_LIMIT) return NULL;
    int code = size && PyBool_Check(PyList_GET_ITEM(list, 0)) ? PAC_BOOL : PAC_I64;
    pac_array *x = pac_array_fresh(pac_ndarray_type, code, 1, &size, a->buffer->device, 0);
    if (!x) return NULL;
    int itemsize = pac_dtypes[code].itemsize, done = size == PyList_GET_SIZE(list); /* collecting garbage runs code */
    for (int64_t k = 0; done && k < size; k++) {
        done = read_list_item(PyList_GET_ITEM(list, k), pac_host_memory(x) + k * itemsize, code);
    }
    if (!done) Py_CLEAR(x);
    return x;
}

static int fits_mask(const key_reader *r, const pac_array *mask)
{
    return !r->count && PAC_NDIM(mask) <= PAC_SELECT_NDIM && open_group((key_reader *)r, PAC_NDIM(mask)) &&
           !memcmp(PAC_SHAPE(mask), PAC_SHAPE(r->a) + r->axis, (size_t)PAC_NDIM(mask) * sizeof(int64_t));
}

static int read_array(key_reader *r, PyObject *item)
{
    pac_array *x = (pac_array *)item;
    if (PyList_CheckExact(item)) {
        if (r->made_count == PAC_SELECT_ARRAYS) return 0;
        const uint64_t before = pac_relayouts;
        x = array_from_list(item, r->a);
        if (!x) return PyErr_Occurred() ? -1 : 0;
        r->made[r->made_count++] = x;
        if (before != pac_relayouts) return 0; /* what was read so far may be of another layout */
    } else if (!PAC_IS_ARRAY(item)) {
        return 0;
    }
    int is_mask = PAC_CODE(x) == PAC_BOOL;
    if (!PAC_ON_CPU(x) || x->key & PAC_MARKED || !PAC_NDIM(x)) return 0;
    if (r->writes && pac_may_overlap(r->a, x)) return 0;
    if (is_mask ? !fits_mask(r, x) : !open_group(r, 1)) return 0;
    if (!is_mask && PAC_KIND(x) != 'i' && PAC_KIND(x) != 'u') return 0;
    if (r->count == PAC_SELECT_ARRAYS || (r->count && PAC_CODE(r->arrays[0]) == PAC_BOOL)) return 0;
    r->arrays[r->count] = x;
    r->axes[r->count++] = r->axis;
    r->axis += is_mask ? PAC_NDIM(x) : 1;
    return 1;
}

/* An ellipsis in front stands for the axes that the other items leave. */
static int read_ellipsis(key_reader *r, PyObject *key)
{
    Py_ssize_t items = PyTuple_GET_SIZE(key);
    int64_t left = PAC_NDIM(r->a);
    for (Py_ssize_t k = 1; k < items; k++) {
        PyObject *item = PyTuple_GET_ITEM(key, k);
        int is_mask = PAC_IS_ARRAY(item) && PAC_CODE((pac_array *)item) == PAC_BOOL;
        if (item == Py_Ellipsis) return 0;
        left -= is_mask ? PAC_NDIM((pac_array *)item) : 1;
    }
    if (left < 0) return 0;
    while (left--) keep_axis(r, PAC_SHAPE(r->a)[r->axis], PAC_STRIDES(r->a)[r->axis]);
    return 1;
}

static int read_items(key_reader *r, PyObject *key)
{
    int many = PyTuple_CheckExact(key);
    Py_ssize_t count = many ? PyTuple_GET_SIZE(key) : 1;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *item = many ? PyTuple_GET_ITEM(key, k) : key;
        int done;
        if (many && item == Py_Ellipsis && !k) done = read_ellipsis(r, key);
        else if (many && item == Py_Ellipsis) done = k == count - 1; /* behind all, it says nothing */
        else if (PySlice_Check(item)) done = read_slice(r, item);
        else if (PyLong_CheckExact(item)) done = read_integer(r, item);
        else done = read_array(r, item);
        if (done <= 0) return done;
    }
    if (!r->count) return 0; /* a basic key */
    while (r->axis < PAC_NDIM(r->a)) keep_axis(r, PAC_SHAPE(r->a)[r->axis], PAC_STRIDES(r->a)[r->axis]);
    return 1;
}

/* ---- offsets --------------------------------------------------------------------------------------------------- */

static int reserve(pac_selection *s, int64_t count)
{
    s->count = count;
    if (count > PAC_SELECT_FEW) s->offsets = PyMem_Malloc((size_t)count * sizeof *s->offsets);
    if (s->offsets) return 1;
    PyErr_NoMemory();
    return -1;
}

/* Positions in C order over some axes become offsets. */
static void scale_positions(pac_selection *s, int ndim, const int64_t *shape, const int64_t *strides)
{
    pac_axis axes[PAC_SELECT_NDIM];
    for (int k = 0; k < ndim; k++) axes[k] = (pac_axis){shape[k], strides[k], 0, 0};
    int n = pac_merge_axes(axes, ndim);
    int64_t first = n ? axes[0].here : 0;
    if (n < 2) {
        for (int64_t k = 0; k < s->count; k++) s->offsets[k] *= first;
        return;
    }
    for (int64_t k = 0; k < s->count; k++) {
        uint32_t left = (uint32_t)s->offsets[k];
        int64_t offset = 0;
        for (int axis = n - 1; axis; axis--) {
            uint32_t size = (uint32_t)axes[axis].size, above = left / size;
            offset += (left - above * size) * axes[axis].here;
            left = above;
        }
        s->offsets[k] = offset + left * first;
    }
}

static int mask_offsets(key_reader *r)
{
    pac_array *mask = r->arrays[0];
    pac_selection *s = r->s;
    if (pac_few_elements(PAC_NDIM(mask), PAC_SHAPE(mask)) < 0) return 0;
    uint8_t space[PAC_SELECT_SPACE], *made;
    const uint8_t *bytes = pac_truths(mask, space, &made);
    if (!bytes) return -1;
    int done = reserve(s, pac_count_true(bytes, mask->size));
    if (done > 0 && !pac_list_true(bytes, mask->size, s->count, s->offsets)) done = 0;
    PyMem_Free(made);
    if (done > 0) scale_positions(s, PAC_NDIM(mask), PAC_SHAPE(mask), PAC_STRIDES(r->a) + r->axes[0]);
    s->middle = 1;
    s->shape[s->before] = s->count;
    return done;
}

/* Offsets that indices of an axis stand for, in place of those that are there or added to them. 0: one is out of range;
   the offsets are then of no use. Unsigned, as wrong ones may overflow. */
#define INDEX_LOOP(name, type, put)                                                                                   \
    static int name(int64_t *offsets, const char *from, int64_t stride, int64_t count, int64_t size, int64_t step)    \
    {                                                                                                                 \
        int outside = 0;                                                                                              \
        for (int64_t k = 0; k < count; k++, from += stride) {                                                         \
            type x;                                                                                                   \
            memcpy(&x, from, sizeof x);                                                                               \
            int64_t index = (int64_t)x;                                                                               \
            index += index < 0 ? size : 0;                                                                            \
            outside |= (uint64_t)index >= (uint64_t)size;                                                             \
            offsets[k] put (int64_t)((uint64_t)index * (uint64_t)step);                                               \
        }                                                                                                             \
        return !outside;                                                                                              \
    }
#define INDEX_LOOPS(name, type)         \
    INDEX_LOOP(first_##name, type, =)   \
    INDEX_LOOP(further_##name, type, +=)

INDEX_LOOPS(i8, int8_t)
INDEX_LOOPS(i16, int16_t)
INDEX_LOOPS(i32, int32_t)
INDEX_LOOPS(i64, int64_t)
INDEX_LOOPS(u8, uint8_t)
INDEX_LOOPS(u16, uint16_t)
INDEX_LOOPS(u32, uint32_t)
INDEX_LOOPS(u64, uint64_t)

typedef int (*index_loop)(int64_t *offsets, const char *from, int64_t stride, int64_t count, int64_t size,
                          int64_t step);
static const index_loop index_loops[PAC_U64 + 1][2] = {
    {NULL, NULL}, {first_i8, further_i8}, {first_i16, further_i16}, {first_i32, further_i32}, {first_i64, further_i64},
    {first_u8, further_u8}, {first_u16, further_u16}, {first_u32, further_u32}, {first_u64, further_u64},
};

/* The shape that the index arrays broadcast to becomes the middle's. */
static int broadcast_middle(key_reader *r)
{
    pac_selection *s = r->s;
    int64_t *shape = s->shape + s->before;
    for (int n = 0; n < r->count; n++) {
        if (PAC_NDIM(r->arrays[n]) > PAC_SELECT_MIDDLE) return 0;
        s->middle = PAC_NDIM(r->arrays[n]) > s->middle ? PAC_NDIM(r->arrays[n]) : s->middle;
    }
    for (int k = 0; k < s->middle; k++) shape[k] = 1;
    for (int n = 0; n < r->count; n++) {
        int lead = s->middle - PAC_NDIM(r->arrays[n]);
        for (int k = lead; k < s->middle; k++) {
            int64_t size = PAC_SHAPE(r->arrays[n])[k - lead];
            if (size == 1 || size == shape[k]) continue;
            if (shape[k] != 1) return 0;
            shape[k] = size;
        }
    }
    return 1;
}

static int add_indices(key_reader *r, int number)
{
    const pac_array *x = r->arrays[number];
    const pac_selection *s = r->s;
    int lead = s->middle - PAC_NDIM(x);
    pac_axis axes[PAC_SELECT_MIDDLE];
    for (int k = 0; k < s->middle; k++) {
        int repeats = k < lead || PAC_SHAPE(x)[k - lead] == 1;
        axes[k] = (pac_axis){s->shape[s->before + k], repeats ? 0 : PAC_STRIDES(x)[k - lead], 0, 0};
    }
    int n = pac_merge_axes(axes, s->middle);
    pac_axis last = n ? axes[--n] : (pac_axis){1, 0, 0, 0};
    int64_t size = PAC_SHAPE(r->a)[r->axes[number]], step = PAC_STRIDES(r->a)[r->axes[number]];
    const char *here = pac_host_memory(x), *none = NULL;
    int64_t *offsets = s->offsets;
    index_loop loop = index_loops[PAC_CODE(x)][number > 0];
    do {
        if (!loop(offsets, here, last.here, last.size, size, step)) return 0;
        offsets += last.size;
    } while (pac_next_place(axes, n, &here, &none));
    return 1;
}

static int index_offsets(key_reader *r)
{
    if (!broadcast_middle(r)) return 0;
    int64_t count = pac_few_elements(r->s->middle, r->s->shape + r->s->before);
    if (count < 0) return 0;
    for (int n = 0; !count && n < r->count; n++) {
        if (r->arrays[n]->size) return 0; /* its indices are checked all the same */
    }
    int done = reserve(r->s, count);
    for (int n = 0; count && done > 0 && n < r->count; n++) done = add_indices(r, n);
    return done;
}

int pac_find_selection(pac_selection *s, pac_array *a, PyObject *key, int writes)
{
    if (!PAC_ON_CPU(a) || a->key & PAC_MARKED || PAC_NDIM(a) > PAC_SELECT_NDIM) return 0;
    key_reader r = {.a = a, .s = s, .writes = writes};
    s->at = (uintptr_t)pac_host_memory(a);
    s->before = s->middle = 0;
    s->offsets = s->few;
    int done = read_items(&r, key);
    if (done > 0) done = PAC_CODE(r.arrays[0]) == PAC_BOOL ? mask_offsets(&r) : index_offsets(&r);
    for (; r.made_count; --r.made_count) Py_DECREF(r.made[r.made_count - 1]);
    if (done > 0) {
        int end = s->before + s->middle;
        s->ndim = end + r.after;
        memcpy(s->shape + end, r.shape, (size_t)r.after * sizeof *r.shape);
        memcpy(s->strides + end, r.strides, (size_t)r.after * sizeof *r.strides);
        if (pac_few_elements(s->ndim, s->shape) >= 0) return 1;
        done = 0;
    }
    pac_end_selection(s);
    return done;
}

void pac_end_selection(pac_selection *s)
{
    if (s->offsets != s->few) PyMem_Free(s->offsets);
}
