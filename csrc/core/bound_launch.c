/* BoundLaunch: a launch whose arrays have known shapes and strides. It is called with addresses and numbers. */
#include "plan.h"
#include <string.h>
#include <structmember.h>

enum { ADDRESS = -1, SMALL = 96 /* slots on the C stack */ };

/* Where an argument goes: an address, `offset` bytes on, or a number of the dtype with that code. */
typedef struct {
    int slot, code;
    int64_t offset;
} bound_argument;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    pac_launch launch;
    PyObject *pack; /* (code, number) -> bytes: of numbers that C doesn't pack, or an error */
    int64_t size;
    int slots, arguments;
    int64_t *slot; /* what is known */
    bound_argument *argument;
} bound_launch;

PyTypeObject *pac_bound_launch_type;

Py_ssize_t pac_bound_slots(PyObject *bound) { return ((bound_launch *)bound)->slots; }

void pac_bound_copy(PyObject *bound, int64_t *slots) {
    const bound_launch *b = (bound_launch *)bound;
    memcpy(slots, b->slot, (size_t)b->slots * sizeof *slots);
}

int pac_bound_run(PyObject *bound, const int64_t *slots, int64_t size) {
    const bound_launch *b = (bound_launch *)bound;
    return pac_launch_run(&b->launch, slots, b->slots, size < 0 ? b->size : size);
}

/* ---- calls from Python ------------------------------------------------------------------------------------------ */

static int is_number(PyObject *x) {
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x) || PyComplex_CheckExact(x);
}

/* 0 with an exception. */
static int pack_number(const bound_launch *b, PyObject *x, int code, int64_t *slots) {
    if (is_number(x) && pac_pack_number(x, code, slots)) return 1;
    PyObject *bytes = PyObject_CallFunction(b->pack, "iO", code, x);
    const Py_ssize_t wanted = pac_dtypes[code].kind == 'c' ? 2 * sizeof *slots : sizeof *slots;
    if (bytes && (!PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) != wanted)) {
        PyErr_Format(PyExc_TypeError, "a number is packed into %zd bytes, got %R", wanted, bytes);
        Py_CLEAR(bytes);
    }
    if (bytes) memcpy(slots, PyBytes_AS_STRING(bytes), (size_t)wanted);
    Py_XDECREF(bytes);
    return bytes != NULL;
}

/* The address that an array or an integer gives. 0 with an exception. */
static int read_address(PyObject *x, int64_t *slot) {
    if (PyObject_TypeCheck(x, pac_base_type)) {
        *slot = (int64_t)((pac_array *)x)->ptr;
        return 1;
    }
    const unsigned long long address = PyLong_AsUnsignedLongLong(x);
    *slot = (int64_t)address;
    return !(address == (unsigned long long)-1 && PyErr_Occurred());
}

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
    bound_launch *b = (bound_launch *)self;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count != b->arguments || (names && PyTuple_GET_SIZE(names))) {
        PyErr_Format(PyExc_TypeError, "this launch takes %d addresses and numbers by position, got %zd", b->arguments,
                     count + (names ? PyTuple_GET_SIZE(names) : 0));
        return NULL;
    }
    int64_t small[SMALL], *slots = b->slots <= SMALL ? small : PyMem_Malloc((size_t)b->slots * sizeof *slots);
    if (!slots) return PyErr_NoMemory();
    pac_bound_copy(self, slots);
    int done = 1;
    for (int k = 0; k < b->arguments && done; ++k) {
        const bound_argument *a = &b->argument[k];
        if (a->code != ADDRESS) done = pack_number(b, args[k], a->code, &slots[a->slot]);
        else if ((done = read_address(args[k], &slots[a->slot]))) slots[a->slot] += a->offset;
    }
    done = done && pac_launch_run(&b->launch, slots, b->slots, b->size);
    if (slots != small) PyMem_Free(slots);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

/* 0 with an exception. */
static int read_arguments(bound_launch *b, PyObject *arguments) {
    b->arguments = (int)PyTuple_GET_SIZE(arguments);
    b->argument = PyMem_Calloc((size_t)b->arguments + 1, sizeof *b->argument);
    if (!b->argument) return PyErr_NoMemory() != NULL;
    for (int k = 0; k < b->arguments; ++k) {
        bound_argument *a = &b->argument[k];
        long long offset;
        PyObject *item = PyTuple_GET_ITEM(arguments, k);
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iiL", &a->slot, &a->code, &offset)) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "expected (slot, code or -1, offset), got %R", item);
            return 0;
        }
        a->offset = offset;
        const int used = a->code >= 0 && a->code < PAC_CODES && pac_dtypes[a->code].kind == 'c' ? 2 : 1;
        if (a->slot < 0 || a->slot > b->slots - used || a->code < ADDRESS || a->code >= PAC_CODES) {
            PyErr_Format(PyExc_ValueError, "argument %d: no slot %d of %d, or no dtype %d", k, a->slot, b->slots,
                         a->code);
            return 0;
        }
    }
    return 1;
}

/* BoundLaunch(launch, slots, arguments, size, pack) */
static PyObject *bound_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *described, *arguments, *pack;
    const char *slots;
    Py_ssize_t nbytes;
    long long size;
    if (!PyArg_ParseTuple(args, "Oy#O!LO", &described, &slots, &nbytes, &PyTuple_Type, &arguments, &size, &pack))
        return NULL;
    bound_launch *b = (bound_launch *)type->tp_alloc(type, 0);
    if (!b) return NULL;
    b->call = bound_call;
    b->size = size;
    b->slots = (int)(nbytes / (Py_ssize_t)sizeof *b->slot);
    b->pack = Py_NewRef(pack);
    b->slot = PyMem_Malloc((size_t)nbytes + sizeof *b->slot);
    if (!b->slot) PyErr_NoMemory();
    else memcpy(b->slot, slots, (size_t)b->slots * sizeof *b->slot);
    if (!b->slot || !read_arguments(b, arguments) || !pac_launch_read(described, &b->launch)) Py_CLEAR(b);
    return (PyObject *)b;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg) {
    bound_launch *b = (bound_launch *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(b->pack);
    PAC_LAUNCH_VISIT(b->launch);
    return 0;
}

/* Not part of a cycle's clearing: a launch that is running needs all of it, and what it refers to has no other way
   back than by functions, which are cleared. */
static void bound_dealloc(PyObject *self) {
    bound_launch *b = (bound_launch *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    pac_launch_clear(&b->launch);
    Py_XDECREF(b->pack);
    PyMem_Free(b->slot);
    PyMem_Free(b->argument);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(bound_launch, call), READONLY, NULL},
    {0},
};
static PyType_Slot bound_slots[] = {
    {Py_tp_new, bound_new},         {Py_tp_dealloc, bound_dealloc},    {Py_tp_traverse, bound_traverse},
    {Py_tp_members, bound_members}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_doc, "A launch for arrays of known shapes and strides, called with addresses (or arrays) and numbers: "
                "BoundLaunch(launch, slots, arguments, size, pack)."},
    {0},
};
static PyType_Spec bound_spec = {"pyarray._core.BoundLaunch", sizeof(bound_launch), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                     Py_TPFLAGS_HAVE_VECTORCALL,
                                 bound_slots};

int pac_add_bound_launch_type(PyObject *module) {
    pac_bound_launch_type = (PyTypeObject *)PyType_FromSpec(&bound_spec);
    return pac_bound_launch_type ? PyModule_AddType(module, pac_bound_launch_type) : -1;
}
