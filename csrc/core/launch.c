/* One launch of a compiled kernel: its packed arguments, and the call of its code. */
#include "launch.h"
#include <string.h>

typedef int (*cpu_launch)(uintptr_t entry, const char *slots, void *pool, void *failure);
typedef int (*gpu_launch)(uintptr_t plan, const char *slots, size_t nbytes);
static cpu_launch run_on_cpu;
static gpu_launch run_on_gpu;
/* Elements from which a launch lets other threads run Python: switching takes as long as the work on fewer. */
#define LONG_WORK 8192

/* connect(address of pa_launch), by the CPU's driver */
PyObject *pac_connect(PyObject *Py_UNUSED(module), PyObject *address) {
    run_on_cpu = (cpu_launch)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* connect_gpu(address of pa_gpu_launch), by drivers of GPUs */
PyObject *pac_connect_gpu(PyObject *Py_UNUSED(module), PyObject *address) {
    run_on_gpu = (gpu_launch)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

int pac_launch_read(PyObject *described, pac_launch *launch) {
    unsigned long long entry, pool;
    if (!PyTuple_Check(described)) {
        PyErr_Format(PyExc_TypeError, "expected (entry, pool, function, holder), got %R", described);
        return 0;
    }
    if (!PyArg_ParseTuple(described, "KKOO", &entry, &pool, &launch->function, &launch->holder)) return 0;
    launch->entry = (uintptr_t)entry;
    launch->pool = (void *)(uintptr_t)pool;
    Py_INCREF(launch->function);
    Py_INCREF(launch->holder);
    return 1;
}

void pac_launch_clear(pac_launch *launch) {
    Py_CLEAR(launch->function);
    Py_CLEAR(launch->holder);
}

PyObject *pac_launch_result(const pac_launch *launch, const int64_t *slots, Py_ssize_t count, int64_t size) {
    const uintptr_t entry = launch->entry;
    const size_t nbytes = (size_t)count * sizeof *slots;
    if (entry && launch->function == Py_None && size < LONG_WORK) {
        run_on_cpu(entry, (const char *)slots, launch->pool, NULL);
        Py_RETURN_NONE;
    }
    /* the launch may be dropped while other threads run Python */
    PyObject *function = Py_NewRef(launch->function), *holder = Py_NewRef(launch->holder), *result = NULL;
    if (entry) {
        void *pool = launch->pool;
        int error = 0;
        Py_BEGIN_ALLOW_THREADS
        if (function == Py_None) run_on_cpu(entry, (const char *)slots, pool, NULL);
        else error = run_on_gpu(entry, (const char *)slots, nbytes);
        Py_END_ALLOW_THREADS
        result = error ? PyObject_CallFunction(function, "i", error) : Py_NewRef(Py_None);
    } else {
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)slots, (Py_ssize_t)nbytes);
        result = bytes ? PyObject_CallOneArg(function, bytes) : NULL;
        Py_XDECREF(bytes);
    }
    Py_DECREF(function);
    Py_DECREF(holder);
    return result;
}

int pac_launch_run(const pac_launch *launch, const int64_t *slots, Py_ssize_t count, int64_t size) {
    PyObject *done = pac_launch_result(launch, slots, count, size);
    Py_XDECREF(done);
    return done != NULL;
}

int pac_pack_number(PyObject *x, int code, int64_t *slots) {
    const char kind = pac_dtypes[code].kind;
    slots[0] = 0;
    if (kind == 'b') {
        if (PyBool_Check(x)) slots[0] = x == Py_True;
        return PyBool_Check(x);
    }
    if (kind == 'i' || kind == 'u') return PyLong_Check(x) && pac_store_element((char *)slots, code, x) == 1;
    if (kind == 'f' && PyComplex_CheckExact(x)) return 0;
    const Py_complex value = PyComplex_AsCComplex(x);
    if (value.real == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    memcpy(&slots[0], &value.real, sizeof value.real);
    if (kind == 'c') memcpy(&slots[1], &value.imag, sizeof value.imag);
    return kind == 'c' ? 2 : 1;
}

PyObject *pac_tuple_of(const int64_t *numbers, int count) {
    int64_t copy[2 * PAC_MAX_NDIM]; /* the tuple may collect garbage, and the numbers be dims that this changes */
    memcpy(copy, numbers, (size_t)count * sizeof *copy);
    PyObject *tuple = PyTuple_New(count);
    for (int k = 0; tuple && k < count; ++k) {
        PyObject *number = PyLong_FromLongLong(copy[k]);
        if (!number) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, k, number);
    }
    return tuple;
}

int pac_grow(void **table, int count, int *capacity, size_t size) {
    if (count < *capacity) return 1;
    const int wanted = *capacity ? 2 * *capacity : 4;
    void *larger = PyMem_Realloc(*table, (size_t)wanted * size);
    if (!larger) {
        PyErr_NoMemory();
        return 0;
    }
    *table = larger;
    *capacity = wanted;
    return 1;
}
