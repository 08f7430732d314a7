/* Dispatcher: below kernels. A call finds the launcher of its variant by the types of the arguments, and launches; what
   it doesn't find or can't pack is for methods of the class above. */
#include "launcher.h"
#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *names;    /* of the parameters, those by position first; NULL before the first call */
    PyObject *defaults; /* one for each parameter, NotImplemented where there is none */
    int count, positional;
    int debug; /* bounds checks, -1: as the thread has them */
    PyObject *captures; /* tuple of (owner, name, value) */
    PyObject *treedefs; /* tuple, that of the newest structure first */
    pac_variant_table *table;
} dispatcher_type;

static PyTypeObject *dispatcher_base;
enum { FEW = 16, FEW_WORDS = 64 };

/* ---- what the class above does ---------------------------------------------------------------------------------- */

static PyObject *method_prepare, *method_miss, *method_refused, *method_report, *method_wrong;

static PyObject *call_with_arguments(PyObject *self, PyObject *method, PyObject *const *values, int count) {
    PyObject *arguments = PyTuple_New(count);
    if (!arguments) return NULL;
    for (int k = 0; k < count; ++k) PyTuple_SET_ITEM(arguments, k, Py_NewRef(values[k]));
    PyObject *result = PyObject_CallMethodOneArg(self, method, arguments);
    Py_DECREF(arguments);
    return result;
}

/* Raises the error of a call that doesn't fit the signature. */
static PyObject *refuse_call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *positional = PyTuple_New(count), *keywords = PyDict_New(), *result = NULL;
    for (Py_ssize_t k = 0; positional && k < count; ++k) PyTuple_SET_ITEM(positional, k, Py_NewRef(args[k]));
    int made = positional && keywords;
    for (Py_ssize_t k = 0; made && names && k < PyTuple_GET_SIZE(names); ++k)
        made = !PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, k), args[count + k]);
    if (made) result = PyObject_CallMethodObjArgs(self, method_wrong, positional, keywords, NULL);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

/* ---- binding ---------------------------------------------------------------------------------------------------- */

/* The parameter's number; -1: there is none of that name. Names are mostly the same objects. */
static int number_of(const dispatcher_type *self, PyObject *name) {
    for (int k = 0; k < self->count; ++k)
        if (PyTuple_GET_ITEM(self->names, k) == name) return k;
    for (int k = 0; k < self->count; ++k)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(self->names, k), name) == 0) return k;
    return -1;
}

/* One value for each parameter, borrowed. 0: the call doesn't fit the signature. */
static int bind(const dispatcher_type *self, PyObject *const *args, Py_ssize_t given, PyObject *names,
                PyObject **values) {
    if (given > self->positional) return 0;
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    for (int k = 0; k < self->count; ++k) values[k] = k < given ? args[k] : NULL;
    for (Py_ssize_t k = 0; k < named; ++k) {
        const int number = number_of(self, PyTuple_GET_ITEM(names, k));
        if (number < 0 || values[number]) return 0;
        values[number] = args[given + k];
    }
    for (int k = 0; k < self->count && given + named < self->count; ++k) {
        if (values[k]) continue;
        values[k] = PyTuple_GET_ITEM(self->defaults, k);
        if (values[k] == Py_NotImplemented) return 0;
    }
    return 1;
}

/* ---- captured values -------------------------------------------------------------------------------------------- */

/* Whether an exception says that a captured value is gone. It is cleared then. */
static int is_gone(void) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_LookupError) &&
        !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return 0;
    PyErr_Clear();
    return 1;
}

/* Whether a captured value is the object that was compiled in, NotImplemented if there was none: that something equal
   came is for the class above to see. -1 with an exception. */
static int is_current(PyObject *owner, PyObject *name, PyObject *value) {
    PyObject *now;
    if (PyCell_Check(owner)) return PyCell_GET(owner) == value;
    if (PyDict_CheckExact(owner)) {
        now = PyDict_GetItemWithError(owner, name);
        if (now || !PyErr_Occurred()) return now ? now == value : value == Py_NotImplemented;
    } else {
        const int is_container = PyDict_Check(owner) || PyList_Check(owner);
        now = is_container ? PyObject_GetItem(owner, name) : PyObject_GetAttr(owner, name);
        Py_XDECREF(now);
        if (now) return now == value;
    }
    return is_gone() ? 0 : -1;
}

