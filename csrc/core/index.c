/* Basic indexing: `a[key]` of integers, slices, `...` and None as a view, and `a[key] = value` of one element. All else
   goes to the general functions of pyarray/array.py. */
#include "map.h"
#include <string.h>

static PyObject *general_get, *general_set; /* functions of (array, key), (array, key, value) */
static PyObject *integer_types;             /* a tuple: NumPy's integers, which are indices as Python's are */

/* register_indexing(get, set, integer types) */
PyObject *pac_register_indexing(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *get, *set, *types;
    if (!PyArg_ParseTuple(args, "OOO!", &get, &set, &PyTuple_Type, &types)) return NULL;
    Py_XSETREF(general_get, Py_NewRef(get));
    Py_XSETREF(general_set, Py_NewRef(set));
    Py_XSETREF(integer_types, Py_NewRef(types));
    Py_RETURN_NONE;
}

int pac_is_integer(PyObject *item) {
    if (PyLong_CheckExact(item)) return 1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(integer_types); ++k)
        if ((PyObject *)Py_TYPE(item) == PyTuple_GET_ITEM(integer_types, k)) return 1;
    return 0;
}

typedef struct {
    int64_t offset;
    int ndim;
    int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM];
} window;

enum { DONE = 1, GENERAL = 0, FAILED = -1 };

/* An integer index on an axis of `size`: GENERAL where it doesn't fit a machine integer. */
static int add_integer(window *w, PyObject *item, int axis, int64_t size, int64_t stride) {
    Py_ssize_t index = PyLong_CheckExact(item) ? PyLong_AsSsize_t(item) : PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) {
        PyErr_Clear(); /* the general way names the index */
        return GENERAL;
    }
    if (index < -size || index >= size) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis %d with size %lld", index, axis,
                     (long long)size);
        return FAILED;
    }
    w->offset += stride * (index < 0 ? index + size : index);
    return DONE;
}

/* An __index__ in Python may resize the array that is indexed: its slice is for the general way. */
static int runs_no_python(const PySliceObject *x) {
    return (x->start == Py_None || pac_is_integer(x->start)) && (x->stop == Py_None || pac_is_integer(x->stop)) &&
           (x->step == Py_None || pac_is_integer(x->step));
}

/* A slice. One that is empty starts at its clamped start; of fewer than two elements any stride is true. */
static int add_slice(window *w, PyObject *item, int64_t size, int64_t stride) {
    Py_ssize_t start, stop, step;
    if (!runs_no_python((PySliceObject *)item)) return GENERAL;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return FAILED;
    const Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)size, &start, &stop, step);
    int64_t product;
    const int fits = !__builtin_mul_overflow(stride, (int64_t)step, &product);
    const int64_t limit = (int64_t)1 << 62;
    const int steps = count > 1 || (count && fits && product > -limit && product < limit);
    w->offset += stride * (start > 0 ? start : 0);
    w->shape[w->ndim] = count;
    w->strides[w->ndim++] = steps ? product : stride;
    return DONE;
}

/* Whether items are of a basic index; how many axes they use, and how many ellipses there are. */
static int count_items(PyObject *const *items, Py_ssize_t count, int *used, int *dots, int *added) {
    *used = *dots = *added = 0;
    for (Py_ssize_t k = 0; k < count; ++k) {
        if (items[k] == Py_Ellipsis) ++*dots;
        else if (items[k] == Py_None) ++*added;
        else if (PySlice_Check(items[k]) || pac_is_integer(items[k])) ++*used;
        else return 0;
    }
    return *dots <= 1;
}

static int read_key(pac_array *a, PyObject *key, window *w) {
    const int ndim = PAC_NDIM(a), is_tuple = PyTuple_CheckExact(key);
    PyObject *const *items = is_tuple ? ((PyTupleObject *)key)->ob_item : &key;
    const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(key) : 1;
    int used, dots, added, axis = 0;
    if (count > 2 * PAC_MAX_NDIM || !count_items(items, count, &used, &dots, &added)) return GENERAL;
    if (used > ndim || ndim + added > PAC_MAX_NDIM) return GENERAL; /* which says what is wrong */
    const int64_t *shape = PAC_SHAPE(a), *strides = PAC_STRIDES(a);
    w->offset = 0;
    w->ndim = 0;
    for (Py_ssize_t k = 0; k <= count; ++k) {
        PyObject *item = k < count ? items[k] : Py_Ellipsis;
        int done = DONE;
        if (item == Py_Ellipsis) {
            for (int left = k < count ? ndim - used : ndim - axis; left > 0; --left, ++axis) {
                w->shape[w->ndim] = shape[axis];
                w->strides[w->ndim++] = strides[axis];
            }
        } else if (item == Py_None) {
            w->shape[w->ndim] = 1;
            w->strides[w->ndim++] = 0;
        } else {
            done = PySlice_Check(item) ? add_slice(w, item, shape[axis], strides[axis])
                                       : add_integer(w, item, axis, shape[axis], strides[axis]);
            ++axis;
        }
        if (done != DONE) return done;
    }
    return DONE;
}

