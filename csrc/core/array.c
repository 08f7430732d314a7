/* Array: the type below ndarray. A typed, strided window on a buffer, with its attributes and views. */
#include "core.h"
#include <string.h>
#include <structmember.h>

PyTypeObject *pac_base_type, *pac_ndarray_type, *pac_view_type;
pac_dtype pac_dtypes[PAC_CODES];
uint64_t pac_relayouts;
PyObject *pac_asdtype;

/* ---- dims ------------------------------------------------------------------------------------------------------- */

int pac_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides, int64_t itemsize, int64_t *size) {
    int64_t count = 1;
    int contiguous = 1, empty = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        if (shape[axis] != 1) contiguous &= strides[axis] == count * itemsize;
        if (!shape[axis]) empty = 1;
        else count *= shape[axis];
    }
    *size = empty ? 0 : count;
    return contiguous || empty;
}

int pac_read_numbers(PyObject *tuple, int64_t *numbers, Py_ssize_t count) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %zd integers, got %R", count, tuple);
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; ++k) {
        numbers[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, k));
        if (numbers[k] == -1 && PyErr_Occurred()) return 0;
    }
    return 1;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

pac_array *pac_array_new(PyTypeObject *kind, uint64_t key) {
    pac_array *a = PyObject_GC_New(pac_array, kind);
    if (!a) return NULL;
    a->buffer = NULL;
    a->ptr = 0;
    a->base = a->marks = a->shape = a->strides = a->weakrefs = NULL;
    a->size = 0;
    a->key = key;
    a->dims = a->small;
    if (PAC_NDIM(a) > PAC_INLINE_NDIM) {
        a->dims = PyMem_Malloc(2 * (size_t)PAC_NDIM(a) * sizeof *a->dims);
        if (!a->dims) {
            a->dims = a->small;
            Py_DECREF(a);
            return (pac_array *)PyErr_NoMemory();
        }
    }
    return a;
}

void pac_set_buffer(pac_array *a, pac_buffer *buffer) {
    a->buffer = buffer;
    ++buffer->arrays;
    a->ptr = buffer->ptr;
    if (PyObject_GC_IsTracked((PyObject *)buffer) && !PyObject_GC_IsTracked((PyObject *)a)) PyObject_GC_Track(a);
}

pac_array *pac_array_on(PyTypeObject *kind, pac_buffer *buffer, uint64_t key, const int64_t *dims, int64_t size,
                        uintptr_t ptr) {
    pac_array *a = pac_array_new(kind, key);
    if (!a) {
        Py_DECREF(buffer);
        return NULL;
    }
    memcpy(a->dims, dims, 2 * (size_t)PAC_NDIM(a) * sizeof *dims);
    a->size = size;
    pac_set_buffer(a, buffer);
    a->ptr = ptr;
    return a;
}

pac_array *pac_array_fresh(PyTypeObject *kind, int code, int ndim, const int64_t *shape, PyObject *device,
                           uint64_t device_code) {
    pac_array *a = pac_array_new(kind, (uint64_t)code | (uint64_t)ndim << 8 | device_code << 20);
    if (!a) return NULL;
    int64_t step = pac_dtypes[code].itemsize, size = 1;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        a->dims[axis] = shape[axis];
        a->dims[ndim + axis] = step;
        size *= shape[axis];
        step *= shape[axis] ? shape[axis] : 1;
    }
    a->size = size;
    pac_buffer *buffer = pac_buffer_allocate(device, size * pac_dtypes[code].itemsize);
    if (!buffer) {
        Py_DECREF(a);
        return NULL;
    }
    pac_set_buffer(a, buffer);
    return a;
}

