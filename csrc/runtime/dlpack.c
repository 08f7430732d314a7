/* The part of DLPack that outlives the Python call: deleters and the capsule's destructor. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>

#include "pyarray_dlpack.h"

const char *const pa_dlpack_names[4] = {"dltensor", "dltensor_versioned", "used_dltensor", "used_dltensor_versioned"};

/* Consumers free tensors on threads of their own, some of them while the interpreter is gone: then the owner is gone, too. */
static void release(void *owner) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DecRef(owner);
    PyGILState_Release(state);
}

static void *hold(uintptr_t owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_IncRef((PyObject *)owner);
    PyGILState_Release(state);
    return (void *)owner;
}

static void free_plain(DLManagedTensor *self) {
    release(self->manager_ctx);
    free(self);
}

static void free_versioned(DLManagedTensorVersioned *self) {
    release(self->manager_ctx);
    free(self);
}

static void set_room(DLTensor *tensor, int32_t ndim, int64_t *room) {
    tensor->ndim = ndim;
    tensor->shape = room;
    tensor->strides = room + ndim;
}

DLManagedTensor *pa_dlpack_new(uintptr_t owner, int32_t ndim) {
    DLManagedTensor *tensor = calloc(1, sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t));
    if (!tensor) return NULL;
    set_room(&tensor->dl_tensor, ndim, (int64_t *)(tensor + 1));
    tensor->manager_ctx = hold(owner);
    tensor->deleter = free_plain;
    return tensor;
}

DLManagedTensorVersioned *pa_dlpack_new_versioned(uintptr_t owner, int32_t ndim) {
    DLManagedTensorVersioned *tensor = calloc(1, sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t));
    if (!tensor) return NULL;
    set_room(&tensor->dl_tensor, ndim, (int64_t *)(tensor + 1));
    tensor->manager_ctx = hold(owner);
    tensor->deleter = free_versioned;
    return tensor;
}

static void read_tensor(const DLTensor *tensor, int64_t *facts) {
    const int64_t known[] = {(int64_t)(uintptr_t)tensor->data, (int64_t)tensor->byte_offset, tensor->device.device_type,
                             tensor->device.device_id, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes,
                             tensor->ndim, tensor->strides != NULL};
    for (int k = 0; k < 9; ++k) facts[k] = known[k];
    if (tensor->ndim < 0 || tensor->ndim > PA_DLPACK_NDIM) return;
    for (int axis = 0; axis < tensor->ndim; ++axis) {
        facts[9 + axis] = tensor->shape[axis];
        facts[9 + tensor->ndim + axis] = tensor->strides ? tensor->strides[axis] : 0;
    }
}

const int64_t *pa_dlpack_read(uintptr_t capsule) {
    static _Thread_local int64_t facts[PA_DLPACK_FACTS + 2 * PA_DLPACK_NDIM];
    void *pointer = NULL;
    int versioned = 0;
    PyGILState_STATE state = PyGILState_Ensure();
    for (versioned = 1; versioned >= 0; --versioned)
        if (PyCapsule_IsValid((PyObject *)capsule, pa_dlpack_names[versioned])) {
            pointer = PyCapsule_GetPointer((PyObject *)capsule, pa_dlpack_names[versioned]);
            break;
        }
    PyGILState_Release(state);
    if (!pointer) return NULL;
    const DLManagedTensorVersioned *held = versioned ? pointer : NULL;
    facts[0] = (int64_t)(uintptr_t)pointer;
    facts[1] = versioned;
    facts[2] = held ? held->version.major : 0;
    facts[3] = held ? held->version.minor : 0;
    if (held && held->version.major != 1) return facts;
    facts[4] = held ? (int64_t)held->flags : 0;
    read_tensor(held ? &held->dl_tensor : &((const DLManagedTensor *)pointer)->dl_tensor, facts + 5);
    return facts;
}

void pa_dlpack_delete(DLManagedTensor *tensor) {
    if (tensor->deleter) tensor->deleter(tensor);
}

void pa_dlpack_delete_versioned(DLManagedTensorVersioned *tensor) {
    if (tensor->deleter) tensor->deleter(tensor);
}

void pa_dlpack_capsule_free(void *object) {
    PyObject *capsule = object, *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* a capsule may die while an exception is on its way */
    if (PyCapsule_IsValid(capsule, pa_dlpack_names[1]))
        pa_dlpack_delete_versioned(PyCapsule_GetPointer(capsule, pa_dlpack_names[1]));
    else if (PyCapsule_IsValid(capsule, pa_dlpack_names[0]))
        pa_dlpack_delete(PyCapsule_GetPointer(capsule, pa_dlpack_names[0]));
    PyErr_Restore(type, value, traceback);
}
