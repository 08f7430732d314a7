/* Views of arrays in other shapes and with other axes: what pyarray/array_views.py does in general. */
#include "quick.h"
#include <string.h>

int pac_read_integers(PyObject *const *items, Py_ssize_t count, int64_t *numbers) {
    if (count == 1 && (PyTuple_CheckExact(items[0]) || PyList_CheckExact(items[0]))) {
        PyObject *sequence = items[0];
        count = PySequence_Fast_GET_SIZE(sequence);
        items = PySequence_Fast_ITEMS(sequence);
    }
    if (count > PAC_MAX_NDIM) return -1;
    for (Py_ssize_t k = 0; k < count; ++k) {
        if (!pac_is_integer(items[k])) return -1;
        numbers[k] = PyNumber_AsSsize_t(items[k], PyExc_OverflowError);
        if (numbers[k] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return (int)count;
}

int pac_fresh_strides(int ndim, const int64_t *shape, int64_t itemsize, int64_t *strides) {
    int64_t step = itemsize;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        strides[axis] = step;
        if (__builtin_mul_overflow(step, shape[axis] ? shape[axis] : 1, &step) || step > INT64_MAX / 4) return 0;
    }
    return 1;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

/* Fills one size of -1 in. 0 where the sizes don't hold `total` elements. */
static int resolve_sizes(int ndim, int64_t *sizes, int64_t total) {
    int unknown = -1;
    int64_t product = 1;
    for (int axis = 0; axis < ndim; ++axis) {
        if (sizes[axis] == -1 && unknown < 0) unknown = axis;
        else if (sizes[axis] < 0 || __builtin_mul_overflow(product, sizes[axis], &product)) return 0;
    }
    if (unknown < 0) return product == total;
    if (!product || total % product) return 0;
    sizes[unknown] = total / product;
    return 1;
}

/* The axes without those of size 1, neighbours merged where the elements follow each other. */
static int collapse(const pac_array *a, int64_t *sizes, int64_t *steps) {
    const int64_t *shape = PAC_SHAPE(a), *strides = PAC_STRIDES(a);
    int n = 0;
    for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
        if (shape[axis] == 1) continue;
        int64_t whole;
        if (n && !__builtin_mul_overflow(strides[axis], shape[axis], &whole) && steps[n - 1] == whole) {
            sizes[n - 1] *= shape[axis];
            steps[n - 1] = strides[axis];
        } else {
            sizes[n] = shape[axis];
            steps[n++] = strides[axis];
        }
    }
    return n;
}

/* Strides that read the elements, of which there are several, as another shape of as many. 0: only a copy can. */
static int strided_view(const pac_array *a, int ndim, const int64_t *shape, int64_t *strides) {
    int64_t sizes[PAC_MAX_NDIM], steps[PAC_MAX_NDIM];
    int axis = ndim;
    for (int run = collapse(a, sizes, steps) - 1; run >= 0; --run) {
        int64_t left = sizes[run], step = steps[run];
        while (left > 1) {
            const int64_t size = shape[--axis];
            if (left % size) return 0;
            strides[axis] = step;
            step *= size;
            left /= size;
        }
    }
    const int64_t last = axis < ndim ? strides[axis] : PAC_ITEMSIZE(a); /* what is left are sizes of 1 */
    while (axis > 0) strides[--axis] = last;
    return 1;
}

PyObject *pac_reshaped_copy(pac_array *a, int ndim, const int64_t *shape) {
    int64_t strides[PAC_MAX_NDIM];
    const uint64_t before = pac_relayouts;
    PyObject *copy = pac_copy(a, PAC_CODE(a));
    if (!copy || copy == Py_NotImplemented) return copy;
    if (before != pac_relayouts) { /* the shape may be of another number of elements */
        Py_DECREF(copy);
        Py_RETURN_NOTIMPLEMENTED;
    }
    pac_fresh_strides(ndim, shape, PAC_ITEMSIZE(a), strides);
    PyObject *view = (PyObject *)pac_array_view((pac_array *)copy, 0, ndim, shape, strides, PAC_CODE(a), 0);
    Py_DECREF(copy);
    return view;
}

static PyObject *reshape(pac_array *a, int ndim, int64_t *shape) {
    int64_t strides[PAC_MAX_NDIM];
    if (ndim < 0 || !resolve_sizes(ndim, shape, a->size)) Py_RETURN_NOTIMPLEMENTED;
    if (!pac_fresh_strides(ndim, shape, PAC_ITEMSIZE(a), strides)) Py_RETURN_NOTIMPLEMENTED;
    if (a->size <= 1 || !(a->key & PAC_STRIDED) || strided_view(a, ndim, shape, strides))
        return (PyObject *)pac_array_view(a, 0, ndim, shape, strides, PAC_CODE(a), 0);
    return pac_reshaped_copy(a, ndim, shape);
}

/* x, shape */
PAC_QUICK(reshape) {
    int64_t shape[PAC_MAX_NDIM];
    pac_array *a = pac_first_array(args, count, names, 2, 2);
    return a ? reshape(a, pac_read_integers(args + 1, 1, shape), shape) : Py_NewRef(Py_NotImplemented);
}

/* self, *shape */
PAC_QUICK(reshape_method) {
    int64_t shape[PAC_MAX_NDIM];
    pac_array *a = pac_first_array(args, count, names, 1, PAC_MAX_NDIM + 1);
    return a ? reshape(a, pac_read_integers(args + 1, count - 1, shape), shape) : Py_NewRef(Py_NotImplemented);
}

/* x, in C order */
PAC_QUICK(ravel) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    if (!a) Py_RETURN_NOTIMPLEMENTED;
    int64_t size = a->size;
    return a->key & PAC_STRIDED ? pac_reshaped_copy(a, 1, &size) : reshape(a, 1, &size);
}

