/* Attributes of arrays. */
#include "launch.h"
#include <structmember.h>

/* Keeps what was made of dims as they were, unless making it has collected garbage that resized an array. */
static PyObject *keep(PyObject **kept, PyObject *made, uint64_t relayouts) {
    if (made && relayouts == pac_relayouts) Py_XSETREF(*kept, Py_NewRef(made));
    return made;
}

static PyObject *get_shape(PyObject *self, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    const uint64_t before = pac_relayouts;
    return a->shape ? Py_NewRef(a->shape) : keep(&a->shape, pac_tuple_of(PAC_SHAPE(a), PAC_NDIM(a)), before);
}

static PyObject *get_strides(PyObject *self, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    const uint64_t before = pac_relayouts;
    return a->strides ? Py_NewRef(a->strides) : keep(&a->strides, pac_tuple_of(PAC_STRIDES(a), PAC_NDIM(a)), before);
}

static PyObject *get_size(PyObject *self, void *Py_UNUSED(none)) {
    return PyLong_FromLongLong(((pac_array *)self)->size);
}

static PyObject *get_ndim(PyObject *self, void *Py_UNUSED(none)) {
    return PyLong_FromLong(PAC_NDIM((pac_array *)self));
}

static PyObject *get_row(PyObject *self, void *Py_UNUSED(none)) {
    return Py_NewRef(pac_dtypes[PAC_CODE((pac_array *)self)].row);
}

static PyObject *get_dtype(PyObject *self, void *Py_UNUSED(none)) {
    return Py_NewRef(pac_dtypes[PAC_CODE((pac_array *)self)].numpy);
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(none)) {
    return PyLong_FromLong(PAC_ITEMSIZE((pac_array *)self));
}

static PyObject *get_nbytes(PyObject *self, void *Py_UNUSED(none)) {
    const pac_array *a = (pac_array *)self;
    int64_t nbytes;
    if (!__builtin_mul_overflow(a->size, PAC_ITEMSIZE(a), &nbytes)) return PyLong_FromLongLong(nbytes);
    PyObject *size = PyLong_FromLongLong(a->size), *itemsize = PyLong_FromLong(PAC_ITEMSIZE(a));
    PyObject *product = size && itemsize ? PyNumber_Multiply(size, itemsize) : NULL; /* of a repeated element */
    Py_XDECREF(size);
    Py_XDECREF(itemsize);
    return product;
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    return Py_NewRef(a->buffer ? a->buffer->device : Py_None);
}

static PyObject *get_byte_offset(PyObject *self, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    return PyLong_FromLongLong((long long)(a->ptr - a->buffer->ptr));
}

static PyObject *get_base(PyObject *self, void *Py_UNUSED(none)) {
    PyObject *base = ((pac_array *)self)->base;
    return Py_NewRef(base ? base : Py_None);
}

int pac_set_base(PyObject *self, PyObject *value, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    Py_XSETREF(a->base, !value || value == Py_None ? NULL : Py_NewRef(value));
    if (a->base && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return 0;
}

static PyObject *get_writeable(PyObject *self, void *Py_UNUSED(none)) {
    return PyBool_FromLong(!(((pac_array *)self)->key & PAC_READONLY));
}

static PyObject *get_key(PyObject *self, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    return a->marks ? Py_NewRef(a->marks) : PyLong_FromUnsignedLongLong(a->key);
}

/* A key of the same rank. What stands above bit 32 are promises about sizes: pyarray/array_marks.py. */
int pac_set_key(PyObject *self, PyObject *value, void *Py_UNUSED(none)) {
    pac_array *a = (pac_array *)self;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "_key can't be deleted");
        return -1;
    }
    const uint64_t key = PyLong_AsUnsignedLongLongMask(value) & 0xFFFFFFFF;
    if (PyErr_Occurred()) return -1;
    if ((int)(key >> 8 & 0xFF) != PAC_NDIM(a) || (key & 0xFF) >= PAC_CODES) {
        PyErr_Format(PyExc_ValueError, "a key of rank %d can't have the value %R", PAC_NDIM(a), value);
        return -1;
    }
    a->key = key;
    Py_XSETREF(a->marks, key & PAC_MARKED ? Py_NewRef(value) : NULL);
    return 0;
}

static const char *const fixed[] = {
    "shape of an array can't be assigned; write b = a.reshape(shape), a view where strides allow",
    "dtype of an array can't be assigned; write a.view(dtype) for the same bytes, a.astype(dtype) for the same values",
    "strides of an array can't be assigned; an index, a transpose or broadcast_to gives a view with others",
    "size of an array can't be assigned; a slice is a view of fewer elements",
};

static int refuse(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(value), void *which) {
    PyErr_SetString(PyExc_AttributeError, fixed[(intptr_t)which]);
    return -1;
}

PyGetSetDef pac_array_fields[] = {
    {"shape", get_shape, refuse, "Sizes of the axes.", (void *)0},
    {"strides", get_strides, refuse, "Bytes from one element to the next along each axis.", (void *)2},
    {"size", get_size, refuse, "Number of elements.", (void *)3},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"dtype", get_dtype, refuse, "Type of the elements: NumPy's, or bfloat16 or float8 of ml_dtypes.", (void *)1},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements, gaps not counted.", NULL},
    {"device", get_device, NULL, "Where the memory is.", NULL},
    {"base", get_base, NULL,
     "The array whose memory this view shows; never itself a view. None for an array of its own.", NULL},
    {"byte_offset", get_byte_offset, NULL, "Bytes from the start of the buffer to the first element.", NULL},
    {"_shape", get_shape, NULL, NULL, NULL},
    {"_strides", get_strides, NULL, NULL, NULL},
    {"_dtype", get_row, NULL, NULL, NULL},
    {"_base", get_base, pac_set_base, NULL, NULL},
    {"_writeable", get_writeable, NULL, NULL, NULL},
    {"_key", get_key, pac_set_key, NULL, NULL},
    {0},
};
PyMemberDef pac_array_members[] = {
    {"_size", T_LONGLONG, offsetof(pac_array, size), READONLY, NULL},
    {"_ptr", T_ULONGLONG, offsetof(pac_array, ptr), READONLY, NULL},
    {"_buffer", T_OBJECT_EX, offsetof(pac_array, buffer), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pac_array, weakrefs), READONLY, NULL},
    {0},
};
