/* New arrays of Python numbers: `asarray` of sequences, and `arange`. The elements are computed before memory is
   allocated, which may run Python code. */
#include "quick.h"
#include <math.h>
#include <string.h>

#define MOST_NUMBERS 4096 /* a launch is quicker for more, and for longer sequences the general function */

/* A C-contiguous array on the CPU, where that is the default device, of 8-byte elements. Py_NotImplemented: another
   device is. */
static PyObject *array_of(int code, int ndim, const int64_t *shape, const void *elements, int64_t size) {
    uint64_t device_code;
    PyObject *device = pac_find_device(Py_None, &device_code);
    if (!device || device_code) {
        Py_XDECREF(device);
        Py_RETURN_NOTIMPLEMENTED;
    }
    pac_array *a = pac_array_fresh(pac_ndarray_type, code, ndim, shape, device, device_code);
    Py_DECREF(device);
    if (!a) return NULL;
    char *to = pac_host_memory(a);
    if (code != PAC_BOOL) memcpy(to, elements, (size_t)size * 8);
    else
        for (int64_t k = 0; k < size; ++k) to[k] = (char)((const int64_t *)elements)[k];
    return (PyObject *)a;
}

/* ---- sequences -------------------------------------------------------------------------------------------------- */

/* Numbers of one kind, as they are read. */
typedef struct {
    int64_t *integers, stack[64];
    double *floats;
    int64_t size, used;
    int code; /* -1: not known yet */
} numbers;

static int is_sequence(PyObject *x) { return PyList_CheckExact(x) || PyTuple_CheckExact(x); }

/* Sizes along the first items; 0: none, or too much. */
static int read_shape(PyObject *sequence, int64_t *shape, int64_t *size) {
    int ndim = 0;
    *size = 1;
    for (PyObject *x = sequence; is_sequence(x); x = PySequence_Fast_GET_ITEM(x, 0)) {
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(x);
        if (ndim == PAC_INLINE_NDIM || !count || count > MOST_NUMBERS / *size) return 0;
        shape[ndim++] = count;
        *size *= count;
    }
    return ndim;
}

/* Reads a number; 0: another kind than those before. Integers among floats are floats. */
static int read_number(PyObject *x, numbers *n) {
    const int code = PyFloat_CheckExact(x) ? PAC_F64 : PyLong_CheckExact(x) ? PAC_I64 : PyBool_Check(x) ? PAC_BOOL : -1;
    if (n->code < 0) n->code = code;
    if (code < 0 || (code != n->code && (code == PAC_BOOL || n->code == PAC_BOOL))) return 0;
    if (n->code == PAC_I64 && code == PAC_F64) {
        for (int64_t k = 0; k < n->used; ++k) {
            if (n->integers[k] > 1ll << 53 || n->integers[k] < -(1ll << 53)) return 0;
            n->floats[k] = (double)n->integers[k];
        }
        n->code = PAC_F64;
    }
    if (code == PAC_F64) n->floats[n->used++] = PyFloat_AS_DOUBLE(x);
    else if (code == PAC_BOOL) n->integers[n->used++] = x == Py_True;
    else {
        int overflow;
        const long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow || (n->code == PAC_F64 && (value > 1ll << 53 || value < -(1ll << 53)))) return 0;
        if (n->code == PAC_F64) n->floats[n->used++] = (double)value;
        else n->integers[n->used++] = value;
    }
    return 1;
}

static int read_items(PyObject *sequence, int ndim, const int64_t *shape, numbers *n) {
    if (!is_sequence(sequence) || PySequence_Fast_GET_SIZE(sequence) != shape[0]) return 0;
    PyObject **items = PySequence_Fast_ITEMS(sequence);
    for (int64_t k = 0; k < shape[0]; ++k)
        if (!(ndim > 1 ? read_items(items[k], ndim - 1, shape + 1, n) : read_number(items[k], n))) return 0;
    return 1;
}

/* A sequence of Python's floats, integers or bools, or of such sequences of one length. */
PAC_QUICK(asarray) {
    int64_t shape[PAC_INLINE_NDIM];
    numbers n = {.code = -1, .integers = n.stack};
    if (count != 1 || pac_keywords(names) || !is_sequence(args[0])) Py_RETURN_NOTIMPLEMENTED;
    const int ndim = read_shape(args[0], shape, &n.size);
    if (!ndim) Py_RETURN_NOTIMPLEMENTED;
    if (n.size > (int64_t)(sizeof n.stack / sizeof *n.stack)) n.integers = PyMem_Malloc((size_t)n.size * 8);
    if (!n.integers) return PyErr_NoMemory();
    n.floats = (double *)n.integers;
    PyObject *array = Py_NewRef(Py_NotImplemented);
    if (read_items(args[0], ndim, shape, &n)) Py_SETREF(array, array_of(n.code, ndim, shape, n.integers, n.size));
    if (n.integers != n.stack) PyMem_Free(n.integers);
    return array;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

#define MOST_LIMIT 2147483648.0 /* of magnitudes: all that is computed of such integers is exact in float64 */

/* arange(stop), arange(start, stop, step=1) of Python's integers and floats, as kernels/elementwise/creation.py has it:
   the difference of the first two numbers is the step. */
PAC_QUICK(arange) {
    double limits[3] = {0, 0, 1};
    int integers = 1;
    if (count < 1 || count > 3 || pac_keywords(names)) Py_RETURN_NOTIMPLEMENTED;
    for (Py_ssize_t k = 0; k < count; ++k) {
        const int is_float = PyFloat_CheckExact(args[k]);
        if (!is_float && !PyLong_CheckExact(args[k])) Py_RETURN_NOTIMPLEMENTED;
        const double value = is_float ? PyFloat_AS_DOUBLE(args[k]) : PyLong_AsDouble(args[k]);
        if (PyErr_Occurred()) PyErr_Clear();
        if (!(fabs(value) < MOST_LIMIT)) Py_RETURN_NOTIMPLEMENTED;
        limits[count == 1 ? 1 : k] = value;
        integers &= !is_float;
    }
    const double first = limits[0], by = limits[2], steps = ceil((limits[1] - first) / by);
    if (!by || !isfinite(steps) || steps > MOST_NUMBERS) Py_RETURN_NOTIMPLEMENTED;
    const int64_t size = steps > 0 ? (int64_t)steps : 0;
    double floats[MOST_NUMBERS];
    const double second = first + by, step = second - first;
    if (integers)
        for (int64_t k = 0; k < size; ++k) ((int64_t *)floats)[k] = (int64_t)first + k * (int64_t)by;
    else
        for (int64_t k = 0; k < size; ++k) floats[k] = k == 1 ? second : first + (double)k * step;
    return array_of(integers ? PAC_I64 : PAC_F64, 1, &size, floats, size);
}
