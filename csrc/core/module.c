/* pyarray._core: the types below the arrays, and how this thread launches. */
#include "map.h"
#include <string.h>

_Thread_local pac_thread pac_this_thread = {0, -1, 0};
int pac_process_observers, pac_process_debug;

extern PyObject *pac_register_pools(PyObject *, PyObject *), *pac_register_array(PyObject *, PyObject *),
    *pac_register_view(PyObject *, PyObject *), *pac_register_dtypes(PyObject *, PyObject *),
    *pac_register_indexing(PyObject *, PyObject *), *pac_register_assignment(PyObject *, PyObject *),
    *pac_register_operator(PyObject *, PyObject *), *pac_register_power(PyObject *, PyObject *),
    *pac_connect(PyObject *, PyObject *),
    *pac_connect_gpu(PyObject *, PyObject *), *pac_register_devices(PyObject *, PyObject *),
    *pac_clear_plans(PyObject *, PyObject *), *pac_unchecked_array(PyObject *, PyObject *const *, Py_ssize_t);
extern PyObject *pac_register_foreign(PyObject *, PyObject *), *pac_register_dlpack(PyObject *, PyObject *),
    *pac_register_export(PyObject *, PyObject *), *pac_foreign_array_of(PyObject *, PyObject *),
    *pac_foreign_uses(PyObject *, PyObject *), *pac_from_capsule(PyObject *, PyObject *),
    *pac_capsule_fields(PyObject *, PyObject *), *pac_export_capsule(PyObject *, PyObject *);

typedef int (*add_types)(PyObject *module);
extern int pac_add_memory_types(PyObject *), pac_add_map_type(PyObject *), pac_add_array_type(PyObject *),
    pac_add_function_type(PyObject *), pac_add_iterator_type(PyObject *), pac_add_launcher_type(PyObject *),
    pac_add_variant_table_type(PyObject *), pac_add_treedef_type(PyObject *), pac_add_dispatcher_type(PyObject *),
    pac_add_plan_types(PyObject *);
static const add_types adders[] = {
    pac_add_memory_types, pac_add_map_type, pac_add_array_type, pac_add_function_type, pac_add_iterator_type,
    pac_add_launcher_type, pac_add_variant_table_type, pac_add_treedef_type, pac_add_dispatcher_type,
    pac_add_plan_types,
};
extern int pac_add_foreign(void), pac_add_export(void);

/* ---- launch state ----------------------------------------------------------------------------------------------- */

