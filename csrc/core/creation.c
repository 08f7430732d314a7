/* New arrays: `empty`, `zeros`, `ones`, `full` and those like another array, on the device that is named or the default
   one. */
#include "quick.h"
#include <string.h>

/* ---- dtypes and devices ----------------------------------------------------------------------------------------- */

static int known_code(PyObject *dtype) {
    for (int code = 0; code < PAC_CODES; ++code) {
        const pac_dtype *row = &pac_dtypes[code];
        if (dtype == row->numpy || dtype == row->scalar || dtype == row->row) return code;
    }
    return -1;
}

static PyObject *rows_by_text; /* text -> row of the table of dtypes */
enum { MOST_TEXTS = 256 };

/* The code of a dtype's name, as `asdtype` says once. */
static int code_of_text(PyObject *text) {
    if (!rows_by_text && !(rows_by_text = PyDict_New())) return -1;
    PyObject *row = PyDict_GetItemWithError(rows_by_text, text);
    if (row) return known_code(row);
    if (PyDict_GET_SIZE(rows_by_text) >= MOST_TEXTS) PyDict_Clear(rows_by_text);
    row = PyObject_CallOneArg(pac_asdtype, text);
    const int code = row && !PyDict_SetItem(rows_by_text, text, row) ? known_code(row) : -1;
    Py_XDECREF(row);
    return code;
}

int pac_find_code(PyObject *dtype) {
    int code = known_code(dtype);
    if (code >= 0) return code;
    if (PyUnicode_CheckExact(dtype)) {
        code = code_of_text(dtype);
        if (PyErr_Occurred()) PyErr_Clear();
        return code;
    }
    if (dtype == (PyObject *)&PyFloat_Type) return PAC_F64;
    if (dtype == (PyObject *)&PyLong_Type) return PAC_I64;
    if (dtype == (PyObject *)&PyBool_Type) return PAC_BOOL;
    return dtype == (PyObject *)&PyComplex_Type ? PAC_C128 : -1;
}

static PyObject *device_class, *find_device, *scoped_default, *overrides, *environment; /* see pac_register_devices */
static PyObject *setting, *variable; /* PYARRAY_DEVICE as a key of `overrides`, and of `environment` */
static PyObject *preset;             /* the device where no setting says another one */
static PyObject *code_name, *dtype_name, *device_name;

/* register_devices(Device, get_device, scoped_default, overrides, environment): `overrides` are settings that the
   program has made, `environment` the variables as bytes, or None where they can't be read so. */
PyObject *pac_register_devices(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *kind, *find, *scoped, *settings, *variables;
    if (!PyArg_ParseTuple(args, "OOOO!O", &kind, &find, &scoped, &PyDict_Type, &settings, &variables)) return NULL;
    if (!PyContextVar_CheckExact(scoped)) {
        PyErr_Format(PyExc_TypeError, "expected a ContextVar, got %R", scoped);
        return NULL;
    }
    Py_XSETREF(device_class, Py_NewRef(kind));
    Py_XSETREF(find_device, Py_NewRef(find));
    Py_XSETREF(scoped_default, Py_NewRef(scoped));
    Py_XSETREF(overrides, Py_NewRef(settings));
    Py_XSETREF(environment, Py_NewRef(variables));
    Py_XSETREF(setting, PyUnicode_InternFromString("PYARRAY_DEVICE"));
    Py_XSETREF(variable, PyBytes_FromString("PYARRAY_DEVICE"));
    Py_XSETREF(code_name, PyUnicode_InternFromString("code"));
    Py_XSETREF(dtype_name, PyUnicode_InternFromString("dtype"));
    Py_XSETREF(device_name, PyUnicode_InternFromString("device"));
    return setting && variable && code_name && dtype_name && device_name ? Py_NewRef(Py_None) : NULL;
}

/* Whether no setting names a device: 0 where one may. */
static int is_preset(void) {
    if (!PyDict_CheckExact(environment)) return 0;
    const int set = PyDict_Contains(overrides, setting) || PyDict_Contains(environment, variable);
    if (PyErr_Occurred()) PyErr_Clear();
    return !set;
}

static PyObject *default_device(void) {
    PyObject *device;
    if (PyContextVar_Get(scoped_default, NULL, &device) < 0) return NULL;
    if (device && device != Py_None) return device;
    Py_XDECREF(device);
    if (!is_preset()) return PyObject_CallNoArgs(find_device);
    if (!preset) preset = PyObject_CallNoArgs(find_device);
    return Py_XNewRef(preset);
}

