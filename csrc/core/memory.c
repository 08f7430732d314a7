/* Buffers and the free lists that their blocks come from. */
#include "core.h"
#include <string.h>
#include <structmember.h>

PyTypeObject *pac_buffer_type, *pac_free_list_type;

/* Number of size classes, as `class_size` of pyarray/memory/pool.py makes them: granules of 64 bytes up to 512, then 8
   in each power of two. */
enum { CLASSES = 8 + 8 * 56 };

/* The free lists of a pool by size class: FreeLists(pool, find), where `find(nbytes)` gives the list of a size. */
typedef struct {
    PyObject_HEAD
    PyObject *pool, *find;
    long long reserved, limit; /* bytes that the pool has from the device, and from which blocks go back to it */
    pac_free_list *lists[CLASSES];
} free_lists;

static PyTypeObject *free_lists_type;

/* ---- free lists ------------------------------------------------------------------------------------------------- */

static int keep_block(pac_free_list *list, uintptr_t ptr) {
    if (list->count == list->capacity) {
        const Py_ssize_t capacity = list->capacity ? 2 * list->capacity : 8;
        uintptr_t *blocks = PyMem_Realloc(list->blocks, (size_t)capacity * sizeof *blocks);
        if (!blocks) {
            PyErr_NoMemory();
            return -1;
        }
        list->blocks = blocks;
        list->capacity = capacity;
    }
    list->blocks[list->count++] = ptr;
    return 0;
}

static int is_kept(const pac_free_list *list) {
    if (list->returns == Py_None) return 1;
    const free_lists *within = (const free_lists *)list->within;
    return Py_IS_TYPE(list->within, free_lists_type) && within->reserved <= within->limit;
}

