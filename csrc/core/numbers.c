/* Elements as Python numbers: `float(a)` and the like, `a.item()`, `a.tolist()`, of arrays on the CPU. What
   pyarray/array_host.py does in general. */
#include "quick.h"
#include <string.h>

/* The element of a 0-d array whose dtype is of one of these kinds. Py_NotImplemented: declined. */
static PyObject *only_element(PyObject *const *args, Py_ssize_t count, PyObject *names, const char *kinds) {
    const pac_array *a = pac_first_array(args, count, names, 1, 1);
    if (!a || PAC_NDIM(a) || !PAC_ON_CPU(a) || !strchr(kinds, PAC_KIND(a))) Py_RETURN_NOTIMPLEMENTED;
    return pac_load_element(pac_host_memory(a), PAC_CODE(a));
}

/* What `convert` makes of a number; NotImplemented stays. */
static PyObject *converted(PyObject *number, PyObject *(*convert)(PyObject *)) {
    if (!number || number == Py_NotImplemented) return number;
    PyObject *result = convert(number);
    Py_DECREF(number);
    return result;
}

static PyObject *as_complex(PyObject *number) { return PyObject_CallOneArg((PyObject *)&PyComplex_Type, number); }

PAC_QUICK(float) { return converted(only_element(args, count, names, "biuf"), PyNumber_Float); }
PAC_QUICK(int) { return converted(only_element(args, count, names, "biuf"), PyNumber_Long); }
PAC_QUICK(complex) { return converted(only_element(args, count, names, "biufc"), as_complex); }
PAC_QUICK(index) { return only_element(args, count, names, "iu"); }

PAC_QUICK(bool) {
    const pac_array *a = pac_first_array(args, count, names, 1, 1);
    if (!a || a->size != 1 || !PAC_ON_CPU(a)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *number = pac_load_element(pac_host_memory(a), PAC_CODE(a));
    const int is_true = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return is_true < 0 ? NULL : PyBool_FromLong(is_true);
}

/* ---- one of several --------------------------------------------------------------------------------------------- */

/* Bytes from the first element to that of these indices: one for each axis, or a position in C order. -1: there is no
   such element. */
static int find_element(const pac_array *a, int count, int64_t *indices, int64_t *offset) {
    const int ndim = PAC_NDIM(a);
    *offset = 0;
    if (count == 1 && ndim != 1) {
        int64_t position = indices[0] < 0 ? indices[0] + a->size : indices[0];
        if (position < 0 || position >= a->size) return -1;
        for (int axis = ndim - 1; axis >= 0; --axis) {
            *offset += position % PAC_SHAPE(a)[axis] * PAC_STRIDES(a)[axis];
            position /= PAC_SHAPE(a)[axis];
        }
        return 0;
    }
    if (count != ndim) return -1;
    for (int axis = 0; axis < ndim; ++axis) {
        const int64_t size = PAC_SHAPE(a)[axis], index = indices[axis] < 0 ? indices[axis] + size : indices[axis];
        if (index < 0 || index >= size) return -1;
        *offset += index * PAC_STRIDES(a)[axis];
    }
    return 0;
}

/* self, *index */
PAC_QUICK(item) {
    int64_t indices[PAC_MAX_NDIM], offset = 0;
    const pac_array *a = pac_first_array(args, count, names, 1, PAC_MAX_NDIM + 1);
    if (!a || !PAC_ON_CPU(a)) Py_RETURN_NOTIMPLEMENTED;
    if (count == 1 ? a->size != 1 : !pac_is_integer(args[1])) Py_RETURN_NOTIMPLEMENTED;
    const int given = pac_read_integers(args + 1, count - 1, indices);
    if (given < 0 || (count > 1 && find_element(a, given, indices, &offset) < 0)) Py_RETURN_NOTIMPLEMENTED;
    return pac_load_element(pac_host_memory(a) + offset, PAC_CODE(a));
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static PyObject *nested_list(const char *at, int code, int ndim, const int64_t *shape, const int64_t *strides) {
    if (!ndim) return pac_load_element(at, code);
    PyObject *list = PyList_New((Py_ssize_t)*shape);
    for (int64_t k = 0; list && k < *shape; ++k) {
        PyObject *item = nested_list(at + k * *strides, code, ndim - 1, shape + 1, strides + 1);
        if (item) PyList_SET_ITEM(list, (Py_ssize_t)k, item);
        else Py_CLEAR(list);
    }
    return list;
}

/* self */
PAC_QUICK(tolist) {
    const pac_array *a = pac_first_array(args, count, names, 1, 1);
    if (!a || !PAC_ON_CPU(a) || PAC_IS_EXTENSION(PAC_CODE(a))) Py_RETURN_NOTIMPLEMENTED;
    /* collecting garbage may run code that gives the array another buffer */
    int64_t dims[2 * PAC_MAX_NDIM];
    const int ndim = PAC_NDIM(a), code = PAC_CODE(a);
    memcpy(dims, a->dims, 2 * (size_t)ndim * sizeof *dims);
    const char *at = pac_host_memory(a);
    PyObject *buffer = Py_NewRef((PyObject *)a->buffer);
    PyObject *list = nested_list(at, code, ndim, dims, dims + ndim);
    Py_DECREF(buffer);
    return list;
}