static int captures_are_current(PyObject *captures) {
    int current = 1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(captures) && current > 0; ++k) {
        PyObject *const *capture = &PyTuple_GET_ITEM(PyTuple_GET_ITEM(captures, k), 0);
        current = is_current(capture[0], capture[1], capture[2]);
    }
    return current;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* What a launch returns: None or a failure record, which is reported. */
static PyObject *finished(PyObject *self, PyObject *failure, PyObject *launcher) {
    if (!failure || failure == Py_None) return failure;
    Py_SETREF(failure, PyObject_CallMethodObjArgs(self, method_report, failure, launcher, NULL));
    Py_XDECREF(failure);
    return failure ? Py_NewRef(Py_None) : NULL;
}

/* Launches what was found. NotImplemented: an argument can't be packed as it is, and nothing was launched. */
static PyObject *launch(PyObject *self, const pac_treedef *treedef, PyObject *launcher, PyObject *const *leaves,
                        pac_operand *operands) {
    for (int k = 0; k < treedef->leaves; ++k)
        if (treedef->leaf[k].kind == PAC_LEAF_NUMBER && !pac_takes_number(leaves[k], treedef->leaf[k].code))
            Py_RETURN_NOTIMPLEMENTED;
    PyObject *failure = Py_TYPE(launcher) == pac_launcher_type
                            ? pac_launcher_run((pac_launcher *)launcher, leaves, operands)
                            : PyObject_Vectorcall(launcher, leaves, (size_t)treedef->leaves, NULL);
    if (!failure && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError))) {
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    return finished(self, failure, launcher);
}

/* Releases what was read of other libraries' arrays. */
static void release_views(const pac_operand *operands, pac_foreign *views, int count) {
    for (int k = 0; k < count; ++k)
        if (operands[k].foreign) pac_foreign_release(&views[k]);
}

static int count_views(const pac_operand *operands, int count) {
    int found = 0;
    for (int k = 0; k < count; ++k) found += operands[k].foreign != NULL;
    return found;
}

/* Whether other libraries' arrays are where the kernel runs: those of the host on the CPU, if one of ours is there or
   if that is the default device. Else they are copied, in the general way. -1 with an exception. */
static int are_in_place(const pac_operand *operands, int count) {
    int of_others = 0;
    for (int k = 0; k < count; ++k) {
        if (!operands[k].shape || operands[k].key & PAC_DEVICE) continue;
        if (operands[k].array) return 1;
        of_others = 1;
    }
    return of_others ? pac_default_is_host() : 1;
}

/* Looks a variant up and launches it. 1; 0: there is none; -1 with an exception. `result` gets what `launch` gives. */
static int launch_as(dispatcher_type *self, const pac_treedef *treedef, int checked, PyObject *const *values,
                     PyObject **result) {
    PyObject *few_leaves[FEW], **leaves = few_leaves, *few_objects[FEW];
    pac_operand few_operands[FEW], *operands = few_operands;
    pac_foreign few_views[FEW], *views = few_views;
    uint64_t few_words[FEW_WORDS];
    pac_key key = {.word = few_words, .object = few_objects};
    char *memory = NULL;
    if (treedef->leaves > FEW || treedef->words > FEW_WORDS) {
        const size_t leaf_bytes = (size_t)treedef->leaves * sizeof *leaves,
                     operand_bytes = (size_t)treedef->leaves * sizeof *operands,
                     view_bytes = (size_t)treedef->leaves * sizeof *views;
        memory = PyMem_Malloc(2 * leaf_bytes + operand_bytes + view_bytes + (size_t)treedef->words * sizeof *key.word);
        if (!memory) {
            PyErr_NoMemory();
            return -1;
        }
        leaves = (PyObject **)memory;
        operands = (pac_operand *)(memory + leaf_bytes);
        views = (pac_foreign *)(memory + leaf_bytes + operand_bytes);
        key.word = (uint64_t *)(memory + leaf_bytes + operand_bytes + view_bytes);
        key.object = (PyObject **)(key.word + treedef->words);
    }
    for (int k = 0; k < treedef->leaves; ++k) operands[k] = (pac_operand){0};
    int done = pac_treedef_read(treedef, values, leaves);
    if (done > 0) {
        done = pac_treedef_key(treedef, checked, leaves, operands, views, &key);
        if (done > 0) done = are_in_place(operands, treedef->leaves);
        pac_variant_table *table = (pac_variant_table *)Py_NewRef(self->table);
        PyObject *launcher = done > 0 ? pac_variant_find(table, &key) : NULL;
        const int used = launcher ? count_views(operands, treedef->leaves) : 0;
        if (used && Py_TYPE(launcher) != pac_launcher_type) {
            Py_CLEAR(launcher); /* it is called with arrays of ours */
            done = 0;
        }
        if (launcher) {
            ++table->launchers.hits;
            pac_foreign_used(used);
            *result = launch((PyObject *)self, treedef, launcher, leaves, operands);
            Py_DECREF(launcher);
            done = *result ? 1 : -1;
        } else if (done > 0) done = PyErr_Occurred() && !is_gone() ? -1 : 0;
        Py_DECREF(table);
        for (int k = 0; k < key.objects; ++k) Py_DECREF(key.object[k]);
        release_views(operands, views, treedef->leaves);
        for (int k = 0; k < treedef->leaves; ++k) Py_DECREF(leaves[k]);
    }
    PyMem_Free(memory);
    return done;
}