static int return_block(pac_free_list *list, uintptr_t ptr) {
    if (is_kept(list)) return keep_block(list, ptr);
    PyObject *done = PyObject_CallFunction(list->returns, "OK", list, (unsigned long long)ptr);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static uintptr_t address_of(PyObject *number) { return (uintptr_t)PyLong_AsUnsignedLongLong(number); }

/* The address that a Python function gives; 0 with an exception. */
static uintptr_t block_by(PyObject *function, pac_free_list *list) {
    PyObject *number = PyObject_CallOneArg(function, (PyObject *)list);
    const uintptr_t ptr = number ? address_of(number) : 0;
    Py_XDECREF(number);
    return PyErr_Occurred() ? 0 : ptr;
}

static PyObject *free_list_keep(PyObject *self, PyObject *number) {
    const uintptr_t ptr = address_of(number);
    if (PyErr_Occurred() || keep_block((pac_free_list *)self, ptr) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *free_list_append(PyObject *self, PyObject *number) {
    const uintptr_t ptr = address_of(number);
    if (PyErr_Occurred() || return_block((pac_free_list *)self, ptr) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *free_list_take(PyObject *self, PyObject *Py_UNUSED(none)) {
    pac_free_list *list = (pac_free_list *)self;
    if (!list->count) {
        PyErr_SetString(PyExc_IndexError, "no free block of this size");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(list->blocks[--list->count]);
}

static PyObject *free_list_pop(PyObject *self, PyObject *none) {
    pac_free_list *list = (pac_free_list *)self;
    return list->takes == Py_None || !list->count ? free_list_take(self, none) : PyObject_CallOneArg(list->takes, self);
}

static Py_ssize_t free_list_length(PyObject *self) { return ((pac_free_list *)self)->count; }

static PyObject *free_list_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *pool;
    long long size;
    if (!PyArg_ParseTuple(args, "OL", &pool, &size)) return NULL;
    pac_free_list *list = (pac_free_list *)type->tp_alloc(type, 0);
    if (!list) return NULL;
    list->size = size;
    list->pool = Py_NewRef(pool);
    list->returns = Py_NewRef(Py_None);
    list->takes = Py_NewRef(Py_None);
    list->within = Py_NewRef(Py_None);
    return (PyObject *)list;
}

static int free_list_traverse(PyObject *self, visitproc visit, void *arg) {
    pac_free_list *list = (pac_free_list *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(list->pool);
    Py_VISIT(list->returns);
    Py_VISIT(list->takes);
    Py_VISIT(list->within);
    return 0;
}

static int free_list_clear(PyObject *self) {
    pac_free_list *list = (pac_free_list *)self;
    Py_CLEAR(list->pool);
    Py_XSETREF(list->returns, Py_NewRef(Py_None));
    Py_XSETREF(list->takes, Py_NewRef(Py_None));
    Py_XSETREF(list->within, Py_NewRef(Py_None));
    return 0;
}

static void free_list_dealloc(PyObject *self) {
    pac_free_list *list = (pac_free_list *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(list->pool);
    Py_XDECREF(list->returns);
    Py_XDECREF(list->takes);
    Py_XDECREF(list->within);
    PyMem_Free(list->blocks);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef free_list_methods[] = {
    {"append", free_list_append, METH_O, "Gives a block back: by `returns` where it is not None."},
    {"pop", free_list_pop, METH_NOARGS, "A free block: by `takes` where it is not None. Raises `IndexError`."},
    {"keep", free_list_keep, METH_O, "Adds a block to the list."},
    {"take", free_list_take, METH_NOARGS, "Removes a block from the list. Raises `IndexError`."},
    {0},
};
static PyMemberDef free_list_members[] = {
    {"size", T_LONGLONG, offsetof(pac_free_list, size), READONLY, "Bytes of a block."},
    {"pool", T_OBJECT, offsetof(pac_free_list, pool), READONLY, "The pool."},
    {"returns", T_OBJECT, offsetof(pac_free_list, returns), 0, "Called with (list, address), or None."},
    {"takes", T_OBJECT, offsetof(pac_free_list, takes), 0, "Called with (list), or None."},
    {"within", T_OBJECT, offsetof(pac_free_list, within), 0, "The `FreeLists` within whose limit it isn't, or None."},
    {"zeroed", T_BOOL, offsetof(pac_free_list, zeroed), 0, "Blocks that the device has just allocated hold zeros."},
    {0},
};
static PyType_Slot free_list_slots[] = {
    {Py_tp_new, free_list_new},          {Py_tp_dealloc, free_list_dealloc}, {Py_tp_traverse, free_list_traverse},
    {Py_tp_clear, free_list_clear},      {Py_tp_methods, free_list_methods}, {Py_tp_members, free_list_members},
    {Py_sq_length, free_list_length},
    {Py_tp_doc, "Free blocks of one size class of one pool: FreeList(pool, size)."},
    {0},
};
static PyType_Spec free_list_spec = {"pyarray._core.FreeList", sizeof(pac_free_list), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                                     free_list_slots};

/* ---- size classes ----------------------------------------------------------------------------------------------- */

static int class_of(int64_t nbytes) {
    if (nbytes <= 512) return nbytes <= 64 ? 0 : (int)((nbytes - 1) >> 6);
    const int shift = 60 - __builtin_clzll((unsigned long long)(nbytes - 1));
    return 8 + 8 * (shift - 6) + (int)((nbytes - 1) >> shift) - 8;
}

static PyObject *make_pool, *pool_name; /* function of a device without a pool; "pool" */

static PyObject *free_lists_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *pool, *find;
    if (!PyArg_ParseTuple(args, "OO", &pool, &find)) return NULL;
    free_lists *self = (free_lists *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->pool = Py_NewRef(pool);
    self->find = Py_NewRef(find);
    return (PyObject *)self;
}

static int free_lists_traverse(PyObject *self, visitproc visit, void *arg) {
    free_lists *all = (free_lists *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(all->pool);
    Py_VISIT(all->find);
    for (int k = 0; k < CLASSES; ++k) Py_VISIT(all->lists[k]);
    return 0;
}

static int free_lists_clear(PyObject *self) {
    free_lists *all = (free_lists *)self;
    Py_CLEAR(all->pool);
    Py_CLEAR(all->find);
    for (int k = 0; k < CLASSES; ++k) Py_CLEAR(all->lists[k]);
    return 0;
}

static void free_lists_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    free_lists_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The list that serves `nbytes`, found once for each size class. A borrowed reference, NULL with an exception. */
static pac_free_list *list_for(free_lists *all, int64_t nbytes) {
    const int class = nbytes >= 0 && nbytes <= (int64_t)1 << 56 ? class_of(nbytes) : -1;
    if (class >= 0 && all->lists[class]) return all->lists[class];
    PyObject *list = PyObject_CallFunction(all->find, "L", (long long)nbytes);
    if (list && Py_TYPE(list) != pac_free_list_type) {
        PyErr_Format(PyExc_TypeError, "%lld bytes have no free list: %R", (long long)nbytes, list);
        Py_CLEAR(list);
    }
    if (list && class >= 0) Py_XSETREF(all->lists[class], (pac_free_list *)list);
    else Py_XDECREF(list); /* the pool has a reference */
    return (pac_free_list *)list;
}

static PyObject *free_lists_subscript(PyObject *self, PyObject *number) {
    const long long nbytes = PyLong_AsLongLong(number);
    return nbytes == -1 && PyErr_Occurred() ? NULL : Py_XNewRef(list_for((free_lists *)self, nbytes));
}

static PyMemberDef free_lists_members[] = {
    {"pool", T_OBJECT, offsetof(free_lists, pool), READONLY, "The pool."},
    {"reserved", T_LONGLONG, offsetof(free_lists, reserved), 0, "Bytes that the pool has from the device."},
    {"limit", T_LONGLONG, offsetof(free_lists, limit), 0, "Bytes from which blocks go back to the device."},
    {0},
};
static PyType_Slot free_lists_slots[] = {
    {Py_tp_new, free_lists_new},         {Py_tp_dealloc, free_lists_dealloc}, {Py_tp_traverse, free_lists_traverse},
    {Py_tp_clear, free_lists_clear},     {Py_tp_members, free_lists_members}, {Py_mp_subscript, free_lists_subscript},
    {Py_tp_doc, "Number of bytes -> free list of a pool: FreeLists(pool, find)."},
    {0},
};
static PyType_Spec free_lists_spec = {"pyarray._core.FreeLists", sizeof(free_lists), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                                      free_lists_slots};

/* register_pools(function): `function(device)` gives a device its pool, at its first allocation. */
PyObject *pac_register_pools(PyObject *Py_UNUSED(module), PyObject *function) {
    Py_XSETREF(make_pool, Py_NewRef(function));
    Py_RETURN_NONE;
}

static pac_free_list *free_list_for(PyObject *device, int64_t nbytes) {
    PyObject *lists = PyObject_GetAttr(device, pool_name);
    if (!lists) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
        PyErr_Clear();
        PyObject *pool = PyObject_CallOneArg(make_pool, device);
        if (!pool) return NULL;
        Py_DECREF(pool);
        if (!(lists = PyObject_GetAttr(device, pool_name))) return NULL;
    }
    if (Py_TYPE(lists) != free_lists_type) {
        PyErr_Format(PyExc_TypeError, "the pool of %S is no FreeLists: %R", device, lists);
        Py_DECREF(lists);
        return NULL;
    }
    pac_free_list *list = list_for((free_lists *)lists, nbytes);
    Py_DECREF(lists); /* the device has a reference */
    return list;
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static pac_buffer *new_buffer(PyObject *device, uintptr_t ptr, int64_t nbytes, PyObject *owner, pac_free_list *list) {
    pac_buffer *buffer = PyObject_GC_New(pac_buffer, pac_buffer_type);
    if (!buffer) return NULL;
    buffer->device = Py_NewRef(device);
    buffer->ptr = ptr;
    buffer->nbytes = nbytes;
    buffer->owner = Py_XNewRef(owner);
    buffer->previous = buffer->before_write = buffer->gradient = NULL;
    buffer->free_list = list;
    Py_XINCREF(list);
    buffer->zeroed = buffer->escaped = 0;
    buffer->arrays = 0;
    buffer->weakrefs = NULL;
    /* only what refers to other libraries' objects can be in a cycle */
    if (owner) PyObject_GC_Track(buffer);
    return buffer;
}

pac_buffer *pac_buffer_allocate(PyObject *device, int64_t nbytes) {
    pac_free_list *list = free_list_for(device, nbytes);
    if (!list) return NULL;
    uintptr_t ptr;
    const int is_new = !list->count;
    if (list->count && list->takes == Py_None)
        ptr = list->blocks[--list->count];
    else if (list->count)
        ptr = block_by(list->takes, list);
    else {
        PyObject *number = PyObject_CallMethod(list->pool, "allocate", "O", list);
        ptr = number ? address_of(number) : 0;
        Py_XDECREF(number);
    }
    if (!ptr && PyErr_Occurred()) return NULL;
    pac_buffer *buffer = new_buffer(device, ptr, nbytes, NULL, list);
    if (!buffer && keep_block(list, ptr) < 0) PyErr_NoMemory();
    if (buffer) buffer->zeroed = is_new && list->zeroed;
    return buffer;
}

pac_buffer *pac_buffer_wrap(PyObject *device, uintptr_t ptr, int64_t nbytes, PyObject *owner) {
    return new_buffer(device, ptr, nbytes, owner, NULL);
}

static PyObject *buffer_allocate(PyObject *Py_UNUSED(none), PyObject *const *args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "allocate() takes a device and a number of bytes, got %zd arguments", count);
        return NULL;
    }
    PyObject *number = PyNumber_Index(args[1]);
    if (!number) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "a size is an integer number of bytes, not %s", Py_TYPE(args[1])->tp_name);
        return NULL;
    }
    int overflow;
    long long nbytes = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow) nbytes = overflow < 0 ? -1 : INT64_MAX; /* the pool refuses both */
    return PyErr_Occurred() ? NULL : (PyObject *)pac_buffer_allocate(args[0], nbytes);
}

static PyObject *buffer_wrap(PyObject *Py_UNUSED(none), PyObject *args) {
    PyObject *device, *owner;
    long long ptr, nbytes;
    if (!PyArg_ParseTuple(args, "OLLO", &device, &ptr, &nbytes, &owner)) return NULL;
    if (nbytes < 0 || ptr < 0 || (ptr == 0 && nbytes)) {
        PyErr_Format(PyExc_ValueError, "no such memory: %lld bytes at address %lld", nbytes, ptr);
        return NULL;
    }
    return (PyObject *)new_buffer(device, (uintptr_t)ptr, nbytes, owner == Py_None ? NULL : owner, NULL);
}

int pac_tell_owner(pac_buffer *buffer) {
    if (!buffer->before_write) return 1;
    PyObject *function = Py_NewRef(buffer->before_write), *done = PyObject_CallNoArgs(function);
    Py_DECREF(function);
    Py_XDECREF(done);
    return done != NULL;
}

static int buffer_traverse(PyObject *self, visitproc visit, void *arg) {
    pac_buffer *buffer = (pac_buffer *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(buffer->device);
    Py_VISIT(buffer->owner);
    Py_VISIT(buffer->previous);
    Py_VISIT(buffer->before_write);
    Py_VISIT(buffer->gradient);
    return 0;
}

static int buffer_clear(PyObject *self) {
    pac_buffer *buffer = (pac_buffer *)self;
    Py_CLEAR(buffer->owner);
    Py_CLEAR(buffer->previous);
    Py_CLEAR(buffer->before_write);
    Py_CLEAR(buffer->gradient);
    return 0;
}

static int is_finalizing(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Gives the block of a buffer back. What Python functions of the pool raise can't reach anyone here; but an interrupt
   that comes in them is for the program. Then the block may be in the list or not, and is not given back again. */
static void return_last(pac_free_list *list, uintptr_t ptr) {
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    if (return_block(list, ptr) < 0) {
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
            PyErr_Clear();
            PyErr_SetInterrupt();
        } else
            PyErr_WriteUnraisable((PyObject *)list);
    }
    PyErr_Restore(kind, value, traceback);
}

static void buffer_dealloc(PyObject *self) {
    pac_buffer *buffer = (pac_buffer *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (buffer->weakrefs) PyObject_ClearWeakRefs(self);
    pac_free_list *list = buffer->free_list;
    if (list && is_kept(list) && list->count < list->capacity)
        list->blocks[list->count++] = buffer->ptr;
    else if (list && (is_kept(list) || !is_finalizing())) /* at its end a process gives all back by itself */
        return_last(list, buffer->ptr);
    Py_XDECREF(list);
    Py_XDECREF(buffer->device);
    Py_XDECREF(buffer->owner);
    Py_XDECREF(buffer->previous);
    Py_XDECREF(buffer->before_write);
    Py_XDECREF(buffer->gradient);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *buffer_repr(PyObject *self) {
    pac_buffer *buffer = (pac_buffer *)self;
    const char *owner = buffer->owner ? Py_TYPE(buffer->owner)->tp_name : "";
    return PyUnicode_FromFormat("Buffer(%S, %lld bytes at %p%s%s)", buffer->device, (long long)buffer->nbytes,
                                (void *)buffer->ptr, buffer->owner ? ", owner=" : "", owner);
}

static PyMethodDef buffer_methods[] = {
    {"allocate", (PyCFunction)(void (*)(void))buffer_allocate, METH_FASTCALL | METH_STATIC,
     "allocate(device, nbytes)\n--\n\n"
     "A new block; its contents are indeterminate. Size 0 gives a valid address, too.\n\n"
     "Raises `ValueError` for a negative size, `TypeError` for what is no integer, and `OutOfMemoryError`.\n\n"
     ">>> from pyarray.driver.base import get_device\n"
     ">>> Buffer.allocate(get_device(\"cpu\"), 1024).nbytes\n1024\n"},
    {"wrap", buffer_wrap, METH_VARARGS | METH_STATIC,
     "wrap(device, ptr, nbytes, owner)\n--\n\n"
     "Memory that belongs to `owner`, kept alive with the buffer. `ptr` may be 0 if `nbytes` is 0."},
    {0},
};
static PyMemberDef buffer_members[] = {
    {"device", T_OBJECT_EX, offsetof(pac_buffer, device), READONLY, "Where the memory is."},
    {"ptr", T_ULONGLONG, offsetof(pac_buffer, ptr), READONLY, "Address of the first byte."},
    {"nbytes", T_LONGLONG, offsetof(pac_buffer, nbytes), READONLY, "Size in bytes."},
    {"arrays", T_PYSSIZET, offsetof(pac_buffer, arrays), READONLY, "How many arrays show the memory."},
    {"owner", T_OBJECT, offsetof(pac_buffer, owner), READONLY, "Whose memory it is; None: pyarray's own."},
    {"escaped", T_BOOL, offsetof(pac_buffer, escaped), 0,
     "Its address was given out, as `__array_interface__` does: users of that neither keep the buffer alive nor say "
     "when they are done."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pac_buffer, weakrefs), READONLY, NULL},
    {0},
};

static PyObject *get_object(PyObject *self, void *offset) {
    PyObject *value = *(PyObject **)((char *)self + (size_t)offset);
    return Py_NewRef(value ? value : Py_None);
}

static int set_object(PyObject *self, PyObject *value, void *offset) {
    PyObject **field = (PyObject **)((char *)self + (size_t)offset);
    Py_XSETREF(*field, value == Py_None ? NULL : Py_XNewRef(value));
    if (value && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return 0;
}

static PyGetSetDef buffer_fields[] = {
    {"previous", get_object, set_object, "Of an array that grew: its old buffer, which launches may still use.",
     (void *)offsetof(pac_buffer, previous)},
    {"before_write", get_object, set_object, "Called before each write, where the owner wants to know of writes.",
     (void *)offsetof(pac_buffer, before_write)},
    {"gradient", get_object, set_object, "A 1-D array: the gradients of all elements, which views share.",
     (void *)offsetof(pac_buffer, gradient)},
    {0},
};
static PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, buffer_dealloc}, {Py_tp_traverse, buffer_traverse}, {Py_tp_clear, buffer_clear},
    {Py_tp_repr, buffer_repr},       {Py_tp_methods, buffer_methods},   {Py_tp_members, buffer_members},
    {Py_tp_getset, buffer_fields},
    {Py_tp_doc, "`nbytes` of memory of `device` at address `ptr`, which is never 0 for pyarray's own memory.\n\n"
                "Buffers come from `allocate` and `wrap`. The last array that shares one returns it to its pool."},
    {0},
};
static PyType_Spec buffer_spec = {"pyarray._core.Buffer", sizeof(pac_buffer), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                      Py_TPFLAGS_IMMUTABLETYPE,
                                  buffer_slots};

int pac_add_memory_types(PyObject *module) {
    pac_free_list_type = (PyTypeObject *)PyType_FromSpec(&free_list_spec);
    pac_buffer_type = (PyTypeObject *)PyType_FromSpec(&buffer_spec);
    free_lists_type = (PyTypeObject *)PyType_FromSpec(&free_lists_spec);
    pool_name = PyUnicode_InternFromString("pool");
    if (!pac_free_list_type || !pac_buffer_type || !free_lists_type || !pool_name) return -1;
    if (PyModule_AddType(module, pac_free_list_type) < 0 || PyModule_AddType(module, free_lists_type) < 0) return -1;
    return PyModule_AddType(module, pac_buffer_type);
}
