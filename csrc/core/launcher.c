/* Launcher: packs the live arguments of a variant into slots, and launches. */
#include "launcher.h"
#include <string.h>
#include <structmember.h>

/* A parameter that has slots. */
typedef struct {
    int argument;              /* its number among the arguments */
    int code;                  /* dtype code of a number; -1: an array */
    int ndim, strided, writes; /* of an array */
    int64_t *sizes;            /* that are compiled in, by axis, -1 for others; NULL: none */
} field_type;

struct pac_launcher {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    pac_launch launch;
    int arguments, fields, slots, offsets; /* offsets: arrays have one, in debug mode */
    field_type *field;
    int64_t *extents; /* a program for pac_extents_may_overflow */
    Py_ssize_t extents_count;
    PyObject *check_extents; /* called with the arguments where a product may overflow */
    PyObject *sites;         /* accesses that a failure record names */
};

PyTypeObject *pac_launcher_type;
enum { FEW_SLOTS = 64, FEW_ARGUMENTS = 16 };

/* ---- packing ---------------------------------------------------------------------------------------------------- */

static int slots_of(const pac_launcher *self, const field_type *field) {
    if (field->code >= 0) return pac_dtypes[field->code].kind == 'c' ? 2 : 1;
    return 1 + self->offsets + field->ndim * (1 + field->strided);
}

static int pack_numbers(const pac_launcher *self, PyObject *const *leaves, int64_t *slots) {
    for (int k = 0; k < self->fields; ++k) {
        const field_type *field = &self->field[k];
        if (field->code >= 0 && !pac_pack_argument(leaves[field->argument], field->code, slots)) return 0;
        slots += slots_of(self, field);
    }
    return 1;
}

/* Elements between the base's first one and the array's, for reports: rounded down. */
static int64_t offset_of(const pac_operand *operand) {
    const pac_array *a = operand->array;
    if (!a || !a->base) return 0;
    const int64_t bytes = (int64_t)(a->ptr - ((pac_array *)a->base)->ptr), itemsize = PAC_ITEMSIZE(a);
    return bytes / itemsize - (bytes % itemsize < 0);
}

/* Whether an array has the sizes that are compiled in; 0 with an exception. */
static int has_sizes(const field_type *field, const pac_operand *operand, int is_run) {
    for (int axis = 0; field->sizes && axis < field->ndim; ++axis) {
        const int64_t size = is_run ? operand->size : operand->shape[axis];
        const int64_t expected = field->sizes[axis];
        if (expected < 0 || expected == size) continue;
        const char *what = "argument %d has %lld elements along axis %d, and the kernel is compiled for %lld";
        PyErr_Format(PyExc_TypeError, what, field->argument, (long long)size, axis, (long long)expected);
        return 0;
    }
    return 1;
}

/* No Python code runs here, so that an array is packed as it is at one moment, whatever other threads do to it. */
static int pack_arrays(const pac_launcher *self, pac_operand *operands, int64_t *slots) {
    for (int k = 0; k < self->fields; ++k) {
        const field_type *field = &self->field[k];
        if (field->code >= 0) {
            slots += slots_of(self, field);
            continue;
        }
        pac_operand *operand = &operands[field->argument];
        const uint64_t key = operand->shape ? operand->key : 0;
        if (operand->shape && operand->array) pac_operand_read((PyObject *)operand->array, operand);
        const int is_run = field->ndim == 1 && !field->strided; /* then an array of any rank is one */
        if (!operand->shape || operand->key != key || (!is_run && (int)(key >> 8 & 0xFF) != field->ndim)) {
            PyErr_Format(PyExc_TypeError, "expected an array of rank %d as argument %d", field->ndim, field->argument);
            return 0;
        }
        if (!has_sizes(field, operand, is_run)) return 0;
        *slots++ = (int64_t)operand->ptr;
        if (self->offsets) *slots++ = offset_of(operand);
        if (is_run) *slots++ = operand->size;
        for (int axis = 0; axis < field->ndim && !is_run; ++axis) *slots++ = operand->shape[axis];
        for (int axis = 0; axis < field->ndim && field->strided; ++axis) *slots++ = operand->strides[axis];
    }
    return 1;
}