PyObject *pac_find_device(PyObject *spec, uint64_t *code) {
    PyObject *device = NULL, *number = NULL;
    if (spec == Py_None && find_device) device = default_device();
    else if ((PyObject *)Py_TYPE(spec) == device_class) device = Py_NewRef(spec);
    else if (PyUnicode_CheckExact(spec) && find_device) device = PyObject_CallOneArg(find_device, spec);
    *code = 0;
    if (device && device != preset) { /* that is the CPU, whose code is 0 */
        number = PyObject_GetAttr(device, code_name);
        *code = number ? PyLong_AsUnsignedLongLong(number) : 0;
        Py_XDECREF(number);
    }
    if (!PyErr_Occurred()) return device;
    PyErr_Clear();
    Py_XDECREF(device);
    return NULL;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject *dtype, *device; /* None: none is named */
    int ndim, code;
    int64_t shape[PAC_MAX_NDIM];
} request;

/* The keywords `dtype` and `device`. 0: others. */
static int read_keywords(request *r, PyObject *const *values, PyObject *names) {
    for (Py_ssize_t k = 0; k < pac_keywords(names); ++k) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        PyObject **field = name == dtype_name ? &r->dtype : name == device_name ? &r->device : NULL;
        if (!field || *field != Py_None) return 0;
        *field = values[k];
    }
    return 1;
}

/* Reads (shape[, dtype], keywords), of which the shape and what comes before it are `first` arguments. 0: declined. */
static int read_request(request *r, PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t first) {
    r->dtype = r->device = Py_None;
    if (count < first || count > first + 1 || !device_name) return 0;
    if (count > first) r->dtype = args[first];
    if (!read_keywords(r, args + count, names)) return 0;
    r->ndim = pac_read_integers(args, 1, r->shape);
    for (int axis = 0; axis < r->ndim; ++axis)
        if (r->shape[axis] < 0) return 0;
    return r->ndim >= 0;
}

/* An array as `r` says, of dtype `code` where none is named. NULL, with or without an exception: declined. */
static pac_array *make(request *r, int code) {
    int64_t strides[PAC_MAX_NDIM];
    uint64_t device_code;
    r->code = r->dtype == Py_None ? code : pac_find_code(r->dtype);
    if (r->code < 0 || !pac_fresh_strides(r->ndim, r->shape, pac_dtypes[r->code].itemsize, strides)) return NULL;
    PyObject *device = pac_find_device(r->device, &device_code);
    if (!device) return NULL;
    pac_array *a = pac_array_fresh(pac_ndarray_type, r->code, r->ndim, r->shape, device, device_code);
    Py_DECREF(device);
    return a;
}

static PyObject *made(pac_array *a) {
    if (a || PyErr_Occurred()) return (PyObject *)a;
    Py_RETURN_NOTIMPLEMENTED;
}

/* Elements from which other threads may run Python while memory is cleared. */
#define LONG_CLEAR ((int64_t)1 << 18)

/* All bytes cleared, which is 0 in every dtype; other devices do it by their driver. New pages are left alone: who uses
   them first gets them near its processor. */
static PyObject *zeroed(pac_array *a) {
    if (!a || !a->size) return made(a);
    if (!PAC_ON_CPU(a)) {
        Py_DECREF(a);
        Py_RETURN_NOTIMPLEMENTED;
    }
    const int64_t nbytes = a->size * PAC_ITEMSIZE(a);
    char *at = pac_host_memory(a); /* captures are told in any case: a repeated launch finds other elements */
    if (a->buffer->zeroed) return (PyObject *)a;
    if (nbytes < LONG_CLEAR) memset(at, 0, (size_t)nbytes);
    else {
        Py_BEGIN_ALLOW_THREADS
        memset(at, 0, (size_t)nbytes);
        Py_END_ALLOW_THREADS
    }
    return (PyObject *)a;
}

static PyObject *filled(pac_array *a, PyObject *number) {
    if (!a) return made(a);
    const int done = pac_fill(a, number);
    if (done > 0) return (PyObject *)a;
    Py_DECREF(a);
    if (done < 0) return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}

static PyObject *filled_with_ones(pac_array *a) {
    if (!a) return made(a);
    PyObject *one = PAC_CODE(a) == PAC_BOOL ? Py_NewRef(Py_True) : PyLong_FromLong(1);
    PyObject *result = one ? filled(a, one) : NULL;
    Py_XDECREF(one);
    return result;
}

/* The dtype code of an array of one Python number; -1: it is none. */
static int code_of_number(PyObject *x) {
    if (PyFloat_CheckExact(x)) return PAC_F64;
    if (PyLong_CheckExact(x)) return PAC_I64;
    return PyBool_Check(x) ? PAC_BOOL : PyComplex_CheckExact(x) ? PAC_C128 : -1;
}

/* ---- by shape --------------------------------------------------------------------------------------------------- */

/* shape, dtype=None, device=None: `empty` of pyarray/array.py */
PAC_QUICK(new) {
    request r;
    const int placed = count == 3;
    if (!read_request(&r, args, count - placed, placed ? NULL : names, 1)) Py_RETURN_NOTIMPLEMENTED;
    if (placed) {
        if (pac_keywords(names)) Py_RETURN_NOTIMPLEMENTED;
        r.device = args[2];
    }
    return made(make(&r, PAC_F64));
}