pac_array *pac_array_view(pac_array *a, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                          int code, int as_run) {
    if (ndim > PAC_MAX_NDIM) {
        PyErr_Format(PyExc_IndexError, "an array has at most %d dimensions, got %d; reshape it to fewer", PAC_MAX_NDIM,
                     ndim);
        return NULL;
    }
    int64_t size;
    const int contiguous = pac_is_contiguous(ndim, shape, strides, pac_dtypes[code].itemsize, &size);
    const uint64_t inherited = PAC_READONLY | PAC_WATCHED | PAC_DEVICE;
    const uint64_t key =
        (a->key & inherited) | (uint64_t)code | (uint64_t)ndim << 8 | (contiguous ? 0 : PAC_STRIDED);
    /* before the allocation, which may give `a` other memory */
    pac_buffer *buffer = (pac_buffer *)Py_NewRef(a->buffer);
    const uintptr_t ptr = a->ptr + (uintptr_t)offset;
    pac_array *view = pac_array_new(as_run && contiguous && ndim == 1 ? pac_view_type : pac_ndarray_type, key);
    if (!view) {
        Py_DECREF(buffer);
        return NULL;
    }
    memcpy(view->dims, shape, (size_t)ndim * sizeof *shape);
    memcpy(view->dims + ndim, strides, (size_t)ndim * sizeof *strides);
    view->size = size;
    view->base = Py_NewRef(a->base ? a->base : (PyObject *)a);
    pac_set_buffer(view, buffer);
    view->ptr = ptr;
    if (PyObject_GC_IsTracked(view->base) && !PyObject_GC_IsTracked((PyObject *)view)) PyObject_GC_Track(view);
    return view;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

static int array_traverse(PyObject *self, visitproc visit, void *arg) {
    pac_array *a = (pac_array *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(a->buffer);
    Py_VISIT(a->base);
    return 0;
}

static void array_dealloc(PyObject *self) {
    pac_array *a = (pac_array *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (a->weakrefs) PyObject_ClearWeakRefs(self);
    Py_XDECREF(a->base);
    if (a->buffer) --a->buffer->arrays;
    Py_XDECREF(a->buffer);
    Py_XDECREF(a->marks);
    Py_XDECREF(a->shape);
    Py_XDECREF(a->strides);
    if (a->dims != a->small) PyMem_Free(a->dims);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

/* _handle(key): another handle on the same elements, whose type key may hold promises about sizes. */
static PyObject *array_handle(PyObject *self, PyObject *key) {
    pac_array *a = (pac_array *)self;
    int64_t dims[2 * PAC_MAX_NDIM]; /* garbage that is collected may resize the array */
    memcpy(dims, a->dims, 2 * (size_t)PAC_NDIM(a) * sizeof *dims);
    pac_array *handle = pac_array_on(Py_TYPE(self), (pac_buffer *)Py_NewRef(a->buffer), a->key & ~PAC_MARKED, dims,
                                     a->size, a->ptr);
    if (!handle) return NULL;
    if (pac_set_base((PyObject *)handle, a->base ? a->base : self, NULL) < 0 ||
        pac_set_key((PyObject *)handle, key, NULL) < 0) {
        Py_DECREF(handle);
        return NULL;
    }
    return (PyObject *)handle;
}

/* _relayout(buffer, ptr, shape, strides, key): the array becomes another one in place, at once for other threads. */
static PyObject *array_relayout(PyObject *self, PyObject *args) {
    pac_array *a = (pac_array *)self;
    PyObject *buffer, *shape, *strides, *key;
    unsigned long long ptr;
    if (!PyArg_ParseTuple(args, "O!KO!OO", pac_buffer_type, &buffer, &ptr, &PyTuple_Type, &shape, &strides, &key))
        return NULL;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    const uint64_t plain = PyLong_AsUnsignedLongLongMask(key) & 0xFFFFFFFF;
    int64_t *dims = a->small;
    int64_t numbers[2 * PAC_MAX_NDIM], size;
    if (PyErr_Occurred()) return NULL;
    if (ndim > PAC_MAX_NDIM || (int)(plain >> 8 & 0xFF) != ndim || (plain & 0xFF) >= PAC_CODES) {
        PyErr_Format(PyExc_ValueError, "a key of rank %zd can't have the value %R", ndim, key);
        return NULL;
    }
    if (!pac_read_numbers(shape, numbers, ndim) || !pac_read_numbers(strides, numbers + ndim, ndim)) return NULL;
    if (ndim > PAC_INLINE_NDIM && !(dims = PyMem_Malloc(2 * (size_t)ndim * sizeof *dims))) return PyErr_NoMemory();
    ++pac_relayouts;
    if (a->dims != a->small) PyMem_Free(a->dims);
    a->dims = dims;
    memcpy(dims, numbers, 2 * (size_t)ndim * sizeof *dims);
    pac_is_contiguous((int)ndim, dims, dims + ndim, pac_dtypes[plain & 0xFF].itemsize, &size);
    a->size = size;
    a->key = plain;
    Py_CLEAR(a->marks);
    Py_CLEAR(a->shape);
    Py_CLEAR(a->strides);
    PyObject *old = (PyObject *)a->buffer;
    --a->buffer->arrays;
    pac_set_buffer(a, (pac_buffer *)Py_NewRef(buffer));
    a->ptr = (uintptr_t)ptr;
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

extern PyObject *pac_view_method(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

extern PyObject *pac_array_dlpack(PyObject *, PyObject *const *, Py_ssize_t, PyObject *),
    *pac_array_dlpack_device(PyObject *, PyObject *);

static PyMethodDef array_methods[] = {
    {"_view", (PyCFunction)(void (*)(void))pac_view_method, METH_FASTCALL | METH_KEYWORDS,
     "The same memory, `offset` bytes on, as another `dtype` where one is given. A contiguous 1-D result is a "
     "BufferView where `run` is not None."},
    {"_handle", array_handle, METH_O, "Another handle on the same elements with this type key."},
    {"_relayout", array_relayout, METH_VARARGS, "Another buffer, address, shape, strides and key, in place."},
    {"__dlpack__", (PyCFunction)(void (*)(void))pac_array_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule of DLPack that shares the memory, for another library's from_dlpack."},
    {"__dlpack_device__", pac_array_dlpack_device, METH_NOARGS, "DLPack's device type and the device's index."},
    {0},
};

extern PyType_Slot pac_operator_slots[], pac_export_slots[];
extern PyGetSetDef pac_array_fields[];
extern PyMemberDef pac_array_members[];
extern PyObject *pac_subscript(PyObject *self, PyObject *key);
extern int pac_assign_subscript(PyObject *self, PyObject *key, PyObject *value);

static Py_ssize_t array_length(PyObject *self) {
    pac_array *a = (pac_array *)self;
    if (PAC_NDIM(a)) return (Py_ssize_t)PAC_SHAPE(a)[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d array; its one element is a.item()");
    return -1;
}

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, array_dealloc}, {Py_tp_traverse, array_traverse},    {Py_tp_getset, pac_array_fields},
    {Py_tp_members, pac_array_members}, {Py_tp_methods, array_methods},      {Py_mp_subscript, pac_subscript},
    {Py_mp_length, array_length},   {Py_mp_ass_subscript, pac_assign_subscript},
    {Py_tp_doc, "The type below ndarray: a typed, strided window on a buffer."},
    {0},
};
static PyType_Spec array_spec = {"pyarray._core.Array", sizeof(pac_array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                     Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

/* register_array(ndarray): the class of arrays; register_view(BufferView): that of contiguous 1-D views. Both have no
   fields and no finalizer of their own, so what frees an Array frees them. */
static PyObject *register_class(PyObject *kind, PyTypeObject **where) {
    PyTypeObject *type = (PyTypeObject *)kind;
    if (!PyType_Check(kind) || !PyType_IsSubtype(type, pac_base_type) ||
        type->tp_basicsize != (Py_ssize_t)sizeof(pac_array)) {
        PyErr_Format(PyExc_TypeError, "%R is no subclass of Array without fields", kind);
        return NULL;
    }
    type->tp_dealloc = array_dealloc;
    Py_XSETREF(*(PyObject **)where, Py_NewRef(kind));
    Py_RETURN_NONE;
}

PyObject *pac_register_array(PyObject *Py_UNUSED(module), PyObject *kind) {
    if (!pac_view_type) pac_view_type = (PyTypeObject *)Py_NewRef(kind);
    return register_class(kind, &pac_ndarray_type);
}

PyObject *pac_register_view(PyObject *Py_UNUSED(module), PyObject *kind) {
    return register_class(kind, &pac_view_type);
}

/* register_dtypes(rows, asdtype): the table of pyarray/dtypes.py, and its function of other names. */
PyObject *pac_register_dtypes(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *rows, *asdtype;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &rows, &asdtype)) return NULL;
    if (PyTuple_GET_SIZE(rows) != PAC_CODES) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %d rows", PAC_CODES);
        return NULL;
    }
    Py_XSETREF(pac_asdtype, Py_NewRef(asdtype));
    for (int code = 0; code < PAC_CODES; ++code) {
        PyObject *row = PyTuple_GET_ITEM(rows, code), *numpy = PyObject_GetAttrString(row, "numpy");
        PyObject *itemsize = PyObject_GetAttrString(row, "itemsize"), *kind = PyObject_GetAttrString(row, "kind");
        PyObject *scalar = numpy ? PyObject_GetAttrString(numpy, "type") : NULL;
        if (scalar && itemsize && kind) {
            Py_XSETREF(pac_dtypes[code].row, Py_NewRef(row));
            Py_XSETREF(pac_dtypes[code].numpy, Py_NewRef(numpy));
            Py_XSETREF(pac_dtypes[code].scalar, Py_NewRef(scalar));
            pac_dtypes[code].itemsize = (int)PyLong_AsLong(itemsize);
            pac_dtypes[code].kind = (char)PyUnicode_ReadChar(kind, 0);
        }
        Py_XDECREF(numpy);
        Py_XDECREF(scalar);
        Py_XDECREF(itemsize);
        Py_XDECREF(kind);
        if (PyErr_Occurred()) return NULL;
    }
    Py_RETURN_NONE;
}

int pac_add_array_type(PyObject *module) {
    enum { SLOTS = 64 };
    static PyType_Slot slots[SLOTS];
    int count = 0;
    for (const PyType_Slot *slot = array_slots; slot->slot; ++slot) slots[count++] = *slot;
    for (const PyType_Slot *slot = pac_operator_slots; slot->slot; ++slot) slots[count++] = *slot;
    for (const PyType_Slot *slot = pac_export_slots; slot->slot; ++slot) slots[count++] = *slot;
    array_spec.slots = slots;
    pac_base_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    return pac_base_type ? PyModule_AddType(module, pac_base_type) : -1;
}
