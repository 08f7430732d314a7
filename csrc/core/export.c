/* Arrays given to other libraries: the buffer protocol, and capsules of DLPack. */
#include "dlpack.h"
#include <stdlib.h>
#include <string.h>

/* ---- the buffer protocol ---------------------------------------------------------------------------------------- */

/* Formats of struct, by code, as NumPy has them; those of ml_dtypes have none. */
static const char *const formats[PAC_CODES] = {
    [PAC_BOOL] = "?", [PAC_I8] = "b",  [PAC_I16] = "h", [PAC_I32] = "i", [PAC_I64] = sizeof(long) == 8 ? "l" : "q",
    [PAC_U8] = "B",   [PAC_U16] = "H", [PAC_U32] = "I", [PAC_U64] = sizeof(long) == 8 ? "L" : "Q",
    [PAC_F16] = "e",  [PAC_F32] = "f", [PAC_F64] = "d", [PAC_C64] = "Zf", [PAC_C128] = "Zd",
};

static int is_fortran(const pac_array *a) {
    int64_t step = PAC_ITEMSIZE(a);
    for (int axis = 0; axis < PAC_NDIM(a); ++axis) {
        if (PAC_SHAPE(a)[axis] != 1 && PAC_STRIDES(a)[axis] != step) return !a->size;
        step *= PAC_SHAPE(a)[axis];
    }
    return 1;
}

/* Whether the layout is one that the consumer can read. */
static int fits(const pac_array *a, int flags) {
    const int contiguous = !(a->key & PAC_STRIDED);
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) return contiguous;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) return is_fortran(a);
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) return contiguous || is_fortran(a);
    return contiguous || (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
}

/* Why an array can't be had so. 0 with an exception; 1: it can. */
static int may_export(const pac_array *a, int flags) {
    if (!PAC_ON_CPU(a))
        PyErr_Format(PyExc_BufferError, "an array on %S has no memory that the host can read; write pyarray.asnumpy(a)",
                     a->buffer->device);
    else if (!formats[PAC_CODE(a)])
        PyErr_Format(PyExc_BufferError, "%S has no format in the buffer protocol; write a.view('uint%d') for its bits, "
                                        "or a.astype('float32')", pac_dtypes[PAC_CODE(a)].row, 8 * PAC_ITEMSIZE(a));
    else if (!(flags & (PyBUF_FORMAT | PyBUF_ND))) /* torch.asarray would take them for floats of its default dtype */
        PyErr_SetString(PyExc_BufferError, "an array is asked for its bytes without their dtype and shape; write "
                                           "memoryview(a) or a.tobytes(), and torch.from_dlpack(a) for torch");
    else if (flags & PyBUF_WRITABLE && a->key & PAC_READONLY)
        PyErr_SetString(PyExc_BufferError, "the array is read-only, and memory to write to is asked for; use a.copy()");
    else if (!fits(a, flags))
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous as it is asked for; use a.copy()");
    else return 1;
    return 0;
}

/* Sizes and strides have memory of their own: a.resize changes the array's. */
static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    pac_array *a = (pac_array *)self;
    const int ndim = PAC_NDIM(a);
    int64_t nbytes;
    view->obj = NULL;
    if (!may_export(a, flags)) return -1;
    if (__builtin_mul_overflow(a->size, PAC_ITEMSIZE(a), &nbytes)) {
        PyErr_SetString(PyExc_BufferError, "the array repeats elements to more bytes than a buffer counts; write "
                                           "memoryview(a[...]) of a part of it");
        return -1;
    }
    Py_ssize_t *dims = NULL;
    if (ndim && flags & PyBUF_ND) {
        if (!(dims = PyMem_Malloc(2 * (size_t)ndim * sizeof *dims))) {
            PyErr_NoMemory();
            return -1;
        }
        int64_t strides[PAC_MAX_NDIM];
        memcpy(strides, PAC_STRIDES(a), (size_t)ndim * sizeof *strides);
        /* axes of one or no element may have any strides, which tests of others for contiguity would mind */
        if (!(a->key & PAC_STRIDED)) pac_fresh_strides(ndim, PAC_SHAPE(a), PAC_ITEMSIZE(a), strides);
        for (int k = 0; k < ndim; ++k) {
            dims[k] = (Py_ssize_t)PAC_SHAPE(a)[k];
            dims[ndim + k] = (Py_ssize_t)strides[k];
        }
    }
    *view = (Py_buffer){
        .buf = pac_host_memory(a),
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)nbytes,
        .itemsize = PAC_ITEMSIZE(a),
        .readonly = (a->key & PAC_READONLY) != 0,
        .ndim = flags & PyBUF_ND ? ndim : 1,
        .format = flags & PyBUF_FORMAT ? (char *)formats[PAC_CODE(a)] : NULL,
        .shape = dims,
        .strides = dims && (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + ndim : NULL,
        .internal = dims,
    };
    /* some keep the address and the array, but not the buffer */
    a->buffer->escaped = 1;
    return 0;
}

