/* DLPack, the exchange of arrays between libraries: the ABI's structures, those of DLPack 1.1 and the table of C
   functions of 1.2 (https://dmlc.github.io/dlpack). */
#pragma once
#include "foreign.h"

typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL for a C-contiguous tensor */
    uint64_t byte_offset; /* from data to the first element */
} DLTensor;

/* Before version 1: no version, no flags. The consumer calls deleter(self) once, from any thread; NULL: nothing to
   free. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version; /* another major version: only this field and the next two can be read */
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum { PAC_DL_READ_ONLY = 1, PAC_DL_IS_COPIED = 2 }; /* flags */
enum { PAC_DL_CPU = 1, PAC_DL_CUDA_HOST = 3, PAC_DL_ROCM_HOST = 11 }; /* device types of memory that the CPU reads */

/* What a type has as `__dlpack_c_exchange_api__`, a capsule of this name. Functions give -1 with an exception. None of
   them orders work between streams. */
#define PAC_DL_EXCHANGE "dlpack_exchange_api"
typedef struct DLPackExchangeAPI {
    DLPackVersion version;
    struct DLPackExchangeAPI *older; /* a table of an older major version, or NULL */
    void *allocate;
    int (*managed_tensor_from)(void *object, DLManagedTensorVersioned **out);
    void *managed_tensor_to;
    int (*tensor_from)(void *object, DLTensor *out); /* borrowed from the object; may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} DLPackExchangeAPI;

extern const char *const pac_capsule_names[]; /* by whether versioned */
extern const DLDataType pac_dl_types[PAC_CODES]; /* by code */

/* 1 for a versioned capsule, 0 for an unversioned one, -1 for other objects and consumed capsules. */
int pac_capsule_version(PyObject *capsule);

/* Reads a tensor into a view, aligned or not. 1: done; 0: no array is like this, or is there; -1: an exception. */
int pac_read_dltensor(const DLTensor *tensor, int readonly, pac_foreign *view);

/* An array on the memory of a view whose tensor `managed` is: the array takes it over, and keeps it alive.
   `before_write`, where it is not NULL, is called before a write. NULL with an exception: the tensor is given back. */
PyObject *pac_array_on_tensor(const pac_foreign *view, void *managed, int versioned, PyObject *before_write);

/* Gives a tensor back to its producer. */
void pac_delete_tensor(void *managed, int versioned);
