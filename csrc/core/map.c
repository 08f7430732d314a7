/* Map: an elementwise operation with its plans, by the types of operands. */
#include "cache.h"
#include "foreign.h"
#include "launch.h"
#include "map.h"
#include <string.h>

/* A compiled kernel for one layout. */
typedef struct {
    uint64_t layout_key;
    pac_launch launch;
} map_launch;

/* What is computed for one tuple of types, with its kernels by layout. */
typedef struct {
    PyObject_HEAD
    int domain, code; /* dtype codes: of what numbers are passed as, of the result */
    int launches, capacity;
    map_launch *launch;
} map_plan;

typedef struct {
    PyObject_HEAD
    PyObject *resolve; /* (operands, out) -> (code of the domain, code of the result) or None */
    PyObject *compile; /* (operands, out, domain, views, patterns, ndim, tiled) -> (entry, pool, function, holder) */
    pac_cache plans;   /* a map_plan, or None where such calls are not planned, by `type_word` of operands and output */
    const char *why;   /* the last call that was declined */
} map_object;

PyTypeObject *pac_map_type;
static PyTypeObject *plan_type;
enum { MOST_LAUNCHES = 256 };

static void forget_launches(map_plan *plan) {
    map_launch *launch = plan->launch;
    const int launches = plan->launches;
    plan->launch = NULL;
    plan->launches = plan->capacity = 0;
    for (int n = 0; n < launches; ++n) pac_launch_clear(&launch[n].launch);
    PyMem_Free(launch);
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* The part of the key for an operand: dtype and device of an array, the type of a number; 0: not planned. */
static uint64_t type_word(PyObject *x) {
    if (PAC_IS_ARRAY(x)) {
        const uint64_t key = ((pac_array *)x)->key;
        return key & PAC_MARKED ? 0 : (key & (PAC_DEVICE | 0xFF)) | 1 << 8;
    }
    return PyFloat_CheckExact(x) ? 1 : PyLong_CheckExact(x) ? 2 : PyBool_Check(x) ? 3 : PyComplex_CheckExact(x) ? 4 : 0;
}

static PyObject *operand_list(PyObject *const *x, int count) {
    PyObject *list = PyTuple_New(count);
    for (int k = 0; list && k < count; ++k) PyTuple_SET_ITEM(list, k, Py_NewRef(x[k]));
    return list;
}

static PyObject *new_plan(PyObject *codes) {
    int domain, code;
    if (codes == Py_None) return Py_NewRef(codes);
    if (!PyArg_ParseTuple(codes, "ii", &domain, &code)) return NULL;
    map_plan *plan = (map_plan *)plan_type->tp_alloc(plan_type, 0);
    if (!plan) return NULL;
    plan->domain = domain;
    plan->code = code;
    return (PyObject *)plan;
}

/* Words of types mostly differ in the lowest bits. */
static pac_key key_of(uint64_t *types) {
    uint64_t hash = 0;
    for (int k = 0; k <= PAC_MAP_OPERANDS; ++k) hash += types[k] * (0x9E3779B97F4A7C15u >> 2 * k | 1);
    return (pac_key){hash ^ hash >> 32, PAC_MAP_OPERANDS + 1, 0, types, NULL};
}

/* The plan of these types, or None: found, or asked for. NULL with an exception. */
static PyObject *plan_for(map_object *map, uint64_t *types, PyObject *const *x, int count, PyObject *out) {
    const pac_key key = key_of(types);
    uint64_t at = key.hash;
    const pac_entry *entry = pac_cache_next(&map->plans, &key, &at);
    if (entry) return Py_NewRef(entry->value);
    PyObject *operands = operand_list(x, count);
    PyObject *codes = operands ? PyObject_CallFunction(map->resolve, "OO", operands, out ? out : Py_None) : NULL;
    PyObject *plan = codes ? new_plan(codes) : NULL;
    Py_XDECREF(operands);
    Py_XDECREF(codes);
    if (plan && !pac_cache_add(&map->plans, &key, plan)) Py_CLEAR(plan);
    return plan;
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static int pack(pac_array *const *arrays, PyObject *const *x, int count, const map_plan *plan,
                const pac_map_layout *layout, int64_t *slots) {
    int n = 0;
    for (int k = 0; k < count; ++k) {
        if (!arrays[k]) {
            const int used = pac_pack_number(x[k - 1], plan->domain, &slots[n]);
            if (!used) return 0;
            n += used;
            continue;
        }
        const pac_map_view *view = &layout->views[k];
        slots[n++] = (int64_t)arrays[k]->ptr;
        for (int axis = 0; axis < view->ndim; ++axis) slots[n++] = view->shape[axis];
        for (int axis = 0; axis < view->ndim && view->strided; ++axis) slots[n++] = view->strides[axis];
    }
    return n;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

/* Each view as (shape, strides, axes of the output), None for numbers. */
static PyObject *describe(pac_array *const *arrays, int count, const pac_map_layout *layout) {
    PyObject *views = PyTuple_New(count);
    for (int k = 0; views && k < count; ++k) {
        const pac_map_view *view = &layout->views[k];
        PyObject *item = Py_NewRef(Py_None);
        if (arrays[k]) {
            int64_t axes[PAC_MAP_NDIM];
            int n = 0;
            for (int axis = 0; axis < layout->ndim; ++axis)
                if (view->axes >> axis & 1) axes[n++] = axis;
            Py_SETREF(item, Py_BuildValue("NNN", pac_tuple_of(view->shape, view->ndim),
                                          pac_tuple_of(view->strides, view->ndim), pac_tuple_of(axes, n)));
        }
        if (!item) Py_CLEAR(views);
        else PyTuple_SET_ITEM(views, k, item);
    }
    return views;
}

static map_launch *launch_for(map_plan *plan, PyObject *compile, PyObject *const *x, pac_array *const *arrays,
                              int count, const pac_map_layout *layout) {
    const uint64_t key = pac_map_layout_key(count, arrays, layout);
    for (int k = 0; k < plan->launches; ++k)
        if (plan->launch[k].layout_key == key) return &plan->launch[k];
    PyObject *operands = operand_list(x, count - 1), *views = describe(arrays, count, layout), *made = NULL;
    const uint64_t before = pac_plan_generation;
    if (operands && views)
        made = PyObject_CallFunction(compile, "OOiOii", operands, arrays[0], plan->domain, views, layout->ndim,
                                     layout->tiled);
    Py_XDECREF(operands);
    Py_XDECREF(views);
    map_launch launch = {.layout_key = key};
    const int read = made && pac_launch_read(made, &launch.launch);
    Py_XDECREF(made);
    if (!read) return NULL;
    /* compiling runs Python, where settings may change: such a call isn't planned */
    const int changed = before != pac_plan_generation;
    if (!changed && plan->launches >= MOST_LAUNCHES) forget_launches(plan);
    if (changed || !pac_grow((void **)&plan->launch, plan->launches, &plan->capacity, sizeof launch)) {
        pac_launch_clear(&launch.launch);
        return NULL;
    }
    plan->launch[plan->launches] = launch;
    return &plan->launch[plan->launches++];
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static pac_array *new_result(const map_plan *plan, int count, pac_array *const *arrays, int ndim,
                             const int64_t *shape) {
    pac_array *like = NULL;
    for (int k = 1; k < count && !like; ++k) like = arrays[k];
    pac_array *out = pac_array_fresh(pac_ndarray_type, plan->code, ndim, shape, like->buffer->device,
                                     (like->key & PAC_DEVICE) >> 20);
    int64_t size;
    if (!out) return NULL;
    pac_map_result_strides(count - 1, arrays + 1, ndim, shape, PAC_ITEMSIZE(out), PAC_STRIDES(out));
    if (!pac_is_contiguous(ndim, shape, PAC_STRIDES(out), PAC_ITEMSIZE(out), &size)) out->key |= PAC_STRIDED;
    return out;
}

static int fits_out(const pac_array *out, int ndim, const int64_t *shape) {
    if (out->key & (PAC_READONLY | PAC_MARKED) || PAC_NDIM(out) != ndim) return 0;
    for (int axis = 0; axis < ndim; ++axis)
        if (PAC_SHAPE(out)[axis] != shape[axis] || (shape[axis] > 1 && !PAC_STRIDES(out)[axis])) return 0;
    return 1;
}

static const char RESIZED[] = "an array was resized meanwhile";

static PyObject *declined(map_object *map, const char *why) {
    map->why = why;
    Py_RETURN_NOTIMPLEMENTED;
}

/* A launch into memory whose owner is told first: that may drop the launch, and give arrays other memory. */
static int tell_and_launch(const pac_launch *launch, pac_array *const *arrays, int count, const int64_t *slots,
                           int used, int64_t size) {
    pac_launch held = *launch;
    Py_INCREF(held.function);
    Py_INCREF(held.holder);
    PyObject *buffers[PAC_MAP_OPERANDS + 1];
    for (int k = 0; k < count; ++k) buffers[k] = arrays[k] ? Py_NewRef((PyObject *)arrays[k]->buffer) : NULL;
    const int done = pac_tell_owner(arrays[0]->buffer) && pac_launch_run(&held, slots, used, size);
    for (int k = 0; k < count; ++k) Py_XDECREF(buffers[k]);
    pac_launch_clear(&held);
    return done;
}

/* What a plan says, which the caller holds: allocating and compiling may run Python. `relayouts` was read before the
   shape. As `call`. */
static PyObject *run(map_object *map, map_plan *plan, PyObject *const *x, pac_array **arrays, int count, PyObject *out,
                     int ndim, const int64_t *shape, uint64_t relayouts, int dry) {
    int64_t slots[PAC_MAP_SLOTS];
    pac_map_layout layout;
    for (int k = 1; k < count; ++k) /* before anything is allocated */
        if (!arrays[k] && !pac_pack_number(x[k - 1], plan->domain, slots))
            return declined(map, "a number is not in the range of the type that it is computed in");
    if (dry) Py_RETURN_NONE;
    pac_array *result = out ? (pac_array *)Py_NewRef(out) : new_result(plan, count, arrays, ndim, shape);
    if (!result) return NULL;
    if (relayouts != pac_relayouts) {
        Py_DECREF(result);
        return declined(map, RESIZED);
    }
    if (!result->size) return (PyObject *)result;
    arrays[0] = result;
    pac_map_merge(count, arrays, &layout);
    const map_launch *launch = launch_for(plan, map->compile, x, arrays, count, &layout);
    if (relayouts != pac_relayouts) launch = NULL; /* compiling ran Python */
    const int used = launch ? pack(arrays, x, count, plan, &layout, slots) : 0;
    if (!launch || !(result->key & PAC_WATCHED
                         ? tell_and_launch(&launch->launch, arrays, count, slots, used, result->size)
                         : pac_launch_run(&launch->launch, slots, used, result->size))) {
        Py_DECREF(result);
        if (PyErr_Occurred()) return NULL;
        return declined(map, relayouts != pac_relayouts ? RESIZED : "settings changed while it was compiled");
    }
    ++map->plans.hits;
    return (PyObject *)result;
}

static PyObject *call(map_object *map, PyObject *const *x, int operands, PyObject *out, int broadcasts, int dry);

/* A call with copies in the place of operands whose elements would be overwritten before they are read. */
static PyObject *call_with_copies(map_object *map, PyObject *const *x, int operands, PyObject *out, int broadcasts) {
    PyObject *copied[PAC_MAP_OPERANDS] = {0}, *result = NULL;
    int k = 0;
    for (; k < operands; ++k) {
        const int aliases = PAC_IS_ARRAY(x[k]) && pac_map_aliases((pac_array *)x[k], (pac_array *)out);
        copied[k] = aliases ? pac_map_call(pac_copy_map, &x[k], 1, NULL, 0) : Py_NewRef(x[k]);
        if (!copied[k] || copied[k] == Py_NotImplemented) break;
    }
    if (k == operands) result = call(map, copied, operands, out, broadcasts, 0);
    else if (copied[k]) result = Py_NewRef(Py_NotImplemented);
    for (k = 0; k < operands; ++k) Py_XDECREF(copied[k]);
    return result;
}

/* The call's result, new or `out`; Py_NotImplemented, of nothing done, where the general way is to be taken; NULL with
   an exception. `broadcasts`: operands broadcast to `out`, which may have more elements than they. `dry`: nothing is
   done, the result is None. */
static PyObject *call(map_object *map, PyObject *const *x, int operands, PyObject *out, int broadcasts, int dry) {
    uint64_t types[PAC_MAP_OPERANDS + 1] = {0};
    pac_array *arrays[PAC_MAP_OPERANDS + 1] = {0};
    const int count = operands + 1;
    const uint64_t relayouts = pac_relayouts;
    uint64_t device = 0;
    int found = 0;
    if (!pac_plain()) return declined(map, "launches are observed, or in debug mode");
    pac_cache_refresh(&map->plans);
    for (int k = 0; k < count; ++k) {
        PyObject *item = k < operands ? x[k] : out;
        if (!item) break;
        if (!(types[k] = type_word(item)) || (k == operands && !PAC_IS_ARRAY(item)))
            return declined(map, "an operand is neither an array without marks nor a number of Python's own classes");
        if (!PAC_IS_ARRAY(item)) continue;
        arrays[k < operands ? k + 1 : 0] = (pac_array *)item;
        if (found++ && device != (types[k] & PAC_DEVICE)) return declined(map, "the arrays are on several devices");
        device = types[k] & PAC_DEVICE;
    }
    int64_t shape[PAC_MAP_NDIM];
    if (!found) return declined(map, "there is no array");
    const int ndim = pac_map_broadcast(operands + broadcasts, arrays + !broadcasts, shape);
    if (ndim < 0) return declined(map, "the shapes don't broadcast, or to too many axes or elements");
    if (out && !fits_out(arrays[0], ndim, shape))
        return declined(map, "the output can't be written as it is: its shape or its memory");
    for (int k = 1; out && !dry && k < count; ++k)
        if (arrays[k] && pac_map_aliases(arrays[k], arrays[0]))
            return call_with_copies(map, x, operands, out, broadcasts);
    PyObject *plan = plan_for(map, types, x, operands, out), *result = NULL;
    if (plan == Py_None) result = declined(map, "the types have no plan, or a number's value decides what is computed");
    else if (plan) result = run(map, (map_plan *)plan, x, arrays, count, out, ndim, shape, relayouts, dry);
    Py_XDECREF(plan);
    return result;
}

/* The operands, with arrays on the memory of other libraries' in their place, as the general way puts them on the CPU.
   How many there are; `shared` has references. 0: none, or others are needed; -1 with an exception. */
static int share(PyObject *const *x, int operands, const PyObject *out, PyObject **shared) {
    int found = 0, on_cpu = out && PAC_IS_ARRAY(out) && PAC_ON_CPU((const pac_array *)out);
    for (int k = 0; k < operands; ++k) on_cpu |= PAC_IS_ARRAY(x[k]) && PAC_ON_CPU((pac_array *)x[k]);
    for (int k = 0; k < operands && on_cpu; ++k) {
        shared[k] = type_word(x[k]) ? Py_NewRef(x[k]) : pac_foreign_array(x[k]);
        found = !shared[k] ? -1 : shared[k] == Py_None ? 0 : found + (shared[k] != x[k]);
        if (found >= 0 && shared[k] != Py_None) continue;
        for (; k >= 0; --k) Py_CLEAR(shared[k]);
        return found;
    }
    return found;
}

PyObject *pac_map_call(PyObject *self, PyObject *const *x, int operands, PyObject *out, int broadcasts) {
    map_object *map = (map_object *)self;
    PyObject *result = call(map, x, operands, out, broadcasts, 0), *shared[PAC_MAP_OPERANDS] = {0};
    if (result == Py_NotImplemented && pac_plain()) {
        const int found = share(x, operands, broadcasts ? out : NULL, shared);
        if (found) Py_SETREF(result, found > 0 ? call(map, shared, operands, out, broadcasts, 0) : NULL);
        for (int k = 0; k < operands; ++k) Py_XDECREF(shared[k]);
    }
    map->plans.misses += result == Py_NotImplemented;
    return result;
}

/* map.run(out, *operands): `out` is None for a new result. */
static PyObject *map_run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || count > PAC_MAP_OPERANDS + 1) {
        PyErr_Format(PyExc_TypeError, "run() takes an output and 1 to %d operands", PAC_MAP_OPERANDS);
        return NULL;
    }
    return pac_map_call(self, args + 1, (int)count - 1, args[0] == Py_None ? NULL : args[0], 0);
}

/* map.explain(out, *operands): why `run` would decline the call, or None. */
static PyObject *map_explain(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 2 || count > PAC_MAP_OPERANDS + 1) {
        PyErr_Format(PyExc_TypeError, "explain() takes an output and 1 to %d operands", PAC_MAP_OPERANDS);
        return NULL;
    }
    map_object *map = (map_object *)self;
    PyObject *result = call(map, args + 1, (int)count - 1, args[0] == Py_None ? NULL : args[0], 0, 1);
    if (result == Py_NotImplemented) Py_SETREF(result, PyUnicode_FromString(map->why));
    return result;
}

static PyObject *map_info(PyObject *self, PyObject *Py_UNUSED(none)) {
    const map_object *map = (map_object *)self;
    const pac_cache *cache = &map->plans;
    int plans = 0;
    for (int k = 0; k < cache->capacity && cache->generation == pac_plan_generation; ++k)
        plans += cache->slot[k] && Py_TYPE(cache->slot[k]->value) == plan_type;
    return Py_BuildValue("{s:i,s:K,s:K}", "plans", plans, "hits", cache->hits, "misses", cache->misses);
}

/* map.assign(out, operand): the operand broadcasts to `out`. */
static PyObject *map_assign(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "assign() takes an output and an operand");
        return NULL;
    }
    return pac_map_call(self, args + 1, 1, args[0], 1);
}

