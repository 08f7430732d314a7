/* DLPack, the exchange of arrays between libraries: the ABI's structures, and what must be C in making and freeing
   them. cffi reads this file as it reads pyarray.h. The structures are those of DLPack 1.1
   (https://dmlc.github.io/dlpack). */
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
    uint64_t flags;        /* 1 read-only, 2 the producer made a copy */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#define PA_DLPACK_NDIM 64

/* A Python function (a new reference to a builtin, as an address) that works on capsules: 0 `export`, 1 `read`, 2
   `claim`, which dlpack.c describes. 0: there is no such function, or no memory. Each holds the GIL from its beginning
   to its end. A capsule of `export` holds a reference to its owner until it, or who consumed it, calls the tensor's
   deleter, from any thread. */
uintptr_t pa_dlpack_function(int which);