/* Launches by the first structure that the arguments have and a variant is there for. As `launch_as`. */
static int launch_quickly(dispatcher_type *self, PyObject *const *values, PyObject **result) {
    if (pac_process_observers || pac_this_thread.observed || !self->captures || !self->treedefs) return 0;
    const int of_thread = pac_this_thread.debug < 0 ? pac_process_debug : pac_this_thread.debug;
    const int checked = self->debug < 0 ? of_thread : self->debug;
    PyObject *captures = Py_NewRef(self->captures), *treedefs = NULL;
    int done = captures_are_current(captures);
    Py_DECREF(captures);
    if (done <= 0) return done;
    treedefs = Py_NewRef(self->treedefs);
    done = 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(treedefs) && !done; ++k)
        done = launch_as(self, (pac_treedef *)PyTuple_GET_ITEM(treedefs, k), checked, values, result);
    Py_DECREF(treedefs);
    return done;
}

static PyObject *call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
    dispatcher_type *self = (dispatcher_type *)object;
    const Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (!self->names) {
        PyObject *prepared = PyObject_CallMethodNoArgs(object, method_prepare);
        Py_XDECREF(prepared);
        if (!prepared) return NULL;
        if (!self->names) {
            PyErr_SetString(PyExc_RuntimeError, "a dispatcher needs the parameters of its kernel");
            return NULL;
        }
    }
    const int count = self->count;
    PyObject *few[FEW], **values = few;
    if (count > FEW && !(values = PyMem_Malloc((size_t)count * sizeof *values))) return PyErr_NoMemory();
    PyObject *result = NULL;
    if (!bind(self, args, given, names, values)) {
        if (!PyErr_Occurred()) result = refuse_call(object, args, given, names);
    } else {
        const int done = launch_quickly(self, values, &result);
        if (!done) result = call_with_arguments(object, method_miss, values, count);
        else if (done > 0 && result == Py_NotImplemented)
            Py_SETREF(result, call_with_arguments(object, method_refused, values, count));
    }
    if (values != few) PyMem_Free(values);
    return result;
}

/* ---- what calls are looked up by -------------------------------------------------------------------------------- */

/* _set_parameters(names, positional, defaults, debug): once, and again with the same names where what came after
   that was interrupted. */
static PyObject *set_parameters(PyObject *object, PyObject *args) {
    dispatcher_type *self = (dispatcher_type *)object;
    PyObject *names, *defaults, *debug;
    int positional;
    if (!PyArg_ParseTuple(args, "O!iO!O", &PyTuple_Type, &names, &positional, &PyTuple_Type, &defaults, &debug))
        return NULL;
    const Py_ssize_t count = PyTuple_GET_SIZE(names);
    const int same = self->names ? PyObject_RichCompareBool(self->names, names, Py_EQ) : 0;
    if (same < 0) return NULL;
    if (same) Py_RETURN_NONE;
    int fits = PyTuple_GET_SIZE(defaults) == count && positional >= 0 && positional <= count && !self->names;
    for (Py_ssize_t k = 0; k < count && fits; ++k) fits = PyUnicode_CheckExact(PyTuple_GET_ITEM(names, k));
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "these are no parameters of a new dispatcher: %R, %R", names, defaults);
        return NULL;
    }
    const int is_true = debug == Py_None ? -1 : PyObject_IsTrue(debug);
    if (PyErr_Occurred()) return NULL;
    self->debug = is_true;
    self->count = (int)count;
    self->positional = positional;
    self->defaults = Py_NewRef(defaults);
    self->names = Py_NewRef(names);
    Py_RETURN_NONE;
}

