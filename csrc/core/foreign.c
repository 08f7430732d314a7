/* Arrays of other libraries as launches see them, and arrays of ours on their memory. */
#include "dlpack.h"
#include <stdlib.h>
#include <string.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

/* A type whose arrays are read through DLPack's table of C functions. Entries are never given up, so that views may
   point to them; what is no more than the type's own stays with it. */
typedef struct pac_producer {
    PyTypeObject *type;
    const DLPackExchangeAPI *api;
    PyObject *count_write, *is_recording, *forward; /* of torch: functions, and the module's dictionary; else NULL */
} pac_producer;

enum { MOST_PRODUCERS = 64 };
static pac_producer producers[MOST_PRODUCERS];
static int producer_count;

static PyObject *host, *tensor_facts, *stream_of; /* the CPU; functions of pyarray/dlpack.py and pyarray/tensors.py */
static PyObject *scoped_default, *overrides; /* a context variable; settings that were set, by name */
static PyObject *device_setting, *table_name, *export_name, *grad_name, *neg_name, *conj_name, *level_name;
static unsigned long long used; /* arrays that launches have used in place */

/* register_foreign(cpu, facts, stream, scoped, settings): `facts(type)` says how tensors of a class of torch are asked,
   False of classes that are left to the general way, None of other libraries'; `stream(device)` is the device's current
   one; `scoped` and `settings` have the default device. */
PyObject *pac_register_foreign(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *cpu, *facts, *stream, *scoped, *settings;
    if (!PyArg_ParseTuple(args, "OOOOO!", &cpu, &facts, &stream, &scoped, &PyDict_Type, &settings)) return NULL;
    Py_XSETREF(host, Py_NewRef(cpu));
    Py_XSETREF(tensor_facts, Py_NewRef(facts));
    Py_XSETREF(stream_of, Py_NewRef(stream));
    Py_XSETREF(scoped_default, Py_NewRef(scoped));
    Py_XSETREF(overrides, Py_NewRef(settings));
    Py_RETURN_NONE;
}

int pac_default_is_host(void) {
    PyObject *scoped;
    if (PyContextVar_Get(scoped_default, NULL, &scoped) < 0) return -1;
    const int is_scoped = scoped && scoped != Py_None, is_host = scoped == host;
    Py_XDECREF(scoped);
    if (is_scoped) return is_host;
    PyObject *text = PyDict_GetItemWithError(overrides, device_setting);
    if (text) return PyUnicode_Check(text) && !PyUnicode_CompareWithASCIIString(text, "cpu");
    if (PyErr_Occurred()) return -1;
    const char *variable = getenv("PYARRAY_DEVICE");
    return !variable || !*variable || !strcmp(variable, "cpu");
}

PyObject *pac_foreign_uses(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return PyLong_FromUnsignedLongLong(used);
}

/* After an exception: 0 where the general way is to be taken, -1 for what is no error, as an interrupt. */
static int declined(void) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

int pac_foreign_complete(pac_foreign *view, int code, int readonly, uint64_t device_code) {
    const int ndim = view->ndim;
    int64_t *shape = view->dims, *strides = view->dims + ndim;
    const int64_t itemsize = pac_dtypes[code].itemsize;
    int64_t size = 1, step = itemsize, low = 0, high = itemsize;
    int contiguous = 1, empty = 0, repeats = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
        const int64_t n = shape[axis], stride = strides[axis];
        if (n < 0) return 0;
        if (!n) empty = 1;
        if (n < 2) continue;
        int64_t extent;
        contiguous &= stride == step;
        repeats |= !stride;
        /* repeated elements may be more than can be counted */
        if (__builtin_mul_overflow(size, n, &size) || __builtin_mul_overflow(step, n, &step) ||
            __builtin_mul_overflow(n - 1, stride, &extent) ||
            __builtin_add_overflow(extent, extent < 0 ? low : high, extent < 0 ? &low : &high))
            return 0;
    }
    view->size = empty ? 0 : size;
    view->low = empty ? 0 : low;
    view->nbytes = empty ? 0 : high - low;
    contiguous |= empty;
    view->key = (uint64_t)code | (uint64_t)ndim << 8 | (contiguous ? 0 : PAC_STRIDED) | device_code << 20;
    if (readonly || (!contiguous && repeats)) view->key |= PAC_READONLY;
    return !view->size || view->ptr;
}