static void release_buffer(PyObject *Py_UNUSED(self), Py_buffer *view) {
    PyMem_Free(view->internal);
    view->internal = NULL;
}

PyType_Slot pac_export_slots[] = {
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_buffer},
    {0},
};

/* ---- DLPack ----------------------------------------------------------------------------------------------------- */

static PyObject *general_export, *before_export, *device_numbers, *cpu_numbers;
static PyObject *option_names[4];

/* register_export(general, before, numbers): functions of pyarray/dlpack.py. */
PyObject *pac_register_export(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *general, *before, *numbers;
    if (!PyArg_ParseTuple(args, "OOO", &general, &before, &numbers)) return NULL;
    Py_XSETREF(general_export, Py_NewRef(general));
    Py_XSETREF(before_export, Py_NewRef(before));
    Py_XSETREF(device_numbers, Py_NewRef(numbers));
    Py_RETURN_NONE;
}

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

/* Consumers may free tensors on threads of their own, and after the interpreter's end, when the owner is gone, too.
   While it ends, other threads never get the GIL again. */
static void release(PyObject *owner) {
    if (!Py_IsInitialized() || (Py_IsFinalizing() && !PyGILState_Check())) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(owner);
    PyGILState_Release(state);
}

static void free_plain(DLManagedTensor *self) {
    release(self->manager_ctx);
    free(self);
}

static void free_versioned(DLManagedTensorVersioned *self) {
    release(self->manager_ctx);
    free(self);
}

/* The destructor of exported capsules: frees the tensor unless it was consumed. */
static void free_capsule(PyObject *capsule) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* a capsule may be freed while an exception propagates */
    const int versioned = pac_capsule_version(capsule);
    if (versioned >= 0) pac_delete_tensor(PyCapsule_GetPointer(capsule, pac_capsule_names[versioned]), versioned);
    PyErr_Restore(type, value, traceback);
}

static void refuse_stride(pac_array *a, int64_t stride) {
    PyObject *strides = PyObject_GetAttrString((PyObject *)a, "strides");
    if (strides && stride < 0)
        PyErr_Format(PyExc_BufferError,
                     "strides %R hold a negative one, which not every consumer survives; pass copy=True", strides);
    else if (strides)
        PyErr_Format(PyExc_BufferError, "strides %R are no multiples of %S's %d bytes; pass copy=True", strides,
                     pac_dtypes[PAC_CODE(a)].row, PAC_ITEMSIZE(a));
    Py_XDECREF(strides);
}

/* Sizes and strides in elements; of an axis without a second element the stride of a fresh array. 0 with an
   exception. */
static int set_layout(DLTensor *tensor, int64_t *memory, pac_array *a) {
    const int64_t itemsize = PAC_ITEMSIZE(a);
    tensor->shape = memory;
    tensor->strides = memory + tensor->ndim;
    uint64_t step = 1;
    for (int axis = tensor->ndim - 1; axis >= 0; --axis) {
        const int64_t size = PAC_SHAPE(a)[axis], stride = PAC_STRIDES(a)[axis];
        const int moves = size > 1 && a->key & PAC_STRIDED;
        if (moves && (stride < 0 || stride % itemsize)) {
            refuse_stride(a, stride);
            return 0;
        }
        tensor->shape[axis] = size;
        tensor->strides[axis] = moves ? stride / itemsize : (int64_t)step;
        step *= size > 1 ? (uint64_t)size : 1;
    }
    return 1;
}

/* DLPack's numbers of an array's device: its type and its index. */
static PyObject *numbers_of(const pac_array *a) {
    if (!PAC_ON_CPU(a)) return PyObject_CallOneArg(device_numbers, a->buffer->device);
    if (!cpu_numbers) cpu_numbers = Py_BuildValue("ii", PAC_DL_CPU, 0);
    return Py_XNewRef(cpu_numbers);
}

