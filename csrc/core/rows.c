/* Iteration: the views `a[0]`, `a[1]` and so on. */
#include "quick.h"

typedef struct {
    PyObject_HEAD
    PyObject *array;
    Py_ssize_t at, count;
} row_iterator;

static PyTypeObject *iterator_type;

static PyObject *iterator_next(PyObject *self) {
    row_iterator *rows = (row_iterator *)self;
    if (rows->at >= rows->count) return NULL;
    const Py_ssize_t at = rows->at++;
    pac_array *a = (pac_array *)rows->array;
    if (PAC_NDIM(a) && at < PAC_SHAPE(a)[0]) {
        const int ndim = PAC_NDIM(a) - 1;
        int64_t shape[PAC_MAX_NDIM], strides[PAC_MAX_NDIM];
        for (int axis = 0; axis < ndim; ++axis) {
            shape[axis] = PAC_SHAPE(a)[axis + 1];
            strides[axis] = PAC_STRIDES(a)[axis + 1];
        }
        return (PyObject *)pac_array_view(a, at * PAC_STRIDES(a)[0], ndim, shape, strides, PAC_CODE(a), 1);
    }
    PyObject *index = PyLong_FromSsize_t(at); /* it was resized: the index is out of bounds */
    PyObject *row = index ? PyObject_GetItem(rows->array, index) : NULL;
    Py_XDECREF(index);
    return row;
}

static int iterator_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((row_iterator *)self)->array);
    return 0;
}

static void iterator_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_DECREF(((row_iterator *)self)->array);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *iterator_length_hint(PyObject *self, PyObject *Py_UNUSED(none)) {
    const row_iterator *rows = (const row_iterator *)self;
    return PyLong_FromSsize_t(rows->count - rows->at);
}

static PyMethodDef iterator_methods[] = {
    {"__length_hint__", iterator_length_hint, METH_NOARGS, NULL},
    {0},
};
static PyType_Slot iterator_slots[] = {
    {Py_tp_dealloc, iterator_dealloc},     {Py_tp_traverse, iterator_traverse}, {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, iterator_next},       {Py_tp_methods, iterator_methods},
    {Py_tp_doc, "Iterator over the rows of an array."},
    {0},
};
static PyType_Spec iterator_spec = {"pyarray._core.RowIterator", sizeof(row_iterator), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    iterator_slots};

int pac_add_iterator_type(PyObject *module) {
    iterator_type = (PyTypeObject *)PyType_FromSpec(&iterator_spec);
    return iterator_type ? PyModule_AddType(module, iterator_type) : -1;
}

/* self */
PAC_QUICK(rows) {
    pac_array *a = pac_first_array(args, count, names, 1, 1);
    if (!a || !PAC_NDIM(a)) Py_RETURN_NOTIMPLEMENTED;
    const Py_ssize_t length = (Py_ssize_t)PAC_SHAPE(a)[0];
    row_iterator *rows = (row_iterator *)iterator_type->tp_alloc(iterator_type, 0);
    if (!rows) return NULL;
    rows->array = Py_NewRef((PyObject *)a);
    rows->count = length;
    return (PyObject *)rows;
}
