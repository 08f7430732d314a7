/* Arrays of other libraries, read without an array of ours: NumPy's, torch's tensors, and what has DLPack's table of C
   functions. */
#pragma once
#include "core.h"

struct DLManagedTensorVersioned;
enum { PAC_FOREIGN_NDIM = 8 }; /* axes that a view has room for; arrays of more are for the general way */

/* An array as a launch sees it. It is valid until pac_foreign_release, while the object lives. */
typedef struct pac_foreign {
    uintptr_t ptr; /* the first element; 0 for no elements */
    uint64_t key;  /* dtype, rank, flags, device: as an array on this memory has them */
    int ndim;
    int64_t size;
    int64_t low, nbytes; /* from the first element to the lowest byte, not above 0, and from there to the end */
    int64_t *dims;       /* sizes, then strides in bytes, which are anything for fewer than two elements */
    int most;            /* axes that there is room for at `dims` */
    PyObject *device;         /* borrowed */
    PyObject *object;         /* whose memory it is, borrowed */
    const struct pac_producer *producer;      /* NULL: NumPy */
    struct DLManagedTensorVersioned *managed; /* to be given back, or NULL */
    int64_t small[2 * PAC_FOREIGN_NDIM];
} pac_foreign;

/* Reads an array of another library. 1: done, and pac_foreign_release is due; 0: it is none, or the general way is to
   be taken, nothing is changed and no exception is set; -1: an exception of Python code that was asked, as an
   interrupt. An array whose key has PAC_WATCHED is to be given to pac_foreign_before_write before it is written. */
int pac_foreign_read(PyObject *x, pac_foreign *view);
void pac_foreign_release(pac_foreign *view);

/* Counts arrays that a launch uses in place. */
void pac_foreign_used(int count);

/* Tells the owner that the memory is written: autograd, of a tensor. -1 with an exception. */
int pac_foreign_before_write(const pac_foreign *view);

/* An array of ours on the memory of another library's: what the general way gives. Py_None where that is to be taken.
   NULL with an exception. */
PyObject *pac_foreign_array(PyObject *x);

/* Whether arrays that no array of ours goes with are the CPU's: it is the default device. 0 also where that isn't known
   without a general question; -1 with an exception. */
int pac_default_is_host(void);

/* Fills in what follows from a view's address, rank, sizes and strides. 0: no array is like this. */
int pac_foreign_complete(pac_foreign *view, int code, int readonly, uint64_t device_code);

/* Whether elements are aligned, as NumPy has it: complex numbers as their parts are. */
static inline int pac_foreign_aligned(const pac_foreign *view) {
    const pac_dtype *dtype = &pac_dtypes[view->key & 0xFF];
    return !view->size || view->ptr % (uintptr_t)(dtype->kind == 'c' ? dtype->itemsize / 2 : dtype->itemsize) == 0;
}
