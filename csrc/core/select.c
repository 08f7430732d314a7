/* Selections on the host: masks and index arrays in keys, and nonzero. */
#include <string.h>

#include "select.h"

/* The mask, if the key is one that has the array's shape and neither has gaps. */
static pac_array *whole_mask(pac_array *a, PyObject *key)
{
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 1) key = PyTuple_GET_ITEM(key, 0);
    if (!PAC_IS_ARRAY(key)) return NULL;
    pac_array *mask = (pac_array *)key;
    uint64_t kept_out = PAC_STRIDED | PAC_MARKED | PAC_DEVICE;
    if (PAC_CODE(mask) != PAC_BOOL || (mask->key | a->key) & kept_out) return NULL;
    if (!PAC_NDIM(a) || PAC_NDIM(mask) != PAC_NDIM(a) || a->size > PAC_SELECT_LIMIT) return NULL;
    return memcmp(PAC_SHAPE(mask), PAC_SHAPE(a), (size_t)PAC_NDIM(a) * sizeof(int64_t)) ? NULL : mask;
}

static PyObject *get_whole(pac_array *a, const uint8_t *mask, int64_t count)
{
    const uint64_t before = pac_relayouts; /* the allocation may run Python, which changes arrays */
    pac_array *out = pac_array_fresh(pac_ndarray_type, PAC_CODE(a), 1, &count, a->buffer->device, 0);
    if (!out || !count) return (PyObject *)out;
    if (before == pac_relayouts &&
        pac_compress(pac_host_memory(out), pac_host_memory(a), mask, a->size, count, PAC_ITEMSIZE(a)))
        return (PyObject *)out;
    Py_DECREF(out);
    Py_RETURN_NOTIMPLEMENTED;
}

PyObject *pac_select_get(pac_array *a, PyObject *key)
{
    pac_array *mask = whole_mask(a, key);
    if (mask) {
        const uint8_t *truths = (const uint8_t *)pac_host_memory(mask);
        int64_t count = pac_count_true(truths, mask->size);
        if (count * 8 >= mask->size) return get_whole(a, truths, count); /* few: by offsets */
    } else {
        PyObject *rows = pac_take_rows(a, key);
        if (rows != Py_NotImplemented) return rows;
        Py_DECREF(rows);
    }
    pac_selection s;
    const uint64_t before = pac_relayouts;
    int found = pac_find_selection(&s, a, key, 0);
    if (found < 0) return NULL;
    if (!found) Py_RETURN_NOTIMPLEMENTED;
    pac_array *out = pac_array_fresh(pac_ndarray_type, PAC_CODE(a), s.ndim, s.shape, a->buffer->device, 0);
    if (out && before != pac_relayouts) {
        Py_SETREF(out, (pac_array *)Py_NewRef(Py_NotImplemented));
    } else if (out && out->size) {
        int itemsize = PAC_ITEMSIZE(a);
        int64_t step = itemsize;
        for (int k = s.before + s.middle; k < s.ndim; k++) step *= s.shape[k];
        pac_move_selected(&s, itemsize, pac_host_memory(out), PAC_STRIDES(out), step, 0);
    }
    pac_end_selection(&s);
    return (PyObject *)out;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* Strides by which `value` is read as an array of the result's shape; axes of size 1 in front that are too many are
   dropped. 0: it doesn't broadcast. */
static int value_strides(const pac_array *value, const pac_selection *s, int64_t *steps)
{
    int extra = PAC_NDIM(value) - s->ndim;
    for (int k = 0; k < extra; k++) {
        if (PAC_SHAPE(value)[k] != 1) return 0;
    }
    for (int k = 0; k < s->ndim; k++) {
        int64_t size = k + extra < 0 ? 1 : PAC_SHAPE(value)[k + extra];
        if (size != 1 && size != s->shape[k]) return 0;
        steps[k] = size == 1 ? 0 : PAC_STRIDES(value)[k + extra];
    }
    return 1;
}

/* The one stride of the whole middle; 0: its axes don't merge. */
static int middle_step(const pac_selection *s, const int64_t *steps, int64_t *step)
{
    pac_axis axes[PAC_SELECT_MIDDLE];
    for (int k = 0; k < s->middle; k++) {
        axes[k] = (pac_axis){s->shape[s->before + k], 0, steps[s->before + k], 0};
    }
    int n = pac_merge_axes(axes, s->middle);
    *step = n ? axes[0].there : 0;
    return n < 2;
}

static int put(const pac_selection *s, pac_array *a, const pac_array *value, char *number)
{
    int64_t steps[PAC_SELECT_AXES] = {0}, step = 0;
    if (value && !value_strides(value, s, steps)) return 0;
    if (!pac_few_elements(s->ndim, s->shape)) return 1;
    if (!middle_step(s, steps, &step)) return 0;
    const int itemsize = PAC_ITEMSIZE(a);
    char *from = value ? pac_host_memory(value) : number;
    PyObject *held = Py_NewRef((PyObject *)a->buffer), *source = value ? Py_NewRef((PyObject *)value->buffer) : NULL;
    const int told = !(a->key & PAC_WATCHED) || pac_tell_owner(a->buffer);
    if (told) pac_move_selected(s, itemsize, from, steps, step, 1);
    Py_DECREF(held);
    Py_XDECREF(source);
    return told ? 1 : -1;
}

static int is_long_mask(PyObject *key)
{
    if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 1) key = PyTuple_GET_ITEM(key, 0);
    if (!PAC_IS_ARRAY(key)) return 0;
    return PAC_CODE((pac_array *)key) == PAC_BOOL && ((pac_array *)key)->size > PAC_SELECT_FILL;
}