/* ---- axes ------------------------------------------------------------------------------------------------------- */

/* An axis counted from the front; -1: out of range. */
static int axis_of(int64_t axis, int ndim) {
    return axis < -ndim || axis >= ndim ? -1 : (int)(axis < 0 ? axis + ndim : axis);
}

/* The axes in an order that names each once; Py_NotImplemented for another one. */
static PyObject *permuted(pac_array *a, int count, const int64_t *axes) {
    const int ndim = PAC_NDIM(a);
    int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM];
    uint64_t found = 0;
    if (count != ndim) Py_RETURN_NOTIMPLEMENTED;
    for (int k = 0; k < ndim; ++k) {
        const int axis = axis_of(axes[k], ndim);
        if (axis < 0 || found >> axis & 1) Py_RETURN_NOTIMPLEMENTED;
        found |= (uint64_t)1 << axis;
        shape[k] = PAC_SHAPE(a)[axis];
        strides[k] = PAC_STRIDES(a)[axis];
    }
    return (PyObject *)pac_array_view(a, 0, ndim, shape, strides, PAC_CODE(a), 0);
}

static PyObject *reversed_axes(pac_array *a) {
    const int ndim = PAC_NDIM(a);
    int64_t axes[PAC_MAX_NDIM];
    for (int k = 0; k < ndim; ++k) axes[k] = ndim - 1 - k;
    return permuted(a, ndim, axes);
}

static PyObject *transpose(pac_array *a, PyObject *const *axes, Py_ssize_t count) {
    int64_t order[PAC_MAX_NDIM];
    if (!count || (count == 1 && axes[0] == Py_None)) return reversed_axes(a);
    return permuted(a, pac_read_integers(axes, count, order), order);
}

/* x, axes=None */
PAC_QUICK(transpose) {
    pac_array *a = pac_first_array(args, count, names, 1, 2);
    return a ? transpose(a, args + 1, count - 1) : Py_NewRef(Py_NotImplemented);
}

/* self, *axes */
PAC_QUICK(transpose_method) {
    pac_array *a = pac_first_array(args, count, names, 1, PAC_MAX_NDIM + 1);
    return a ? transpose(a, args + 1, count - 1) : Py_NewRef(Py_NotImplemented);
}

/* x, axes: several */
PAC_QUICK(permute_dims) {
    pac_array *a = pac_first_array(args, count, names, 2, 2);
    if (!a || !(PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1]))) Py_RETURN_NOTIMPLEMENTED;
    return transpose(a, args + 1, 1);
}

PAC_QUICK(reversed_axes) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    return a ? reversed_axes(a) : Py_NewRef(Py_NotImplemented);
}

static PyObject *exchanged(pac_array *a, int first, int second) {
    int64_t axes[PAC_MAX_NDIM];
    if (first < 0 || second < 0) Py_RETURN_NOTIMPLEMENTED;
    for (int k = 0; k < PAC_NDIM(a); ++k) axes[k] = k == first ? second : k == second ? first : k;
    return permuted(a, PAC_NDIM(a), axes);
}