static PyObject *export(pac_array *a, int versioned, int copied) {
    const int readonly = (a->key & PAC_READONLY) != 0;
    DLDevice device = {PAC_DL_CPU, 0};
    if (readonly && !versioned) {
        PyErr_SetString(PyExc_BufferError, "a read-only array is exported only to consumers that pass "
                                           "max_version=(1, 0); pass copy=True");
        return NULL;
    }
    if (!PAC_ON_CPU(a)) {
        PyObject *numbers = numbers_of(a);
        const int read = numbers && PyArg_ParseTuple(numbers, "ii", &device.device_type, &device.device_id);
        Py_XDECREF(numbers);
        if (!read) return NULL;
    }
    const int ndim = PAC_NDIM(a); /* after Python has run, which may resize the array */
    const size_t head = versioned ? sizeof(DLManagedTensorVersioned) : sizeof(DLManagedTensor);
    void *managed = calloc(1, head + 2 * (size_t)ndim * sizeof(int64_t));
    if (!managed) return PyErr_NoMemory();
    DLManagedTensorVersioned *modern = managed;
    DLTensor *tensor = versioned ? &modern->dl_tensor : &((DLManagedTensor *)managed)->dl_tensor;
    *tensor = (DLTensor){.data = a->size ? pac_host_memory(a) : NULL, .device = device, .ndim = ndim,
                         .dtype = pac_dl_types[PAC_CODE(a)]};
    if (versioned) {
        modern->version = (DLPackVersion){1, 1};
        modern->flags = (readonly ? PAC_DL_READ_ONLY : 0) | (copied ? PAC_DL_IS_COPIED : 0);
        modern->manager_ctx = a->buffer;
        modern->deleter = free_versioned;
    } else {
        ((DLManagedTensor *)managed)->manager_ctx = a->buffer;
        ((DLManagedTensor *)managed)->deleter = free_plain;
    }
    PyObject *capsule = NULL;
    if (set_layout(tensor, (int64_t *)((char *)managed + head), a))
        capsule = PyCapsule_New(managed, pac_capsule_names[versioned], free_capsule);
    if (!capsule) {
        free(managed);
        return NULL;
    }
    Py_INCREF(a->buffer);
    (void)pac_host_memory(a); /* also of an empty one */
    return capsule;
}

/* export_capsule(array, versioned, copied) */
PyObject *pac_export_capsule(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *array;
    int versioned, copied;
    if (!PyArg_ParseTuple(args, "O!pp", pac_base_type, &array, &versioned, &copied)) return NULL;
    return export((pac_array *)array, versioned, copied);
}

enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, OPTIONS };

static int read_options(PyObject *const *args, PyObject *names, PyObject **options) {
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        int option = 0;
        while (option < OPTIONS && PyUnicode_Compare(name, option_names[option])) ++option;
        if (option == OPTIONS) {
            PyErr_Format(PyExc_TypeError, "__dlpack__() takes stream, max_version, dl_device and copy, got %R", name);
            return 0;
        }
        options[option] = args[k];
    }
    return 1;
}

/* a.__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). Another device, a copy, and what is wrong,
   are for the general way. */
PyObject *pac_array_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    pac_array *a = (pac_array *)self;
    PyObject *options[OPTIONS] = {Py_None, Py_None, Py_None, Py_None};
    if (count) {
        PyErr_Format(PyExc_TypeError, "__dlpack__() takes no positional arguments, got %zd", count);
        return NULL;
    }
    if (!read_options(args, names, options)) return NULL;
    PyObject *version = options[MAX_VERSION];
    const int plain_version = version == Py_None || (PyTuple_CheckExact(version) && PyTuple_GET_SIZE(version) &&
                                                     PyLong_CheckExact(PyTuple_GET_ITEM(version, 0)));
    const int plain_stream = !PAC_ON_CPU(a) || options[STREAM] == Py_None;
    if (!plain_version || !plain_stream || options[DL_DEVICE] != Py_None || options[COPY] != Py_None)
        return PyObject_CallFunctionObjArgs(general_export, self, options[STREAM], version, options[DL_DEVICE],
                                            options[COPY], NULL);
    if (!PAC_ON_CPU(a)) {
        PyObject *done = PyObject_CallFunctionObjArgs(before_export, self, options[STREAM], NULL);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    const long major = version == Py_None ? 0 : PyLong_AsLong(PyTuple_GET_ITEM(version, 0));
    if (major == -1 && PyErr_Occurred()) return NULL;
    return export(a, major >= 1, 0);
}

/* a.__dlpack_device__() */
PyObject *pac_array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(none)) { return numbers_of((pac_array *)self); }

int pac_add_export(void) {
    static const char *const options[] = {"stream", "max_version", "dl_device", "copy"};
    for (int k = 0; k < OPTIONS; ++k)
        if (!(option_names[k] = PyUnicode_InternFromString(options[k]))) return -1;
    return 0;
}
