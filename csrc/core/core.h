/* The core of arrays for CPython: buffers, arrays, and what a warm call does with them. Everything here runs under the
   GIL; a build without one refuses to be imported (module.c). */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* ---- element types ---------------------------------------------------------------------------------------------- */

/* The codes of pyarray/dtypes.py, in the order of its rows. */
enum pac_code {
    PAC_BOOL, PAC_I8, PAC_I16, PAC_I32, PAC_I64, PAC_U8, PAC_U16, PAC_U32, PAC_U64,
    PAC_F16, PAC_BF16, PAC_F32, PAC_F64, PAC_C64, PAC_C128, PAC_E4M3, PAC_E5M2, PAC_CODES
};

typedef struct pac_dtype {
    PyObject *row;   /* DType of pyarray/dtypes.py */
    PyObject *numpy; /* the dtype that users see */
    PyObject *scalar; /* NumPy's class of its numbers */
    int itemsize;
    char kind; /* b i u f c */
} pac_dtype;

/* Of ml_dtypes: NumPy's own functions and formats don't know them. */
#define PAC_IS_EXTENSION(code) ((code) == PAC_BF16 || (code) == PAC_E4M3 || (code) == PAC_E5M2)

extern pac_dtype pac_dtypes[PAC_CODES];
extern PyObject *pac_asdtype; /* the row that a value names: a function of pyarray/dtypes.py */

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Free blocks of one size class. `returns` is called with (list, address) in place of keeping the block, and `takes`
   with (list) in place of taking one, where they are not None: pools with a limit, devices with several streams.
   `within`: the pool's free lists, or None; while what the pool has reserved is within its limit, blocks are kept
   without asking. */
typedef struct pac_free_list {
    PyObject_HEAD
    uintptr_t *blocks;
    Py_ssize_t count, capacity;
    int64_t size; /* bytes of a block */
    PyObject *pool, *returns, *takes, *within;
    char zeroed; /* blocks that the device has just allocated hold zeros */
} pac_free_list;

/* Memory that arrays share: `Buffer` of pyarray/memory/buffer.py. */
typedef struct pac_buffer {
    PyObject_HEAD
    PyObject *device;
    uintptr_t ptr;
    int64_t nbytes;
    PyObject *owner;        /* NULL: pyarray's own memory */
    PyObject *previous;     /* of an array that grew: its old buffer, else NULL */
    PyObject *before_write; /* called before each write, else NULL */
    PyObject *gradient;     /* the array of gradients of all its elements, else NULL */
    pac_free_list *free_list;
    char zeroed;       /* it held zeros when it was allocated */
    char escaped;      /* its address was given out */
    Py_ssize_t arrays; /* that show it */
    PyObject *weakrefs;
} pac_buffer;

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* Bits of a type key: dtype code, rank, then flags, then the device's code. */
#define PAC_STRIDED ((uint64_t)1 << 16)
#define PAC_READONLY ((uint64_t)1 << 17)
#define PAC_MARKED ((uint64_t)1 << 18)  /* sizes are promised: `marks` says which */
#define PAC_WATCHED ((uint64_t)1 << 19) /* the buffer has a `before_write` */
#define PAC_DEVICE ((uint64_t)0xFFF << 20)
#define PAC_MAX_NDIM 64
#define PAC_INLINE_NDIM 4

typedef struct pac_array {
    PyObject_HEAD
    pac_buffer *buffer;
    uintptr_t ptr; /* the first element */
    PyObject *base; /* the array that this is a view of, never itself a view, or NULL */
    int64_t size;
    uint64_t key; /* dtype, rank, flags, device */
    PyObject *marks; /* the whole key as a Python integer where the array is marked, else NULL */
    int64_t *dims; /* sizes, then strides in bytes: `small` or memory of its own */
    int64_t small[2 * PAC_INLINE_NDIM];
    PyObject *shape, *strides; /* the dims as tuples, made when they are asked for, else NULL */
    PyObject *weakrefs;
} pac_array;

#define PAC_CODE(a) ((int)((a)->key & 0xFF))
#define PAC_NDIM(a) ((int)((a)->key >> 8 & 0xFF))
#define PAC_SHAPE(a) ((a)->dims)
#define PAC_STRIDES(a) ((a)->dims + PAC_NDIM(a))
#define PAC_ITEMSIZE(a) (pac_dtypes[PAC_CODE(a)].itemsize)
#define PAC_KIND(a) (pac_dtypes[PAC_CODE(a)].kind)
#define PAC_ON_CPU(a) (((a)->key & PAC_DEVICE) == 0)

extern PyTypeObject *pac_buffer_type, *pac_free_list_type, *pac_base_type; /* pac_base_type: Array, below ndarray */
extern PyTypeObject *pac_ndarray_type, *pac_view_type;                       /* ndarray and BufferView */

/* Whether an object is exactly an ndarray or a BufferView. */
#define PAC_IS_ARRAY(x) (Py_TYPE(x) == pac_ndarray_type || Py_TYPE(x) == pac_view_type)

/* How often arrays became others in place (`_relayout`). Allocating an object may collect garbage, whose finalizers may
   resize any array: what was read of one before is true of it only if this is the same. Dims that are given to what
   makes an array are copies, none is an array's own. */
