/* Tensors of DLPack, read and taken over. The GIL is held throughout, so that each step is atomic for threads and
   signal handlers. */
#include "dlpack.h"
#include "launch.h"

const char *const pac_capsule_names[] = {"dltensor", "dltensor_versioned"};
static const char *const used[] = {"used_dltensor", "used_dltensor_versioned"};
static const char *const owner_names[] = {"pyarray.dltensor", "pyarray.dltensor_versioned"};

static PyObject *host, *device_at, *aligned_copy;

/* register_dlpack(cpu, device_at, aligned): functions of pyarray/dlpack.py. */
PyObject *pac_register_dlpack(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *cpu, *at, *aligned;
    if (!PyArg_ParseTuple(args, "OOO", &cpu, &at, &aligned)) return NULL;
    Py_XSETREF(host, Py_NewRef(cpu));
    Py_XSETREF(device_at, Py_NewRef(at));
    Py_XSETREF(aligned_copy, Py_NewRef(aligned));
    Py_RETURN_NONE;
}

/* ---- dtypes and devices ----------------------------------------------------------------------------------------- */

const DLDataType pac_dl_types[PAC_CODES] = {
    [PAC_BOOL] = {6, 8, 1}, [PAC_I8] = {0, 8, 1},   [PAC_I16] = {0, 16, 1},  [PAC_I32] = {0, 32, 1},
    [PAC_I64] = {0, 64, 1}, [PAC_U8] = {1, 8, 1},   [PAC_U16] = {1, 16, 1},  [PAC_U32] = {1, 32, 1},
    [PAC_U64] = {1, 64, 1}, [PAC_F16] = {2, 16, 1}, [PAC_BF16] = {4, 16, 1}, [PAC_F32] = {2, 32, 1},
    [PAC_F64] = {2, 64, 1}, [PAC_C64] = {5, 64, 1}, [PAC_C128] = {5, 128, 1},
    [PAC_E4M3] = {10, 8, 1}, [PAC_E5M2] = {12, 8, 1},
};

static int code_of(DLDataType type) {
    for (int code = 0; code < PAC_CODES && type.lanes == 1; ++code)
        if (pac_dl_types[code].code == type.code && pac_dl_types[code].bits == type.bits) return code;
    return -1;
}

/* Where DLPack's devices are, as `device_at` has said it. They live as long as the process. */
typedef struct {
    DLDevice at;
    PyObject *device;
    uint64_t code;
} place;

enum { MOST_PLACES = 64 };
static place places[MOST_PLACES];
static int place_count;

static int ask_place(DLDevice at, place *found) {
    PyObject *device = PyObject_CallFunction(device_at, "ii", (int)at.device_type, (int)at.device_id);
    PyObject *code = device ? PyObject_GetAttrString(device, "code") : NULL;
    *found = (place){at, device, code ? PyLong_AsUnsignedLongLong(code) : 0};
    Py_XDECREF(code);
    Py_XDECREF(device); /* drivers keep their devices */
    return !PyErr_Occurred();
}

/* 0 with an exception: there is no such device. */
static int place_of(DLDevice at, place *found) {
    const int type = at.device_type;
    if (type == PAC_DL_CPU || type == PAC_DL_CUDA_HOST || type == PAC_DL_ROCM_HOST) {
        *found = (place){at, host, 0};
        return 1;
    }
    for (int k = 0; k < place_count; ++k) {
        if (places[k].at.device_type != type || places[k].at.device_id != at.device_id) continue;
        *found = places[k];
        return 1;
    }
    if (!ask_place(at, found)) return 0;
    if (place_count < MOST_PLACES) {
        Py_INCREF(found->device);
        places[place_count++] = *found;
    }
    return 1;
}

/* ---- in --------------------------------------------------------------------------------------------------------- */

int pac_read_dltensor(const DLTensor *tensor, int readonly, pac_foreign *view) {
    const int32_t ndim = tensor->ndim;
    const int code = code_of(tensor->dtype);
    if (code < 0 || ndim < 0 || ndim > view->most || (ndim && !tensor->shape)) return 0;
    const int64_t itemsize = pac_dtypes[code].itemsize;
    view->ptr = tensor->data ? (uintptr_t)tensor->data + tensor->byte_offset : 0;
    view->ndim = ndim;
    int64_t *shape = view->dims, *strides = view->dims + ndim;
    int64_t step = itemsize;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        const int64_t n = shape[axis] = tensor->shape[axis];
        strides[axis] = step;
        if (tensor->strides && __builtin_mul_overflow(tensor->strides[axis], itemsize, &strides[axis])) return 0;
        if (n < 0 || (n && __builtin_mul_overflow(step, n, &step))) return 0;
    }
    place at;
    if (!place_of(tensor->device, &at)) return -1;
    view->device = at.device;
    if (!pac_foreign_complete(view, code, readonly, at.code)) return 0;
    /* strides of axes with one element say nothing, and producers have any there */
    return view->key & PAC_STRIDED || pac_fresh_strides(ndim, shape, itemsize, strides);
}

void pac_delete_tensor(void *managed, int versioned) {
    if (versioned) {
        DLManagedTensorVersioned *tensor = managed;
        if (tensor->deleter) tensor->deleter(tensor);
    } else {
        DLManagedTensor *tensor = managed;
        if (tensor->deleter) tensor->deleter(tensor);
    }
}