/* ---- NumPy ------------------------------------------------------------------------------------------------------ */

/* The dtype with a number of NumPy's, which has two for types of the same size; -1: none. */
static int numpy_code(int number) {
    static const int8_t codes[] = {
        [NPY_BOOL] = PAC_BOOL,   [NPY_BYTE] = PAC_I8,     [NPY_UBYTE] = PAC_U8,
        [NPY_SHORT] = PAC_I16,   [NPY_USHORT] = PAC_U16,  [NPY_INT] = PAC_I32,
        [NPY_UINT] = PAC_U32,    [NPY_LONGLONG] = PAC_I64, [NPY_ULONGLONG] = PAC_U64,
        [NPY_LONG] = sizeof(long) == 8 ? PAC_I64 : PAC_I32,
        [NPY_ULONG] = sizeof(long) == 8 ? PAC_U64 : PAC_U32,
        [NPY_FLOAT] = PAC_F32,   [NPY_DOUBLE] = PAC_F64,  [NPY_LONGDOUBLE] = -1,
        [NPY_CFLOAT] = PAC_C64,  [NPY_CDOUBLE] = PAC_C128,
    };
    static const int8_t extensions[] = {PAC_BF16, PAC_E4M3, PAC_E5M2}; /* of ml_dtypes: numbered when it is imported */
    if (number >= 0 && number < (int)sizeof codes) return codes[number];
    if (number == NPY_HALF) return PAC_F16;
    for (size_t k = 0; k < sizeof extensions / sizeof *extensions; ++k)
        if (number == ((PyArray_Descr *)pac_dtypes[extensions[k]].numpy)->type_num) return extensions[k];
    return -1;
}

/* A flag of what numpy.broadcast_arrays gives: it warns when it is written, and says that it is read-only. */
#define WARNS_OF_WRITES (1u << 31)

/* Of the exact class: a subclass may say anything of its shape and address, and a mask would be lost. */
static int read_numpy(PyArrayObject *x, pac_foreign *view) {
    const PyArray_Descr *descr = PyArray_DESCR(x);
    const int flags = PyArray_FLAGS(x), code = numpy_code(descr->type_num), ndim = PyArray_NDIM(x);
    if (code < 0 || descr->byteorder == NPY_OPPBYTE || !(flags & NPY_ARRAY_ALIGNED) || ndim > view->most) return 0;
    const int readonly = !(flags & NPY_ARRAY_WRITEABLE) || (unsigned)flags & WARNS_OF_WRITES;
    view->ptr = (uintptr_t)PyArray_DATA(x);
    view->ndim = ndim;
    for (int axis = 0; axis < ndim; ++axis) {
        view->dims[axis] = PyArray_DIMS(x)[axis];
        view->dims[ndim + axis] = PyArray_STRIDES(x)[axis];
    }
    view->device = host;
    view->object = (PyObject *)x;
    view->producer = NULL;
    view->managed = NULL;
    return pac_foreign_complete(view, code, readonly, 0);
}

/* ---- types with DLPack's table of C functions ------------------------------------------------------------------- */

/* The table that a type has itself, or, if `inherited`, that of a base. NULL: it has none, or one of another version. A
   subclass may say something else of its memory. */
static const DLPackExchangeAPI *table_of(PyTypeObject *type, int inherited) {
    PyObject *capsule = _PyType_Lookup(type, table_name);
    if (!capsule || !_PyType_Lookup(type, export_name) || !PyCapsule_IsValid(capsule, PAC_DL_EXCHANGE)) return NULL;
    if (!inherited && !(type->tp_dict && PyDict_Contains(type->tp_dict, table_name) == 1)) return NULL;
    const DLPackExchangeAPI *api = PyCapsule_GetPointer(capsule, PAC_DL_EXCHANGE);
    while (api && api->version.major > 1) api = api->older;
    const int usable = api && api->version.major == 1 && api->managed_tensor_from && api->current_stream;
    return usable ? api : NULL;
}