extern uint64_t pac_relayouts;

/* A new array of `kind` without memory: its dims are to be filled in, `buffer` and `base` are NULL. NULL with an
   exception. */
pac_array *pac_array_new(PyTypeObject *kind, uint64_t key);

/* Takes over a reference to the buffer. What has another library's memory may be in a cycle with its owner. */
void pac_set_buffer(pac_array *a, pac_buffer *buffer);

/* Attributes (fields.c): -1 with an exception. */
int pac_set_base(PyObject *self, PyObject *value, void *none);
int pac_set_key(PyObject *self, PyObject *value, void *none);

/* Reads a tuple of integers. 0 with an exception where it is none of `count` machine integers. */
int pac_read_numbers(PyObject *tuple, int64_t *numbers, Py_ssize_t count);

/* Whether elements follow each other in C order without gaps; always for 0 or 1 elements. `size` gets their number. */
int pac_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides, int64_t itemsize, int64_t *size);

/* A view of `a`: the dims given, from `offset` bytes on; it inherits flags, but no marks. `code` is its dtype's. A
   contiguous 1-D result is a BufferView if `as_run`. NULL with an exception. */
pac_array *pac_array_view(pac_array *a, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                          int code, int as_run);

/* A fresh, writeable, C-contiguous array on the device with that code. NULL with an exception. */
pac_array *pac_array_fresh(PyTypeObject *kind, int code, int ndim, const int64_t *shape, PyObject *device,
                           uint64_t device_code);

/* A new buffer of a device, contents indeterminate. NULL with an exception. */
pac_buffer *pac_buffer_allocate(PyObject *device, int64_t nbytes);

/* Strides of a fresh array in C order. 0, without an exception: it has more bytes than any memory. */
int pac_fresh_strides(int ndim, const int64_t *shape, int64_t itemsize, int64_t *strides);

/* Memory that belongs to `owner`, kept alive with the buffer. NULL with an exception. */
pac_buffer *pac_buffer_wrap(PyObject *device, uintptr_t ptr, int64_t nbytes, PyObject *owner);

/* Calls `before_write`, where there is one. It may do anything: take itself away, give arrays other memory, come back
   to the caller. What is used after it is to have references, and sizes and addresses are to be known. 0 with an
   exception: nothing may be written. */
int pac_tell_owner(pac_buffer *buffer);

/* An array with this key and these dims in a buffer, of which it takes over a reference. NULL with an exception. */
pac_array *pac_array_on(PyTypeObject *kind, pac_buffer *buffer, uint64_t key, const int64_t *dims, int64_t size,
                        uintptr_t ptr);

/* One element as a Python number, and back. pac_store_element gives 1 if done, 0 if the value needs the general way
   (another type, out of range), -1 with an exception. Halves are not stored. */
PyObject *pac_load_element(const char *at, int code);
int pac_store_element(char *at, int code, PyObject *value);

/* ---- the thread's launch state ---------------------------------------------------------------------------------- */

/* How this thread launches: pyarray/jit/launch_state.py sets it. `debug`: -1 means as the process does. */
typedef struct pac_thread {
    int observed; /* its launches go through an observer of its own */
    int debug;
    int host_access; /* host access since a capture reset it */
} pac_thread;

extern _Thread_local pac_thread pac_this_thread;
extern int pac_process_observers, pac_process_debug;

/* Whether launches are neither checked nor observed: only then a plan may run, and the host may access memory without
   a launch. */
static inline int pac_plain(void) {
    const pac_thread *thread = &pac_this_thread;
    if (pac_process_observers || thread->observed) return 0;
    return !(thread->debug < 0 ? pac_process_debug : thread->debug);
}

/* The first element, for the host to read or write: a capture in progress is told. C accesses the memory of arrays in
   this way alone, but for launches. */
static inline char *pac_host_memory(const pac_array *a) {
    pac_this_thread.host_access = 1;
    return (char *)a->ptr;
}

/* ---- selections on the host (select.c) -------------------------------------------------------------------------- */

/* `a[key]` and `a[key] = value` for masks and index arrays, `nonzero(a)`: done by a loop on the host where all memory
   is the CPU's and that is faster than a launch. Py_NotImplemented (a new reference) or 0: not done, the
   general way is to be taken; nothing was changed. NULL or -1: an exception. They are called only if pac_plain(). */
PyObject *pac_select_get(pac_array *a, PyObject *key);
int pac_select_set(pac_array *a, PyObject *key, PyObject *value);
PyObject *pac_select_nonzero(pac_array *a);

/* ---- elementwise calls (map.c) ---------------------------------------------------------------------------------- */

/* Calls a Map for operands, into `out` where that is not NULL: its result, Py_NotImplemented where nothing was done and
   the general way is to be taken, or NULL with an exception. `broadcasts`: operands may have fewer elements than
   `out`. */
PyObject *pac_map_call(PyObject *map, PyObject *const *operands, int count, PyObject *out, int broadcasts);
extern PyTypeObject *pac_map_type;
extern PyObject *pac_copy_map; /* the Map of assignments */

/* ---- indices (index.c) ------------------------------------------------------------------------------------------ */

/* Whether an object is of Python's or NumPy's own integers, exactly. */
int pac_is_integer(PyObject *item);