/* set_process_state(observers, debug) */
static PyObject *set_process_state(PyObject *Py_UNUSED(module), PyObject *args) {
    return PyArg_ParseTuple(args, "ip", &pac_process_observers, &pac_process_debug) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *set_thread_observed(PyObject *Py_UNUSED(module), PyObject *observed) {
    const int is_true = PyObject_IsTrue(observed);
    if (is_true < 0) return NULL;
    pac_this_thread.observed = is_true;
    Py_RETURN_NONE;
}

/* set_thread_debug(None, False or True) */
static PyObject *set_thread_debug(PyObject *Py_UNUSED(module), PyObject *debug) {
    const int is_true = debug == Py_None ? -1 : PyObject_IsTrue(debug);
    if (is_true < 0 && PyErr_Occurred()) return NULL;
    pac_this_thread.debug = is_true;
    Py_RETURN_NONE;
}

static PyObject *host_access_occurred(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyBool_FromLong(pac_this_thread.host_access);
}

static PyObject *set_host_access(PyObject *Py_UNUSED(module), PyObject *occurred) {
    const int is_true = PyObject_IsTrue(occurred);
    if (is_true < 0) return NULL;
    pac_this_thread.host_access = is_true;
    Py_RETURN_NONE;
}

/* load_element(array): its first element as a Python number. */
static PyObject *load_element(PyObject *Py_UNUSED(module), PyObject *array) {
    if (!PyObject_TypeCheck(array, pac_base_type)) {
        PyErr_Format(PyExc_TypeError, "expected an array, got %R", array);
        return NULL;
    }
    pac_array *a = (pac_array *)array;
    if (!a->size || !PAC_ON_CPU(a)) {
        PyErr_SetString(PyExc_ValueError, "only an element of an array on the CPU can be read here");
        return NULL;
    }
    return pac_load_element(pac_host_memory(a), PAC_CODE(a));
}

/* aliases(array, out) */
static PyObject *aliases(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *x, *out;
    if (!PyArg_ParseTuple(args, "O!O!", pac_base_type, &x, pac_base_type, &out)) return NULL;
    return PyBool_FromLong(pac_map_aliases((pac_array *)x, (pac_array *)out));
}

/* host_nonzero(array): a tuple of index arrays, or NotImplemented where that is a kernel's work. */
static PyObject *nonzero(PyObject *Py_UNUSED(module), PyObject *array) {
    if (!PAC_IS_ARRAY(array) || !pac_plain()) Py_RETURN_NOTIMPLEMENTED;
    return pac_select_nonzero((pac_array *)array);
}

static PyMethodDef functions[] = {
    {"register_devices", pac_register_devices, METH_VARARGS, NULL},
    {"register_pools", pac_register_pools, METH_O, NULL},
    {"register_array", pac_register_array, METH_O, NULL},
    {"register_view", pac_register_view, METH_O, NULL},
    {"register_dtypes", pac_register_dtypes, METH_VARARGS, NULL},
    {"register_indexing", pac_register_indexing, METH_VARARGS, NULL},
    {"register_assignment", pac_register_assignment, METH_O, NULL},
    {"register_operator", pac_register_operator, METH_VARARGS, NULL},
    {"register_power", pac_register_power, METH_VARARGS, NULL},
    {"connect", pac_connect, METH_O, NULL},
    {"connect_gpu", pac_connect_gpu, METH_O, NULL},
    {"clear_plans", pac_clear_plans, METH_NOARGS, NULL},
    {"unchecked_array", (PyCFunction)(void (*)(void))pac_unchecked_array, METH_FASTCALL,
     "unchecked_array(buffer, shape, strides, size, dtype, key, ptr=buffer.ptr)\n--\n\n"
     "An array in `buffer`. The arguments must be mutually consistent."},
    {"register_foreign", pac_register_foreign, METH_VARARGS, NULL},
    {"register_dlpack", pac_register_dlpack, METH_VARARGS, NULL},
    {"register_export", pac_register_export, METH_VARARGS, NULL},
    {"foreign_array", pac_foreign_array_of, METH_O, NULL},
    {"foreign_uses", pac_foreign_uses, METH_NOARGS, NULL},
    {"from_capsule", pac_from_capsule, METH_VARARGS, NULL},
    {"capsule_fields", pac_capsule_fields, METH_O, NULL},
    {"export_capsule", pac_export_capsule, METH_VARARGS, NULL},
    {"set_process_state", set_process_state, METH_VARARGS, NULL},
    {"set_thread_observed", set_thread_observed, METH_O, NULL},
    {"set_thread_debug", set_thread_debug, METH_O, NULL},
    {"host_access_occurred", host_access_occurred, METH_NOARGS, NULL},
    {"set_host_access", set_host_access, METH_O, NULL},
    {"aliases", aliases, METH_VARARGS, NULL},
    {"host_nonzero", nonzero, METH_O, NULL},
    {"load_element", load_element, METH_O, NULL},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pyarray._core", "The types below arrays, in C.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void) {
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "pyarray needs an interpreter with the GIL, which its arrays rely on; "
                                       "use a build of CPython that isn't free-threaded");
    return NULL;
#endif
    PyObject *module = PyModule_Create(&definition);
    for (size_t k = 0; module && k < sizeof adders / sizeof *adders; ++k)
        if (adders[k](module) < 0) Py_CLEAR(module);
    if (module && (pac_add_export() < 0 || pac_add_foreign() < 0)) Py_CLEAR(module);
    return module;
}