static PyObject *map_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *resolve, *compile;
    if (!PyArg_ParseTuple(args, "OO", &resolve, &compile)) return NULL;
    map_object *map = (map_object *)type->tp_alloc(type, 0);
    if (!map) return NULL;
    map->resolve = Py_NewRef(resolve);
    map->compile = Py_NewRef(compile);
    return (PyObject *)map;
}

static int map_traverse(PyObject *self, visitproc visit, void *arg) {
    map_object *map = (map_object *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(map->resolve);
    Py_VISIT(map->compile);
    return pac_cache_visit(&map->plans, visit, arg);
}

static int map_clear(PyObject *self) {
    map_object *map = (map_object *)self;
    pac_cache_clear(&map->plans);
    Py_CLEAR(map->resolve);
    Py_CLEAR(map->compile);
    return 0;
}

static void map_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    map_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg) {
    const map_plan *plan = (map_plan *)self;
    Py_VISIT(Py_TYPE(self));
    for (int n = 0; n < plan->launches; ++n) PAC_LAUNCH_VISIT(plan->launch[n].launch);
    return 0;
}

static int plan_clear(PyObject *self) {
    forget_launches((map_plan *)self);
    return 0;
}

static void plan_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    forget_launches((map_plan *)self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot plan_slots[] = {
    {Py_tp_dealloc, plan_dealloc}, {Py_tp_traverse, plan_traverse}, {Py_tp_clear, plan_clear},
    {Py_tp_doc, "What is computed for one tuple of types, with its kernels by layout."},
    {0},
};
static PyType_Spec plan_spec = {"pyarray._core.MapPlan", sizeof(map_plan), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                plan_slots};
static PyMethodDef map_methods[] = {
    {"run", (PyCFunction)(void (*)(void))map_run, METH_FASTCALL, "run(out, *operands)"},
    {"assign", (PyCFunction)(void (*)(void))map_assign, METH_FASTCALL, "assign(out, operand)"},
    {"explain", (PyCFunction)(void (*)(void))map_explain, METH_FASTCALL,
     "explain(out, *operands): why `run` would decline the call, or None."},
    {"cache_info", map_info, METH_NOARGS, "Counts of plans, hits and misses: calls that were declined."},
    {0},
};
static PyType_Slot map_slots[] = {
    {Py_tp_new, map_new},         {Py_tp_dealloc, map_dealloc}, {Py_tp_traverse, map_traverse},
    {Py_tp_clear, map_clear},     {Py_tp_methods, map_methods},
    {Py_tp_doc, "An elementwise operation with its plans, by the types of operands: Map(resolve, compile)."},
    {0},
};
static PyType_Spec map_spec = {"pyarray._core.Map", sizeof(map_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, map_slots};

int pac_add_map_type(PyObject *module) {
    pac_map_type = (PyTypeObject *)PyType_FromSpec(&map_spec);
    plan_type = (PyTypeObject *)PyType_FromSpec(&plan_spec);
    return pac_map_type && plan_type ? PyModule_AddType(module, pac_map_type) : -1;
}
