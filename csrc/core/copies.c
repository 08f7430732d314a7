/* Copies, casts, and arrays filled with one number: few bytes by the host, more by a launch of the Map of
   assignments. */
#include "quick.h"
#include <string.h>

/* Bytes up to which the host copies and fills by itself: a launch takes as long as 16 KiB, and many threads are faster
   from some hundred on. */
#define FEW_BYTES ((int64_t)1 << 16)

static int is_few(const pac_array *a) { return PAC_ON_CPU(a) && a->size * PAC_ITEMSIZE(a) <= FEW_BYTES; }

PyObject *pac_copy(pac_array *a, int code) {
    int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM];
    const int ndim = PAC_NDIM(a);
    if (!pac_plain() || !pac_copy_map) Py_RETURN_NOTIMPLEMENTED;
    memcpy(shape, PAC_SHAPE(a), (size_t)ndim * sizeof *shape);
    if (!pac_fresh_strides(ndim, shape, pac_dtypes[code].itemsize, strides)) Py_RETURN_NOTIMPLEMENTED;
    const uint64_t before = pac_relayouts;
    pac_array *out =
        pac_array_fresh(pac_ndarray_type, code, ndim, shape, a->buffer->device, (a->key & PAC_DEVICE) >> 20);
    if (out && before != pac_relayouts) { /* the allocation ran Python, which resized an array */
        Py_DECREF(out);
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (!out || !out->size) return (PyObject *)out;
    if (code == PAC_CODE(a) && !(a->key & PAC_STRIDED) && is_few(out)) {
        memcpy(pac_host_memory(out), pac_host_memory(a), (size_t)(out->size * PAC_ITEMSIZE(out)));
        return (PyObject *)out;
    }
    PyObject *source = (PyObject *)a, *done = pac_map_call(pac_copy_map, &source, 1, (PyObject *)out, 1);
    Py_DECREF(out);
    return done; /* `out`, or NotImplemented */
}

/* Repeats the first element up to the end. */
static void repeat(char *at, int64_t itemsize, int64_t nbytes) {
    for (int64_t done = itemsize; done < nbytes; done *= 2)
        memcpy(at + done, at, (size_t)(done < nbytes - done ? done : nbytes - done));
}

int pac_fill(pac_array *out, PyObject *number) {
    if (!out->size) return 1;
    if (!pac_plain() || !pac_copy_map) return 0;
    if (is_few(out)) {
        char *at = pac_host_memory(out);
        const int stored = pac_store_element(at, PAC_CODE(out), number);
        if (stored < 0) return -1;
        if (stored) {
            repeat(at, PAC_ITEMSIZE(out), out->size * PAC_ITEMSIZE(out));
            return 1;
        }
    }
    PyObject *done = pac_map_call(pac_copy_map, &number, 1, (PyObject *)out, 1);
    Py_XDECREF(done);
    return !done ? -1 : done != Py_NotImplemented;
}

/* self, in C order */
PAC_QUICK(copy) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    return a ? pac_copy(a, PAC_CODE(a)) : Py_NewRef(Py_NotImplemented);
}

/* self, in C order */
PAC_QUICK(flatten) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    return a ? pac_reshaped_copy(a, 1, &(int64_t){a->size}) : Py_NewRef(Py_NotImplemented);
}

/* Whether there is at most the keyword `copy`, and its value; -1: others. */
static int copy_keyword(PyObject *const *values, PyObject *names) {
    if (!pac_keywords(names)) return 1;
    if (pac_keywords(names) > 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "copy")) return -1;
    return values[0] == Py_True ? 1 : values[0] == Py_False ? 0 : -1;
}

/* self, dtype, *, copy=True */
PAC_QUICK(astype) {
    pac_array *a = pac_first_array(args, count, NULL, 2, 2);
    const int copies = a ? copy_keyword(args + 2, names) : -1, code = copies < 0 ? -1 : pac_find_code(args[1]);
    if (code < 0 || (PAC_KIND(a) == 'c' && pac_dtypes[code].kind != 'c')) Py_RETURN_NOTIMPLEMENTED;
    return !copies && code == PAC_CODE(a) ? Py_NewRef((PyObject *)a) : pac_copy(a, code);
}