PAC_QUICK(matrix_transpose) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    return a ? exchanged(a, PAC_NDIM(a) - 2, PAC_NDIM(a) - 1) : Py_NewRef(Py_NotImplemented);
}

/* x, axis1, axis2 */
PAC_QUICK(swapaxes) {
    int64_t axes[2];
    pac_array *a = pac_first_array(args, count, names, 3, 3);
    /* each on its own: a tuple is no axis */
    if (!a || !pac_is_integer(args[1]) || pac_read_integers(args + 1, 2, axes) != 2) Py_RETURN_NOTIMPLEMENTED;
    return exchanged(a, axis_of(axes[0], PAC_NDIM(a)), axis_of(axes[1], PAC_NDIM(a)));
}

/* x, axis=None: without all axes of size 1, or without one */
PAC_QUICK(squeeze) {
    int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM], number;
    pac_array *a = pac_first_array(args, count, names, 1, 2);
    int only = -1, ndim = 0;
    if (!a) Py_RETURN_NOTIMPLEMENTED;
    if (count == 2 && args[1] != Py_None) {
        if (!pac_is_integer(args[1]) || pac_read_integers(args + 1, 1, &number) != 1) Py_RETURN_NOTIMPLEMENTED;
        only = axis_of(number, PAC_NDIM(a));
        if (only < 0 || PAC_SHAPE(a)[only] != 1) Py_RETURN_NOTIMPLEMENTED;
    }
    for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
        if (only < 0 ? PAC_SHAPE(a)[axis] == 1 : axis == only) continue;
        shape[ndim] = PAC_SHAPE(a)[axis];
        strides[ndim++] = PAC_STRIDES(a)[axis];
    }
    return (PyObject *)pac_array_view(a, 0, ndim, shape, strides, PAC_CODE(a), 0);
}

/* x, axis=0: as the index None, which adds an axis of stride 0 */
PAC_QUICK(expand_dims) {
    int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM], number = 0;
    pac_array *a = pac_first_array(args, count, names, 1, 2);
    if (!a || (count == 2 && (!pac_is_integer(args[1]) || pac_read_integers(args + 1, 1, &number) != 1)))
        Py_RETURN_NOTIMPLEMENTED;
    const int ndim = PAC_NDIM(a) + 1, added = axis_of(number, ndim);
    if (added < 0 || ndim > PAC_MAX_NDIM) Py_RETURN_NOTIMPLEMENTED;
    for (int axis = 0; axis < ndim; ++axis) {
        shape[axis] = axis == added ? 1 : PAC_SHAPE(a)[axis - (axis > added)];
        strides[axis] = axis == added ? 0 : PAC_STRIDES(a)[axis - (axis > added)];
    }
    return (PyObject *)pac_array_view(a, 0, ndim, shape, strides, PAC_CODE(a), 1);
}

/* ---- what Python says is a view ---------------------------------------------------------------------------------- */

/* _view(offset, shape, strides, run=None, dtype=None) */
PyObject *pac_view_method(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    pac_array *a = (pac_array *)self;
    PyObject *run = count > 3 ? args[3] : Py_None, *row = count > 4 ? args[4] : Py_None;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
        if (!name) return NULL;
        if (!strcmp(name, "run")) run = args[count + k];
        else if (!strcmp(name, "dtype")) row = args[count + k];
    }
    if (count < 3 || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "_view() takes an offset, a shape and strides as tuples");
        return NULL;
    }
    const long long offset = PyLong_AsLongLong(args[0]);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(args[1]);
    int64_t dims[2 * PAC_MAX_NDIM];
    if (ndim <= PAC_MAX_NDIM &&
        !(pac_read_numbers(args[1], dims, ndim) && pac_read_numbers(args[2], dims + ndim, ndim)))
        return NULL;
    int code = PAC_CODE(a);
    if (row != Py_None) {
        for (code = 0; code < PAC_CODES && pac_dtypes[code].row != row;) ++code;
        if (code == PAC_CODES) {
            PyErr_Format(PyExc_TypeError, "%R is no row of the table of dtypes", row);
            return NULL;
        }
    }
    return (PyObject *)pac_array_view(a, offset, (int)ndim, dims, dims + ndim, code, run != Py_None);
}
