/* DLPack capsules: export, read and claim hold the GIL throughout, so they are atomic for threads and signal handlers;
   and the deleters, which outlive the Python call. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>

#include "pyarray_dlpack.h"

static const char *const names[] = {"dltensor", "dltensor_versioned"}; /* by versioned */
static const char *const used[] = {"used_dltensor", "used_dltensor_versioned"};
static const char *const owner_names[] = {"pyarray.dltensor", "pyarray.dltensor_versioned"};

/* 1 for a versioned capsule, 0 for an unversioned one, -1 for other objects and consumed capsules. */
static int version_of(PyObject *capsule) {
    return PyCapsule_IsValid(capsule, names[1]) ? 1 : PyCapsule_IsValid(capsule, names[0]) ? 0 : -1;
}

static void delete_tensor(void *managed, int versioned) {
    if (versioned) {
        DLManagedTensorVersioned *tensor = managed;
        if (tensor->deleter) tensor->deleter(tensor);
    } else {
        DLManagedTensor *tensor = managed;
        if (tensor->deleter) tensor->deleter(tensor);
    }
}

/* ---- export ---- */

/* Consumers may free tensors on threads of their own, and after the interpreter's end, when the owner is gone, too. */
static void release(void *owner) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DecRef(owner);
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
    const int versioned = version_of(capsule);
    if (versioned >= 0) delete_tensor(PyCapsule_GetPointer(capsule, names[versioned]), versioned);
    PyErr_Restore(type, value, traceback);
}

/* Sizes and strides in elements; of an axis without a second element the stride of a fresh array, which `strides` None
   means for all. 0 with an exception where they are no tuples of integers. */
static int set_layout(DLTensor *tensor, int64_t *memory, PyObject *shape, PyObject *strides) {
    tensor->shape = memory;
    tensor->strides = memory + tensor->ndim;
    uint64_t step = 1;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; --axis) {
        const int64_t size = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
        const int64_t stride = strides == Py_None ? 0 : PyLong_AsLongLong(PyTuple_GetItem(strides, axis));
        if (PyErr_Occurred()) return 0;
        tensor->shape[axis] = size;
        tensor->strides[axis] = strides == Py_None || size <= 1 ? (int64_t)step : stride;
        step *= size > 1 ? (uint64_t)size : 1;
    }
    return 1;
}

/* export(owner, address, versioned, flags, device type, device, dtype code, bits, shape, strides in elements or
   None) */
static PyObject *export(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *owner, *shape, *strides;
    unsigned long long address, flags;
    int versioned, kind, index, code, bits;
    if (!PyArg_ParseTuple(args, "OKpKiiiiO!O", &owner, &address, &versioned, &flags, &kind, &index, &code, &bits,
                          &PyTuple_Type, &shape, &strides))
        return NULL;
    const int32_t ndim = (int32_t)PyTuple_Size(shape);
    const size_t head = versioned ? sizeof(DLManagedTensorVersioned) : sizeof(DLManagedTensor);
    void *managed = calloc(1, head + 2 * (size_t)ndim * sizeof(int64_t));
    if (!managed) return PyErr_NoMemory();
    DLManagedTensorVersioned *versioned_tensor = managed;
    DLTensor *tensor = versioned ? &versioned_tensor->dl_tensor : &((DLManagedTensor *)managed)->dl_tensor;
    *tensor = (DLTensor){.data = (void *)(uintptr_t)address, .device = {kind, index}, .ndim = ndim,
                         .dtype = {(uint8_t)code, (uint8_t)bits, 1}};
    if (versioned) {
        versioned_tensor->version = (DLPackVersion){1, 1};
        versioned_tensor->flags = flags;
        versioned_tensor->manager_ctx = owner;
        versioned_tensor->deleter = free_versioned;
    } else {
        ((DLManagedTensor *)managed)->manager_ctx = owner;
        ((DLManagedTensor *)managed)->deleter = free_plain;
    }
    PyObject *capsule = NULL;
    if (set_layout(tensor, (int64_t *)((char *)managed + head), shape, strides))
        capsule = PyCapsule_New(managed, names[versioned], free_capsule);
    if (capsule)
        Py_IncRef(owner);
    else
        free(managed);
    return capsule;
}

