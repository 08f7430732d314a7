/* pyarray._core: the types below the arrays, and how this thread launches. */
#include "core.h"
#include <string.h>

_Thread_local pac_thread pac_this_thread = {0, -1, 0};
int pac_process_observers, pac_process_debug;

extern PyObject *pac_register_pools(PyObject *, PyObject *), *pac_register_array(PyObject *, PyObject *),
    *pac_register_view(PyObject *, PyObject *), *pac_register_dtypes(PyObject *, PyObject *),
    *pac_register_indexing(PyObject *, PyObject *), *pac_register_assignment(PyObject *, PyObject *),
    *pac_register_operator(PyObject *, PyObject *), *pac_connect(PyObject *, PyObject *),
    *pac_clear_plans(PyObject *, PyObject *), *pac_unchecked_array(PyObject *, PyObject *const *, Py_ssize_t);
extern int pac_add_map_type(PyObject *), pac_add_memory_types(PyObject *), pac_add_array_type(PyObject *);
extern int pac_add_plan_types(PyObject *);

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
    pac_this_thread.host_access = 1;
    return pac_load_element((const char *)a->ptr, PAC_CODE(a));
}

/* host_nonzero(array): a tuple of index arrays, or NotImplemented where that is a kernel's work. */
static PyObject *nonzero(PyObject *Py_UNUSED(module), PyObject *array) {
    if (!PAC_IS_ARRAY(array) || !pac_plain()) Py_RETURN_NOTIMPLEMENTED;
    PyObject *found = pac_select_nonzero((pac_array *)array);
    if (found != Py_NotImplemented) pac_this_thread.host_access = 1;
    return found;
}

static PyMethodDef functions[] = {
    {"register_pools", pac_register_pools, METH_O, NULL},
    {"register_array", pac_register_array, METH_O, NULL},
    {"register_view", pac_register_view, METH_O, NULL},
    {"register_dtypes", pac_register_dtypes, METH_O, NULL},
    {"register_indexing", pac_register_indexing, METH_VARARGS, NULL},
    {"register_assignment", pac_register_assignment, METH_O, NULL},
    {"register_operator", pac_register_operator, METH_VARARGS, NULL},
    {"connect", pac_connect, METH_O, NULL},
    {"clear_plans", pac_clear_plans, METH_NOARGS, NULL},
    {"unchecked_array", (PyCFunction)(void (*)(void))pac_unchecked_array, METH_FASTCALL,
     "unchecked_array(buffer, shape, strides, size, dtype, key, ptr=buffer.ptr)\n--\n\n"
     "An array in `buffer`. The arguments must be mutually consistent."},
    {"set_process_state", set_process_state, METH_VARARGS, NULL},
    {"set_thread_observed", set_thread_observed, METH_O, NULL},
    {"set_thread_debug", set_thread_debug, METH_O, NULL},
    {"host_access_occurred", host_access_occurred, METH_NOARGS, NULL},
    {"set_host_access", set_host_access, METH_O, NULL},
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
    if (module && (pac_add_memory_types(module) < 0 || pac_add_map_type(module) < 0 ||
                   pac_add_array_type(module) < 0 || pac_add_plan_types(module) < 0)) Py_CLEAR(module);
    return module;
}