/* The destructor of the owners of arrays on tensors. */
static void free_owner(PyObject *owner) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const int versioned = PyCapsule_IsValid(owner, owner_names[1]);
    pac_delete_tensor(PyCapsule_GetPointer(owner, owner_names[versioned]), versioned);
    PyErr_Restore(type, value, traceback);
}

/* An array on memory that `owner` keeps alive. */
static PyObject *array_on(const pac_foreign *view, PyObject *owner, PyObject *before_write) {
    pac_buffer *buffer = pac_buffer_wrap(view->device, view->ptr + (uintptr_t)view->low, view->nbytes, owner);
    if (!buffer) return NULL;
    buffer->before_write = Py_XNewRef(before_write);
    return (PyObject *)pac_array_on(pac_ndarray_type, buffer, view->key, view->dims, view->size, view->ptr);
}

PyObject *pac_array_on_tensor(const pac_foreign *view, void *managed, int versioned, PyObject *before_write) {
    PyObject *owner = PyCapsule_New(managed, owner_names[versioned], free_owner);
    if (!owner) {
        pac_delete_tensor(managed, versioned);
        return NULL;
    }
    PyObject *array = array_on(view, owner, before_write);
    Py_DECREF(owner);
    return array;
}

int pac_capsule_version(PyObject *capsule) {
    for (int versioned = 1; versioned >= 0; --versioned)
        if (PyCapsule_IsValid(capsule, pac_capsule_names[versioned])) return versioned;
    return -1;
}

/* from_capsule(capsule, before_write=None): the array on the memory of a tensor, which is taken over once nothing can
   fail any more. None: it can't be read; `capsule_fields` tells what it is. */
PyObject *pac_from_capsule(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *capsule, *before_write = Py_None;
    if (!PyArg_ParseTuple(args, "O|O", &capsule, &before_write)) return NULL;
    const int versioned = pac_capsule_version(capsule);
    if (versioned < 0) Py_RETURN_NONE;
    void *managed = PyCapsule_GetPointer(capsule, pac_capsule_names[versioned]);
    const DLManagedTensorVersioned *modern = managed;
    if (versioned && modern->version.major != 1) Py_RETURN_NONE;
    const DLTensor *tensor = versioned ? &modern->dl_tensor : &((const DLManagedTensor *)managed)->dl_tensor;
    int64_t dims[2 * PAC_MAX_NDIM];
    pac_foreign view = {.dims = dims, .most = PAC_MAX_NDIM};
    const int readonly = versioned && modern->flags & PAC_DL_READ_ONLY;
    const int done = pac_read_dltensor(tensor, readonly, &view);
    if (done < 0) return NULL;
    /* asking for a device runs Python, where another import may take the tensor */
    if (!done || pac_capsule_version(capsule) != versioned) Py_RETURN_NONE;
    if (PyCapsule_SetName(capsule, used[versioned]) < 0) return NULL;
    const int watched = before_write != Py_None && !(view.key & PAC_READONLY);
    if (watched) view.key |= PAC_WATCHED;
    PyObject *array = pac_array_on_tensor(&view, managed, versioned, watched ? before_write : NULL);
    if (array && !pac_foreign_aligned(&view)) Py_SETREF(array, PyObject_CallOneArg(aligned_copy, array));
    return array;
}

/* capsule_fields(capsule): the address of the first element, 0 for none, and all else that is known of the tensor:
   (major version or 0, read-only, device type, device, dtype code, bits, lanes, rank, shape, strides in elements).
   Shape or strides are None where the producer gives none, both of them for a rank outside 0 to 64. Of a major version
   that isn't known, 0 and (major, minor). None: no capsule of DLPack's, or one that was consumed. */
PyObject *pac_capsule_fields(PyObject *Py_UNUSED(module), PyObject *capsule) {
    const int versioned = pac_capsule_version(capsule);
    if (versioned < 0) Py_RETURN_NONE;
    void *managed = PyCapsule_GetPointer(capsule, pac_capsule_names[versioned]);
    const DLManagedTensorVersioned *modern = managed;
    const unsigned major = versioned ? modern->version.major : 0;
    if (versioned && major != 1) return Py_BuildValue("i(II)", 0, major, (unsigned)modern->version.minor);
    const DLTensor *tensor = versioned ? &modern->dl_tensor : &((const DLManagedTensor *)managed)->dl_tensor;
    const int ndim = tensor->ndim, legal = ndim >= 0 && ndim <= PAC_MAX_NDIM;
    PyObject *shape = legal && (tensor->shape || !ndim) ? pac_tuple_of(tensor->shape, ndim) : Py_NewRef(Py_None);
    PyObject *strides = legal && tensor->strides ? pac_tuple_of(tensor->strides, ndim) : Py_NewRef(Py_None);
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    const uint64_t address = tensor->data ? (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset : 0;
    const int readonly = versioned && modern->flags & PAC_DL_READ_ONLY;
    return Py_BuildValue("K(IiiiiiiiNN)", (unsigned long long)address, major, readonly,
                         (int)tensor->device.device_type, (int)tensor->device.device_id, (int)tensor->dtype.code,
                         (int)tensor->dtype.bits, (int)tensor->dtype.lanes, ndim, shape, strides);
}