/* ---- import ---- */

static PyObject *numbers(const int64_t *values, int32_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (int32_t k = 0; tuple && k < count; ++k) {
        PyObject *number = PyLong_FromLongLong(values[k]);
        if (!number || PyTuple_SetItem(tuple, k, number) < 0) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* read(capsule): the address of the first element, 0 for none, and all else that is known of the tensor, which many
   tensors have in common: (major version or 0, read-only, device type, device, dtype code, bits, lanes, rank, shape,
   strides in elements). Shape or strides are None where the producer gives none, both of them for a rank outside 0 to
   64. Of a major version that isn't known, 0 and (major, minor). None: no capsule of DLPack's, or one that was
   consumed. */
static PyObject *read_capsule(PyObject *Py_UNUSED(module), PyObject *capsule) {
    const int versioned = version_of(capsule);
    if (versioned < 0) return Py_NewRef(Py_None);
    void *managed = PyCapsule_GetPointer(capsule, names[versioned]);
    const DLManagedTensorVersioned *versioned_tensor = managed;
    const unsigned major = versioned ? versioned_tensor->version.major : 0;
    if (versioned && major != 1) return Py_BuildValue("i(II)", 0, major, (unsigned)versioned_tensor->version.minor);
    const DLTensor *tensor = versioned ? &versioned_tensor->dl_tensor : &((const DLManagedTensor *)managed)->dl_tensor;
    const int32_t ndim = tensor->ndim;
    const int legal = ndim >= 0 && ndim <= PA_DLPACK_NDIM;
    PyObject *shape = legal && (tensor->shape || !ndim) ? numbers(tensor->shape, ndim) : Py_NewRef(Py_None);
    PyObject *strides = legal && tensor->strides ? numbers(tensor->strides, ndim) : Py_NewRef(Py_None);
    if (!shape || !strides) {
        if (shape) Py_DecRef(shape);
        if (strides) Py_DecRef(strides);
        return NULL;
    }
    const uint64_t address = tensor->data ? (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset : 0;
    const int readonly = versioned ? (int)(versioned_tensor->flags & 1) : 0;
    return Py_BuildValue("K(IiiiiiiiNN)", (unsigned long long)address, major, readonly,
                         (int)tensor->device.device_type, (int)tensor->device.device_id, (int)tensor->dtype.code,
                         (int)tensor->dtype.bits, (int)tensor->dtype.lanes, (int)ndim, shape, strides);
}

static void free_owner(PyObject *owner) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const int versioned = PyCapsule_IsValid(owner, owner_names[1]);
    delete_tensor(PyCapsule_GetPointer(owner, owner_names[versioned]), versioned);
    PyErr_Restore(type, value, traceback);
}

/* claim(capsule): marks it as consumed; what it gives calls the tensor's deleter when it dies. None: no capsule of
   DLPack's, or one that was consumed. */
static PyObject *claim(PyObject *Py_UNUSED(module), PyObject *capsule) {
    const int versioned = version_of(capsule);
    if (versioned < 0) return Py_NewRef(Py_None);
    void *managed = PyCapsule_GetPointer(capsule, names[versioned]);
    PyObject *owner = PyCapsule_New(managed, owner_names[versioned], NULL);
    if (!owner || PyCapsule_SetName(capsule, used[versioned]) < 0 || PyCapsule_SetDestructor(owner, free_owner) < 0) {
        Py_XDECREF(owner);
        return NULL;
    }
    return owner;
}

uintptr_t pa_dlpack_function(int which) {
    static PyMethodDef methods[] = {
        {"export", export, METH_VARARGS, NULL},
        {"read", read_capsule, METH_O, NULL},
        {"claim", claim, METH_O, NULL},
    };
    if (which < 0 || which > 2) return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *function = PyCFunction_NewEx(&methods[which], NULL, NULL);
    PyGILState_Release(state);
    return (uintptr_t)function;
}
