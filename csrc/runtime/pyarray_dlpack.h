/* DLPack, the exchange of arrays between libraries: the ABI's structures, and what must be C in making and freeing them.
   cffi reads this file as it reads pyarray.h. The structures are those of DLPack 1.1 (https://dmlc.github.io/dlpack). */
#ifndef PYARRAY_CDEF
#pragma once
#include <stdint.h>
#endif

typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL for a C-contiguous tensor */
    uint64_t byte_offset; /* from data to the first element */
} DLTensor;

/* Before version 1: no version, no flags. The consumer calls deleter(self) once, from any thread; NULL: nothing to free. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version; /* another major version: only this field and the next two can be read */
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;        /* 1 read-only, 2 the producer made a copy */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* Capsule names, indexed by versioned + 2 * used. */
extern const char *const pa_dlpack_names[4];

/* A managed tensor that holds a reference to the Python object at address `owner` and has room for ndim sizes and strides;
   everything else of its DLTensor is for the caller to fill in. NULL when there is no memory. It belongs to the one who
   calls its deleter, which may be called without the GIL. */
DLManagedTensor *pa_dlpack_new(uintptr_t owner, int32_t ndim);
DLManagedTensorVersioned *pa_dlpack_new_versioned(uintptr_t owner, int32_t ndim);

/* What a capsule that nobody has consumed holds, as numbers of this thread, valid until its next call: the address of the
   managed tensor, versioned or not, major and minor version (0 without), flags, address of the data, byte offset, device type,
   device, dtype code, bits, lanes, rank, whether strides are given; then the sizes, then the strides in elements. Of another
   major version than 1 only the first four, of a rank outside 0 to PA_DLPACK_NDIM only those before the sizes. NULL: the
   object at that address is no such capsule. The caller holds a reference to it. */
#define PA_DLPACK_NDIM 64
#define PA_DLPACK_FACTS 14
const int64_t *pa_dlpack_read(uintptr_t capsule);

/* Call the deleter, where there is one. */
void pa_dlpack_delete(DLManagedTensor *tensor);
void pa_dlpack_delete_versioned(DLManagedTensorVersioned *tensor);

/* The destructor for PyCapsule_New (`capsule` is its PyObject *): frees the tensor of a capsule that nobody consumed. */
void pa_dlpack_capsule_free(void *capsule);