/* shape, dtype=None, *, device=None */
PAC_QUICK(empty) {
    request r;
    return made(read_request(&r, args, count, names, 1) ? make(&r, PAC_F64) : NULL);
}

PAC_QUICK(zeros) {
    request r;
    return zeroed(read_request(&r, args, count, names, 1) ? make(&r, PAC_F64) : NULL);
}

PAC_QUICK(ones) {
    request r;
    return filled_with_ones(read_request(&r, args, count, names, 1) ? make(&r, PAC_F64) : NULL);
}

/* shape, number, dtype=None, *, device=None */
PAC_QUICK(full) {
    request r;
    const int code = count > 1 ? code_of_number(args[1]) : -1;
    if (code < 0 || !read_request(&r, args, count, names, 2)) Py_RETURN_NOTIMPLEMENTED;
    return filled(make(&r, code), args[1]);
}

/* ---- like another array ----------------------------------------------------------------------------------------- */

/* Whether its axes in order of their strides are those of C order, whatever has one element only. */
static int in_c_order(const pac_array *a) {
    if (a->key & PAC_STRIDED) return 0;
    for (int axis = 0; axis < PAC_NDIM(a) && PAC_NDIM(a) > 1; ++axis)
        if (PAC_SHAPE(a)[axis] < 2) return 0;
    return 1;
}

/* An array like the first argument; `before` arguments come before a dtype. NULL, with or without an exception:
   declined. */
static pac_array *make_like(PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t before) {
    request r;
    r.dtype = r.device = Py_None;
    if (count < before || count > before + 1 || !device_name || !PAC_IS_ARRAY(args[0])) return NULL;
    pac_array *like = (pac_array *)args[0];
    if (count > before) r.dtype = args[before];
    if (!read_keywords(&r, args + count, names) || r.device != Py_None || !in_c_order(like)) return NULL;
    const int code = r.dtype == Py_None ? PAC_CODE(like) : pac_find_code(r.dtype);
    int64_t strides[PAC_MAX_NDIM];
    if (code < 0) return NULL;
    r.ndim = PAC_NDIM(like);
    memcpy(r.shape, PAC_SHAPE(like), (size_t)r.ndim * sizeof *r.shape);
    if (!pac_fresh_strides(r.ndim, r.shape, pac_dtypes[code].itemsize, strides)) return NULL;
    return pac_array_fresh(pac_ndarray_type, code, r.ndim, r.shape, like->buffer->device,
                           (like->key & PAC_DEVICE) >> 20);
}

/* x, dtype=None */
PAC_QUICK(empty_like) { return made(make_like(args, count, names, 1)); }
PAC_QUICK(zeros_like) { return zeroed(make_like(args, count, names, 1)); }
PAC_QUICK(ones_like) { return filled_with_ones(make_like(args, count, names, 1)); }

/* x, number, dtype=None */
PAC_QUICK(full_like) {
    if (count < 2 || code_of_number(args[1]) < 0) Py_RETURN_NOTIMPLEMENTED;
    return filled(make_like(args, count, names, 2), args[1]);
}

/* ---- in a buffer ------------------------------------------------------------------------------------------------ */

/* unchecked_array(buffer, shape, strides, size, dtype, key, ptr=buffer.ptr) */
PyObject *pac_unchecked_array(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count < 6 || Py_TYPE(args[0]) != pac_buffer_type || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "unchecked_array() takes a buffer, shape, strides, size, dtype and key");
        return NULL;
    }
    const uint64_t key = PyLong_AsUnsignedLongLongMask(args[5]) & 0xFFFFFFFF & ~PAC_MARKED;
    if (PyErr_Occurred()) return NULL;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(args[1]);
    if ((Py_ssize_t)(key >> 8 & 0xFF) != ndim || (key & 0xFF) >= PAC_CODES) {
        PyErr_Format(PyExc_ValueError, "a key of rank %zd can't have the value %R", ndim, args[5]);
        return NULL;
    }
    pac_array *a = pac_array_new(pac_ndarray_type, key);
    if (!a) return NULL;
    a->size = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred() || !pac_read_numbers(args[1], PAC_SHAPE(a), ndim) ||
        !pac_read_numbers(args[2], PAC_STRIDES(a), ndim)) {
        Py_DECREF(a);
        return NULL;
    }
    pac_set_buffer(a, (pac_buffer *)Py_NewRef(args[0]));
    if (count > 6) a->ptr = (uintptr_t)PyLong_AsUnsignedLongLong(args[6]);
    if (PyErr_Occurred()) {
        Py_DECREF(a);
        return NULL;
    }
    return (PyObject *)a;
}
