/* PlannedFunction: a Python function whose warm calls are plans. It is a function to all who ask: it has a name, a
   docstring and a signature, binds as a method, and pickles and copies by its qualified name. */
#include "plan.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *table;
    PyObject *dict; /* `__name__`, `__doc__`, `__wrapped__` and what others store */
    PyObject *weakrefs;
} planned_function;

static PyObject *call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
    return pac_table_call(((planned_function *)self)->table, args, flags, names);
}

/* PlannedFunction(table): functions of one table, like a function and the method of its name, share plans. */
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *table;
    if (!PyArg_ParseTuple(args, "O!", pac_table_type, &table)) return NULL;
    planned_function *f = (planned_function *)type->tp_alloc(type, 0);
    if (!f) return NULL;
    f->call = call;
    f->table = Py_NewRef(table);
    return (PyObject *)f;
}

static int function_traverse(PyObject *self, visitproc visit, void *arg) {
    planned_function *f = (planned_function *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->table);
    Py_VISIT(f->dict);
    return 0;
}

/* The table is cleared by itself, and is there for as long as the function. */
static int function_clear(PyObject *self) {
    Py_CLEAR(((planned_function *)self)->dict);
    return 0;
}

static void function_dealloc(PyObject *self) {
    planned_function *f = (planned_function *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (f->weakrefs) PyObject_ClearWeakRefs(self);
    Py_XDECREF(f->table);
    Py_XDECREF(f->dict);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *function_repr(PyObject *self) {
    PyObject *name = PyObject_GetAttrString(self, "__qualname__");
    if (!name) return NULL;
    PyObject *text = PyUnicode_FromFormat("<function %S at %p>", name, (void *)self);
    Py_DECREF(name);
    return text;
}

static PyObject *bound(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner)) {
    return !instance || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyObject *reduced(PyObject *self, PyObject *Py_UNUSED(none)) {
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *cache_info(PyObject *self, PyObject *Py_UNUSED(none)) {
    return PyObject_CallMethod(((planned_function *)self)->table, "cache_info", NULL);
}

static PyObject *explain_miss(PyObject *self, PyObject *args, PyObject *options) {
    PyObject *module = PyImport_ImportModule("pyarray.jit.plan_explanations"), *text = NULL;
    PyObject *given = options ? Py_NewRef(options) : PyDict_New();
    if (module && given) text = PyObject_CallMethod(module, "explain_miss", "OOO", self, args, given);
    Py_XDECREF(module);
    Py_XDECREF(given);
    return text;
}

static PyMethodDef function_methods[] = {
    {"cache_info", cache_info, METH_NOARGS,
     "cache_info($self, /)\n--\n\n"
     "`plans` there are now, `hits` (calls that one has run), `misses` (calls that ran the function though their "
     "arguments could have a plan) and `captures` (misses that were recorded)."},
    {"explain_miss", (PyCFunction)(void (*)(void))explain_miss, METH_VARARGS | METH_KEYWORDS,
     "explain_miss($self, /, *args, **options)\n--\n\n"
     "None where a call with these arguments would run a plan, else why it wouldn't. It doesn't call the function."},
    {"__reduce__", reduced, METH_NOARGS, NULL},
    {0},
};
static PyMemberDef function_members[] = {
    {"plan_table", T_OBJECT, offsetof(planned_function, table), READONLY, "The plans."},
    {"__dictoffset__", T_PYSSIZET, offsetof(planned_function, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(planned_function, weakrefs), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(planned_function, call), READONLY, NULL},
    {0},
};
static PyGetSetDef function_fields[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};
static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},         {Py_tp_dealloc, function_dealloc}, {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},     {Py_tp_repr, function_repr},       {Py_tp_methods, function_methods},
    {Py_tp_members, function_members}, {Py_tp_getset, function_fields},   {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, bound},
    {Py_tp_doc, "A function whose warm calls are plans: PlannedFunction(table)."},
    {0},
};
static PyType_Spec function_spec = {"pyarray._core.PlannedFunction", sizeof(planned_function), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                        Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                    function_slots};

int pac_add_planned_function_type(PyObject *module) {
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&function_spec);
    if (!type) return -1;
    const int added = PyModule_AddType(module, type);
    Py_DECREF(type);
    return added;
}