/* _set_variants(table, treedefs, captures): what calls are looked up in from now on. */
static PyObject *set_variants(PyObject *object, PyObject *args) {
    dispatcher_type *self = (dispatcher_type *)object;
    PyObject *table, *treedefs, *captures;
    if (!PyArg_ParseTuple(args, "O!O!O!", pac_variant_table_type, &table, &PyTuple_Type, &treedefs, &PyTuple_Type,
                          &captures))
        return NULL;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(treedefs); ++k) {
        const pac_treedef *treedef = (pac_treedef *)PyTuple_GET_ITEM(treedefs, k);
        if (Py_TYPE(treedef) == pac_treedef_type && self->names && treedef->items == self->count) continue;
        PyErr_Format(PyExc_TypeError, "expected a TreeDef of the kernel's %d parameters, got %R", self->count, treedef);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(captures); ++k) {
        PyObject *capture = PyTuple_GET_ITEM(captures, k);
        if (PyTuple_Check(capture) && PyTuple_GET_SIZE(capture) == 3) continue;
        PyErr_Format(PyExc_TypeError, "expected (owner, name, value), got %R", capture);
        return NULL;
    }
    Py_XSETREF(self->table, (pac_variant_table *)Py_NewRef(table));
    Py_XSETREF(self->captures, Py_NewRef(captures));
    Py_XSETREF(self->treedefs, Py_NewRef(treedefs));
    Py_RETURN_NONE;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

/* Classes below CPython 3.12 don't inherit that they are called without a tuple of arguments. One with a `__call__` of
   its own isn't. */
static PyObject *init_subclass(PyObject *type, PyObject *Py_UNUSED(none)) {
    PyTypeObject *kind = (PyTypeObject *)type;
    if (kind->tp_call == PyVectorcall_Call && kind->tp_vectorcall_offset) kind->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    Py_RETURN_NONE;
}

static PyObject *dispatcher_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(options)) {
    dispatcher_type *self = (dispatcher_type *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = call;
        self->debug = -1;
    }
    return (PyObject *)self;
}

static int dispatcher_traverse(PyObject *object, visitproc visit, void *arg) {
    dispatcher_type *self = (dispatcher_type *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->names);
    Py_VISIT(self->defaults);
    Py_VISIT(self->captures);
    Py_VISIT(self->treedefs);
    Py_VISIT(self->table);
    return 0;
}

static int dispatcher_clear(PyObject *object) {
    dispatcher_type *self = (dispatcher_type *)object;
    Py_CLEAR(self->captures);
    Py_CLEAR(self->treedefs);
    Py_CLEAR(self->table);
    return 0;
}

static void dispatcher_dealloc(PyObject *object) {
    dispatcher_type *self = (dispatcher_type *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    dispatcher_clear(object);
    Py_CLEAR(self->names);
    Py_CLEAR(self->defaults);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef dispatcher_methods[] = {
    {"_set_parameters", set_parameters, METH_VARARGS, "_set_parameters(names, positional, defaults, debug)"},
    {"_set_variants", set_variants, METH_VARARGS, "_set_variants(table, treedefs, captures)"},
    {"__init_subclass__", init_subclass, METH_NOARGS | METH_CLASS, NULL},
    {0},
};
static PyMemberDef dispatcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(dispatcher_type, vectorcall), READONLY, NULL},
    {0},
};
static PyType_Slot dispatcher_slots[] = {
    {Py_tp_new, dispatcher_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, dispatcher_dealloc},
    {Py_tp_traverse, dispatcher_traverse},
    {Py_tp_clear, dispatcher_clear},
    {Py_tp_methods, dispatcher_methods},
    {Py_tp_members, dispatcher_members},
    {Py_tp_doc, "Finds the launcher of a call's variant, and launches."},
    {0},
};
static PyType_Spec dispatcher_spec = {
    "pyarray._core.Dispatcher", sizeof(dispatcher_type), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, dispatcher_slots,
};

int pac_add_dispatcher_type(PyObject *module) {
    const struct {
        PyObject **name;
        const char *text;
    } methods[] = {{&method_prepare, "_prepare"}, {&method_miss, "_miss"}, {&method_refused, "_refused"},
                   {&method_report, "_report"}, {&method_wrong, "_wrong"}};
    for (size_t k = 0; k < sizeof methods / sizeof *methods; ++k)
        if (!(*methods[k].name = PyUnicode_InternFromString(methods[k].text))) return -1;
    dispatcher_base = (PyTypeObject *)PyType_FromSpec(&dispatcher_spec);
    return dispatcher_base ? PyModule_AddType(module, dispatcher_base) : -1;
}