/* Tells owners of memory that it is to be written. */
static int call_before_write(const pac_launcher *self, const pac_operand *operands) {
    for (int k = 0; k < self->fields; ++k) {
        const pac_operand *operand = &operands[self->field[k].argument];
        if (!self->field[k].writes || !operand->shape || !(operand->key & PAC_WATCHED)) continue;
        if (operand->foreign && pac_foreign_before_write(operand->foreign) < 0) return 0;
        if (operand->array && !pac_tell_owner(operand->array->buffer)) return 0;
    }
    return 1;
}

static int check_extents(const pac_launcher *self, PyObject *const *leaves, pac_operand *operands, int64_t *slots) {
    if (!pac_extents_may_overflow(self->extents, self->extents_count, slots)) return 1;
    for (int k = 0; k < self->arguments; ++k) {
        if (!operands[k].foreign) continue;
        PyErr_SetString(PyExc_TypeError, "iterations are counted by arrays of ours"); /* the general way has these */
        return 0;
    }
    PyObject *done = PyObject_Vectorcall(self->check_extents, leaves, (size_t)self->arguments, NULL);
    Py_XDECREF(done);
    return done && pack_arrays(self, operands, slots);
}

PyObject *pac_launcher_run(pac_launcher *self, PyObject *const *leaves, pac_operand *operands) {
    int64_t few[FEW_SLOTS], *slots = few;
    if (self->slots > FEW_SLOTS && !(slots = PyMem_Malloc((size_t)self->slots * sizeof *slots)))
        return PyErr_NoMemory();
    PyObject *result = NULL;
    if (pack_numbers(self, leaves, slots) && call_before_write(self, operands) && pack_arrays(self, operands, slots) &&
        check_extents(self, leaves, operands, slots))
        result = pac_launch_result(&self->launch, slots, self->slots, INT64_MAX);
    if (slots != few) PyMem_Free(slots);
    return result;
}

/* launcher(*arguments) */
static PyObject *call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
    pac_launcher *self = (pac_launcher *)object;
    if (PyVectorcall_NARGS(flags) != self->arguments || (names && PyTuple_GET_SIZE(names))) {
        PyErr_Format(PyExc_TypeError, "expected %d arguments by position, got %zd", self->arguments,
                     PyVectorcall_NARGS(flags));
        return NULL;
    }
    pac_operand few[FEW_ARGUMENTS], *operands = few;
    if (self->arguments > FEW_ARGUMENTS && !(operands = PyMem_Malloc((size_t)self->arguments * sizeof *operands)))
        return PyErr_NoMemory();
    for (int k = 0; k < self->arguments; ++k) operands[k] = (pac_operand){0};
    int are_read = 1;
    for (int k = 0; k < self->fields && are_read; ++k) {
        const int number = self->field[k].argument;
        if (self->field[k].code >= 0 || pac_operand_read(args[number], &operands[number])) continue;
        const char *class = Py_TYPE(args[number])->tp_name;
        PyErr_Format(PyExc_TypeError, "expected an array as argument %d, got %s", number, class);
        are_read = 0;
    }
    PyObject *result = are_read ? pac_launcher_run(self, args, operands) : NULL;
    if (operands != few) PyMem_Free(operands);
    return result;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

static int read_sizes(field_type *field, PyObject *sizes) {
    if (PyTuple_GET_SIZE(sizes) != field->ndim) {
        PyErr_Format(PyExc_ValueError, "expected %d sizes, got %R", field->ndim, sizes);
        return 0;
    }
    field->sizes = PyMem_Calloc((size_t)field->ndim + 1, sizeof *field->sizes);
    if (!field->sizes) return PyErr_NoMemory() != NULL;
    for (int axis = 0; axis < field->ndim; ++axis)
        field->sizes[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, axis));
    return !PyErr_Occurred();
}