int pac_select_set(pac_array *a, PyObject *key, PyObject *value)
{
    _Alignas(16) char number[16];
    pac_array *source = NULL;
    if (!PAC_ON_CPU(a) || a->key & (PAC_READONLY | PAC_MARKED)) return 0;
    if (PAC_IS_ARRAY(value)) {
        source = (pac_array *)value;
        if (!PAC_ON_CPU(source) || source->key & PAC_MARKED || PAC_CODE(source) != PAC_CODE(a)) return 0;
        if (pac_may_overlap(a, source)) return 0;
    } else {
        if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value) &&
            !PyComplex_CheckExact(value)) return 0;
        int stored = pac_store_element(number, PAC_CODE(a), value);
        if (stored <= 0) return stored;
    }
    if ((!source || source->size == 1) && is_long_mask(key)) return 0;
    /* an owner that is told may change the indices, which pac_put_rows would have tested before */
    if (!(a->key & PAC_WATCHED) && pac_put_rows(a, key, source, number)) return 1;
    pac_selection s;
    int done = pac_find_selection(&s, a, key, 1);
    if (done <= 0) return done;
    done = put(&s, a, source, number);
    pac_end_selection(&s);
    return done;
}

/* ---- nonzero --------------------------------------------------------------------------------------------------- */

/* The first row of `out` has positions in C order; each row gets those along its axis. */
static void split_positions(int64_t *out, int64_t count, int ndim, const int64_t *shape)
{
    for (int axis = ndim - 1; axis; axis--) {
        int64_t *row = out + axis * count;
        uint32_t size = (uint32_t)shape[axis];
        for (int64_t k = 0; k < count; k++) {
            uint32_t left = (uint32_t)out[k], above = left / size;
            row[k] = left - above * size;
            out[k] = above;
        }
    }
}

static PyObject *rows_of(pac_array *out, int rows)
{
    PyObject *result = PyTuple_New(rows);
    for (int k = 0; result && k < rows; k++) {
        int64_t count = PAC_SHAPE(out)[1], step = PAC_STRIDES(out)[1];
        pac_array *row = pac_array_view(out, k * PAC_STRIDES(out)[0], 1, &count, &step, PAC_I64, 1);
        if (row) PyTuple_SET_ITEM(result, k, (PyObject *)row);
        else Py_CLEAR(result);
    }
    return result;
}

/* For an array without elements: arrays of their own. */
static PyObject *no_positions(pac_array *a)
{
    const int64_t none = 0;
    const int ndim = PAC_NDIM(a); /* before the allocations, which may run Python */
    PyObject *result = PyTuple_New(ndim);
    for (int k = 0; result && k < ndim; k++) {
        pac_array *row = pac_array_fresh(pac_ndarray_type, PAC_I64, 1, &none, a->buffer->device, 0);
        if (row) PyTuple_SET_ITEM(result, k, (PyObject *)row);
        else Py_CLEAR(result);
    }
    return result;
}

PyObject *pac_select_nonzero(pac_array *a)
{
    int ndim = PAC_NDIM(a);
    if (!PAC_ON_CPU(a) || a->key & PAC_MARKED || !ndim || ndim > PAC_SELECT_NDIM || a->size > PAC_SELECT_LIMIT) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (!a->size) return no_positions(a);
    uint8_t space[PAC_SELECT_SPACE], *made;
    const uint8_t *bytes = pac_truths(a, space, &made);
    if (!bytes) return NULL;
    int64_t shape[] = {ndim, pac_count_true(bytes, a->size)};
    const uint64_t before = pac_relayouts; /* the allocation may run Python, which changes arrays */
    pac_array *out = pac_array_fresh(pac_ndarray_type, PAC_I64, 2, shape, a->buffer->device, 0);
    int listed = out && before == pac_relayouts;
    if (listed && shape[1]) {
        listed = pac_list_true(bytes, a->size, shape[1], (int64_t *)pac_host_memory(out));
        if (listed) split_positions((int64_t *)pac_host_memory(out), shape[1], ndim, PAC_SHAPE(a));
    }
    PyMem_Free(made);
    if (!out) return NULL;
    PyObject *result = listed ? rows_of(out, ndim) : Py_NewRef(Py_NotImplemented);
    Py_DECREF(out);
    return result;
}