static int learn(PyTypeObject *type, pac_producer *entry) {
    PyObject *facts = PyObject_CallOneArg(tensor_facts, (PyObject *)type);
    if (!facts) return declined();
    const int of_torch = PyTuple_Check(facts);
    *entry = (pac_producer){.type = type, .api = facts == Py_False ? NULL : table_of(type, of_torch)};
    int known = entry->api && (!of_torch || entry->api->tensor_from);
    if (known && of_torch &&
        !PyArg_ParseTuple(facts, "OOO!", &entry->count_write, &entry->is_recording, &PyDict_Type, &entry->forward))
        known = declined();
    if (known == 1) {
        Py_INCREF(type);
        Py_XINCREF(entry->count_write);
        Py_XINCREF(entry->is_recording);
        Py_XINCREF(entry->forward);
    }
    Py_DECREF(facts);
    return known;
}

/* What is known of a type. 1: `*found` says it; 0: nothing; -1: an exception. */
static int find_producer(PyTypeObject *type, const pac_producer **found) {
    for (int k = 0; k < producer_count; ++k) {
        if (producers[k].type != type) continue;
        *found = &producers[k];
        return 1;
    }
    if (!tensor_facts || producer_count >= MOST_PRODUCERS || !_PyType_Lookup(type, table_name)) return 0;
    pac_producer entry;
    const int known = learn(type, &entry);
    if (known != 1) return known;
    if (producer_count >= MOST_PRODUCERS) return 0; /* asking has run Python; what it holds is the process's */
    producers[producer_count] = entry;
    *found = &producers[producer_count++];
    return 1;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

/* The truth of what was just made. -1 with an exception. */
static int truth(PyObject *made) {
    const int is_true = made ? PyObject_IsTrue(made) : -1;
    Py_XDECREF(made);
    return is_true;
}

/* Whether a tensor's memory is its values, and no gradient is dropped: the questions of pyarray/tensors.py. Those that
   have no answer here, the table's functions refuse. */
static int is_plain(const pac_producer *of, PyObject *x) {
    int yes = truth(PyObject_GetAttr(x, grad_name));
    if (yes > 0) yes = truth(PyObject_CallNoArgs(of->is_recording));
    if (!yes) yes = truth(PyObject_CallMethodNoArgs(x, neg_name));
    if (yes) return yes < 0 ? declined() : 0;
    PyObject *level = PyDict_GetItemWithError(of->forward, level_name);
    return level && PyLong_Check(level) && PyLong_AsLong(level) < 0 ? 1 : PyErr_Occurred() ? declined() : 0;
}

static int is_conjugated(PyObject *x) { return truth(PyObject_CallMethodNoArgs(x, conj_name)); }

/* Whether what the producer's current stream got comes before what ours gets, as on the CPU. Else the general way says
   so to both. */
static int in_order(const pac_producer *of, const DLDevice *at, PyObject *device) {
    if (device == host) return 1;
    void *theirs;
    if (of->api->current_stream(at->device_type, at->device_id, &theirs)) return declined();
    PyObject *number = PyObject_CallOneArg(stream_of, device);
    const uintptr_t ours = number ? (uintptr_t)PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    return PyErr_Occurred() ? declined() : ours == (uintptr_t)theirs;
}

/* Reads what a type with a table has. `keeps`: the view is to have a tensor that outlives the object's own changes. */
static int read_produced(const pac_producer *of, PyObject *x, pac_foreign *view, int keeps) {
    DLTensor borrowed;
    const DLTensor *tensor = &borrowed;
    int readonly = 0, done = of->count_write ? is_plain(of, x) : 1;
    if (done != 1) return done;
    view->managed = NULL;
    view->object = x;
    view->producer = of;
    if (of->count_write && !keeps) {
        if (of->api->tensor_from(x, &borrowed)) return declined();
    } else {
        DLManagedTensorVersioned *managed = NULL;
        if (of->api->managed_tensor_from(x, &managed)) return declined();
        view->managed = managed;
        /* what is written to a copy would be lost */
        if (managed->version.major != 1 || managed->flags & PAC_DL_IS_COPIED) {
            pac_foreign_release(view);
            return 0;
        }
        tensor = &managed->dl_tensor;
        readonly = (managed->flags & PAC_DL_READ_ONLY) != 0;
    }
    const DLDevice at = tensor->device;
    done = pac_read_dltensor(tensor, readonly, view);
    if (done < 0) done = declined();
    if (done == 1) done = pac_foreign_aligned(view);
    if (done == 1) done = in_order(of, &at, view->device);
    if (done == 1 && of->count_write && pac_dtypes[view->key & 0xFF].kind == 'c') {
        const int conjugated = is_conjugated(x);
        done = conjugated < 0 ? declined() : !conjugated;
    }
    if (done != 1) {
        pac_foreign_release(view);
        return done;
    }
    if (of->count_write && !(view->key & PAC_READONLY)) view->key |= PAC_WATCHED;
    return 1;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static int read_any(PyObject *x, pac_foreign *view, int keeps) {
    const pac_producer *of;
    if (!host) return 0;
    int done = Py_TYPE(x) == &PyArray_Type ? 2 : find_producer(Py_TYPE(x), &of);
    if (done > 0) done = done == 2 ? read_numpy((PyArrayObject *)x, view) : read_produced(of, x, view, keeps);
    return done;
}

int pac_foreign_read(PyObject *x, pac_foreign *view) {
    view->dims = view->small;
    view->most = PAC_FOREIGN_NDIM;
    return read_any(x, view, 0);
}

void pac_foreign_used(int count) { used += (unsigned)count; }

void pac_foreign_release(pac_foreign *view) {
    if (view->managed) pac_delete_tensor(view->managed, 1);
    view->managed = NULL;
}

static int count_write(PyObject *function, PyObject *x) {
    PyObject *tensors = PyTuple_Pack(1, x), *done = tensors ? PyObject_CallOneArg(function, tensors) : NULL;
    Py_XDECREF(tensors);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int pac_foreign_before_write(const pac_foreign *view) {
    return view->key & PAC_WATCHED ? count_write(view->producer->count_write, view->object) : 0;
}

/* before_write of a buffer: `pair` is (function, tensor). */
static PyObject *tell(PyObject *pair, PyObject *Py_UNUSED(none)) {
    if (count_write(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1))) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef before_write = {"before_write", tell, METH_NOARGS, "Tells autograd that the tensor is written."};

static PyObject *on_numpy(const pac_foreign *view) {
    pac_buffer *buffer = pac_buffer_wrap(view->device, view->ptr + (uintptr_t)view->low, view->nbytes, view->object);
    if (!buffer) return NULL;
    return (PyObject *)pac_array_on(pac_ndarray_type, buffer, view->key, view->dims, view->size, view->ptr);
}

PyObject *pac_foreign_array(PyObject *x) {
    int64_t dims[2 * PAC_MAX_NDIM];
    pac_foreign view = {.dims = dims, .most = PAC_MAX_NDIM};
    const int done = read_any(x, &view, 1);
    if (done != 1) return done ? NULL : Py_NewRef(Py_None);
    if (!view.producer) return on_numpy(&view);
    PyObject *teller = NULL;
    if (view.key & PAC_WATCHED) {
        PyObject *pair = PyTuple_Pack(2, view.producer->count_write, x);
        teller = pair ? PyCFunction_New(&before_write, pair) : NULL;
        Py_XDECREF(pair);
        if (!teller) {
            pac_foreign_release(&view);
            return NULL;
        }
    }
    PyObject *array = pac_array_on_tensor(&view, view.managed, 1, teller);
    Py_XDECREF(teller);
    return array;
}

/* foreign_array(x) */
PyObject *pac_foreign_array_of(PyObject *Py_UNUSED(module), PyObject *x) { return pac_foreign_array(x); }

int pac_add_foreign(void) {
    import_array1(-1);
    table_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    export_name = PyUnicode_InternFromString("__dlpack__");
    grad_name = PyUnicode_InternFromString("requires_grad");
    neg_name = PyUnicode_InternFromString("is_neg");
    conj_name = PyUnicode_InternFromString("is_conj");
    level_name = PyUnicode_InternFromString("_current_level");
    device_setting = PyUnicode_InternFromString("PYARRAY_DEVICE");
    return device_setting && table_name && export_name && grad_name && neg_name && conj_name && level_name ? 0 : -1;
}