PyObject *pac_subscript(PyObject *self, PyObject *key) {
    pac_array *a = (pac_array *)self;
    window w;
    const int done = read_key(a, key, &w);
    if (done == FAILED) return NULL;
    if (done == DONE)
        return (PyObject *)pac_array_view(a, w.offset, w.ndim, w.shape, w.strides, PAC_CODE(a), 1);
    if (pac_plain()) {
        PyObject *selected = pac_select_get(a, key);
        if (selected != Py_NotImplemented) return selected;
        Py_DECREF(selected);
    }
    return PyObject_CallFunctionObjArgs(general_get, self, key, NULL);
}

/* Stores a number or an element of the same type without a launch. */
static int put(char *at, int code, PyObject *value) {
    if (!PAC_IS_ARRAY(value)) return pac_store_element(at, code, value);
    pac_array *from = (pac_array *)value;
    if (PAC_NDIM(from) || PAC_CODE(from) != code || !PAC_ON_CPU(from)) return 0;
    memmove(at, pac_host_memory(from), (size_t)pac_dtypes[code].itemsize);
    return 1;
}

/* The same into memory whose owner is told first. */
static int tell_and_put(pac_array *a, char *at, PyObject *value) {
    _Alignas(16) char element[16];
    const int code = PAC_CODE(a), stored = put(element, code, value);
    if (stored <= 0) return stored;
    PyObject *buffer = Py_NewRef((PyObject *)a->buffer);
    const int told = pac_tell_owner(a->buffer);
    if (told) memcpy(at, element, (size_t)pac_dtypes[code].itemsize);
    Py_DECREF(buffer);
    return told ? 1 : -1;
}

static int store(pac_array *a, char *at, PyObject *value) {
    return a->key & PAC_WATCHED ? tell_and_put(a, at, value) : put(at, PAC_CODE(a), value);
}

PyObject *pac_copy_map;

/* register_assignment(map) */
PyObject *pac_register_assignment(PyObject *Py_UNUSED(module), PyObject *map) {
    Py_XSETREF(pac_copy_map, Py_NewRef(map));
    Py_RETURN_NONE;
}

/* Assigns an array of no more axes, or a number, to a view, by one launch. */
static int assign_view(pac_array *a, const window *w, PyObject *value) {
    if (PAC_IS_ARRAY(value)) {
        const pac_array *from = (pac_array *)value;
        const size_t nbytes = (size_t)w->ndim * sizeof *w->shape;
        if (PAC_NDIM(from) > w->ndim) return GENERAL;
        const int same = from->ptr == a->ptr + (uintptr_t)w->offset && PAC_NDIM(from) == w->ndim;
        /* `a[key] += x` ends in an assignment of the view to itself */
        if (same && PAC_CODE(from) == PAC_CODE(a) && !memcmp(PAC_SHAPE(from), w->shape, nbytes) &&
            !memcmp(PAC_STRIDES(from), w->strides, nbytes))
            return DONE;
    } else if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value))
        return GENERAL;
    pac_array *view = pac_array_view(a, w->offset, w->ndim, w->shape, w->strides, PAC_CODE(a), 0);
    PyObject *done = view ? pac_map_call(pac_copy_map, &value, 1, (PyObject *)view, 1) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(done);
    return !done ? FAILED : done == Py_NotImplemented ? GENERAL : DONE;
}

/* An assignment that needs neither a cast of a number nor a copy of what overlaps. */
static int store_plainly(pac_array *a, PyObject *key, PyObject *value) {
    window w;
    int done = read_key(a, key, &w);
    if (done == FAILED) return FAILED;
    if (PAC_ON_CPU(a)) {
        int stored = 0;
        if (done == GENERAL) stored = pac_select_set(a, key, value);
        else if (!w.ndim) stored = store(a, pac_host_memory(a) + w.offset, value);
        if (stored) return stored;
    }
    return done == DONE && pac_copy_map ? assign_view(a, &w, value) : GENERAL;
}

int pac_assign_subscript(PyObject *self, PyObject *key, PyObject *value) {
    pac_array *a = (pac_array *)self;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array can't be deleted; make an array without them");
        return -1;
    }
    if (!(a->key & PAC_READONLY) && pac_plain()) {
        const int stored = store_plainly(a, key, value);
        if (stored) return stored < 0 ? -1 : 0;
    }
    PyObject *none = PyObject_CallFunctionObjArgs(general_set, self, key, value, NULL);
    Py_XDECREF(none);
    return none ? 0 : -1;
}