static int read_fields(pac_launcher *self, PyObject *rows) {
    self->fields = (int)PyTuple_GET_SIZE(rows);
    self->field = PyMem_Calloc((size_t)self->fields + 1, sizeof *self->field);
    if (!self->field) return PyErr_NoMemory() != NULL;
    for (int k = 0; k < self->fields; ++k) {
        field_type *field = &self->field[k];
        PyObject *sizes = NULL;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, k), "iiipp|O!", &field->argument, &field->code, &field->ndim,
                              &field->strided, &field->writes, &PyTuple_Type, &sizes))
            return 0;
        if (field->argument < 0 || field->argument >= self->arguments || field->code >= PAC_CODES || field->ndim < 0 ||
            field->ndim > PAC_MAX_NDIM) {
            PyErr_Format(PyExc_ValueError, "field %d is none of a launch with %d arguments", k, self->arguments);
            return 0;
        }
        if (sizes && !read_sizes(field, sizes)) return 0;
        self->slots += slots_of(self, field);
    }
    return 1;
}

static int read_extents(pac_launcher *self, PyObject *program) {
    self->extents_count = PyTuple_GET_SIZE(program);
    self->extents = PyMem_Calloc((size_t)self->extents_count + 1, sizeof *self->extents);
    if (!self->extents) return PyErr_NoMemory() != NULL;
    for (Py_ssize_t k = 0; k < self->extents_count; ++k) {
        self->extents[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(program, k));
        if (self->extents[k] == -1 && PyErr_Occurred()) return 0;
    }
    return 1;
}

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *described, *fields, *program, *check;
    int arguments, offsets;
    if (!PyArg_ParseTuple(args, "OiO!pO!O", &described, &arguments, &PyTuple_Type, &fields, &offsets, &PyTuple_Type,
                          &program, &check))
        return NULL;
    pac_launcher *self = (pac_launcher *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = call;
    self->arguments = arguments;
    self->offsets = offsets;
    self->check_extents = Py_NewRef(check);
    self->sites = PyTuple_New(0);
    if (!self->sites || !pac_launch_read(described, &self->launch) || !read_fields(self, fields) ||
        !read_extents(self, program))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int launcher_traverse(PyObject *object, visitproc visit, void *arg) {
    pac_launcher *self = (pac_launcher *)object;
    Py_VISIT(Py_TYPE(object));
    PAC_LAUNCH_VISIT(self->launch);
    Py_VISIT(self->check_extents);
    Py_VISIT(self->sites);
    return 0;
}

static int launcher_clear(PyObject *object) {
    pac_launcher *self = (pac_launcher *)object;
    pac_launch_clear(&self->launch);
    Py_CLEAR(self->check_extents);
    Py_CLEAR(self->sites);
    return 0;
}

static void launcher_dealloc(PyObject *object) {
    pac_launcher *self = (pac_launcher *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    launcher_clear(object);
    for (int k = 0; self->field && k < self->fields; ++k) PyMem_Free(self->field[k].sizes);
    PyMem_Free(self->field);
    PyMem_Free(self->extents);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef launcher_members[] = {
    {"sites", T_OBJECT, offsetof(pac_launcher, sites), 0, "The accesses that a failure record names by number."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(pac_launcher, vectorcall), READONLY, NULL},
    {0},
};
static PyType_Slot launcher_slots[] = {
    {Py_tp_new, launcher_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, launcher_dealloc},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_clear, launcher_clear},
    {Py_tp_members, launcher_members},
    {Py_tp_doc, "Packs the arguments of a variant and launches: Launcher(launch, arguments, fields, offsets, extents, "
                "check_extents)."},
    {0},
};
static PyType_Spec launcher_spec = {
    "pyarray._core.Launcher", sizeof(pac_launcher), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, launcher_slots,
};

int pac_add_launcher_type(PyObject *module) {
    pac_launcher_type = (PyTypeObject *)PyType_FromSpec(&launcher_spec);
    return pac_launcher_type ? PyModule_AddType(module, pac_launcher_type) : -1;
}
