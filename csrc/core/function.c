/* QuickFunction: a function in Python, with a quick way in C that is asked first. For users it is that function: its
   name, signature, docstring and all other attributes are the function's. */
#include "quick.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *general;
    pac_quick quick;
    PyObject *weakrefs;
} quick_function;

static PyTypeObject *function_type;

/* By the names that the decorator `quick` of pyarray/keywords.py is given. */
static const struct {
    const char *name;
    pac_quick quick;
} table[] = {
    {"reshape", pac_quick_reshape},
    {"ndarray.reshape", pac_quick_reshape_method},
    {"transpose", pac_quick_transpose},
    {"ndarray.transpose", pac_quick_transpose_method},
    {"permute_dims", pac_quick_permute_dims},
    {"T", pac_quick_reversed_axes},
    {"mT", pac_quick_matrix_transpose},
    {"swapaxes", pac_quick_swapaxes},
    {"squeeze", pac_quick_squeeze},
    {"expand_dims", pac_quick_expand_dims},
    {"ravel", pac_quick_ravel},
    {"copy", pac_quick_copy},
    {"flatten", pac_quick_flatten},
    {"astype", pac_quick_astype},
    {"new", pac_quick_new},
    {"empty", pac_quick_empty},
    {"zeros", pac_quick_zeros},
    {"ones", pac_quick_ones},
    {"full", pac_quick_full},
    {"empty_like", pac_quick_empty_like},
    {"zeros_like", pac_quick_zeros_like},
    {"ones_like", pac_quick_ones_like},
    {"full_like", pac_quick_full_like},
    {"asarray", pac_quick_asarray},
    {"arange", pac_quick_arange},
    {"float", pac_quick_float},
    {"int", pac_quick_int},
    {"complex", pac_quick_complex},
    {"index", pac_quick_index},
    {"bool", pac_quick_bool},
    {"item", pac_quick_item},
    {"tolist", pac_quick_tolist},
    {"iter", pac_quick_rows},
};

static PyObject *function_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
    quick_function *function = (quick_function *)self;
    PyObject *result = function->quick(args, PyVectorcall_NARGS(flags), names);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyObject_Vectorcall(function->general, args, flags, names);
}

/* QuickFunction(name, general) */
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    const char *name;
    PyObject *general;
    if (!PyArg_ParseTuple(args, "sO", &name, &general)) return NULL;
    for (size_t k = 0; k < sizeof table / sizeof *table; ++k) {
        if (strcmp(table[k].name, name)) continue;
        quick_function *function = (quick_function *)type->tp_alloc(type, 0);
        if (!function) return NULL;
        function->call = function_call;
        function->general = Py_NewRef(general);
        function->quick = table[k].quick;
        return (PyObject *)function;
    }
    PyErr_Format(PyExc_ValueError, "there is no quick way of the name %s", name);
    return NULL;
}

static int function_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((quick_function *)self)->general);
    return 0;
}

static int function_clear(PyObject *self) {
    Py_CLEAR(((quick_function *)self)->general);
    return 0;
}

static void function_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((quick_function *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    function_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *function_repr(PyObject *self) { return PyObject_Repr(((quick_function *)self)->general); }

/* As a function in a class, it is a method of the instances. */
static PyObject *function_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(kind)) {
    return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* What is the object's own; all other attributes are the function's. */
static const char *const own[] = {"__class__", "__call__", "__get__", "__reduce__", "__reduce_ex__"};

static PyObject *function_getattr(PyObject *self, PyObject *name) {
    for (size_t k = 0; k < sizeof own / sizeof *own; ++k)
        if (PyUnicode_CompareWithASCIIString(name, own[k]) == 0) return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((quick_function *)self)->general, name);
}

static int function_setattr(PyObject *self, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(((quick_function *)self)->general, name, value);
}

/* Pickles find it by its name, as they do functions. */
static PyObject *function_reduce(PyObject *self, PyObject *Py_UNUSED(none)) {
    return PyObject_GetAttrString(((quick_function *)self)->general, "__qualname__");
}

static PyObject *function_doc(PyObject *self, void *Py_UNUSED(none)) {
    return PyObject_GetAttrString(((quick_function *)self)->general, "__doc__");
}

static PyMethodDef function_methods[] = {
    {"__reduce__", function_reduce, METH_NOARGS, NULL},
    {0},
};
static PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(quick_function, call), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(quick_function, weakrefs), READONLY, NULL},
    {0},
};
static PyGetSetDef function_fields[] = {
    {"__doc__", function_doc, NULL, NULL, NULL}, /* which pydoc reads past function_getattr */
    {0},
};
static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},         {Py_tp_dealloc, function_dealloc}, {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},     {Py_tp_call, PyVectorcall_Call},   {Py_tp_repr, function_repr},
    {Py_tp_descr_get, function_get},   {Py_tp_getattro, function_getattr}, {Py_tp_setattro, function_setattr},
    {Py_tp_methods, function_methods}, {Py_tp_members, function_members},  {Py_tp_getset, function_fields},
    {0},
};
static PyType_Spec function_spec = {"pyarray._core.QuickFunction", sizeof(quick_function), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                        Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                    function_slots};

int pac_add_function_type(PyObject *module) {
    function_type = (PyTypeObject *)PyType_FromSpec(&function_spec);
    return function_type ? PyModule_AddType(module, function_type) : -1;
}
