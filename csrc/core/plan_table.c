/* PlanTable: a function's plans by its calls, and when one is made. */
#include "plan.h"

enum {
    CAPTURED_AT = 4, /* of equal calls, the one that is captured: a capture takes longer than the call */
    SEEN = 2048 /* calls that are counted */
};

typedef struct {
    PyObject_HEAD
    PyObject *function, *learn; /* learn(function, args, options, operands) -> (result, plan or why there is none) */
    pac_call_numbers numbers;
    pac_cache plans;            /* a plan, or the text that says why such calls have none */
    int of_types;               /* plans */
    /* How often calls came that have no plan: a hash with a number below CAPTURED_AT in its lowest bits. A wrong one
       makes a capture come early; nothing else depends on it. */
    uint64_t *seen;
    unsigned long long captures;
} plan_table;

PyTypeObject *pac_table_type;

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static int is_plan(PyObject *value) { return Py_TYPE(value) == pac_plan_type; }

static void forget(plan_table *t) {
    t->of_types = 0;
    PyMem_Free(t->seen);
    t->seen = NULL;
    pac_cache_clear(&t->plans);
}

/* Whether another call has added it meanwhile. -1 with an exception. */
static int is_there(const plan_table *t, pac_call *call, int of_types) {
    const pac_key key = pac_call_key(call, of_types);
    uint64_t at = key.hash;
    for (const pac_entry *e; (e = pac_cache_next(&t->plans, &key, &at));) {
        PyObject *value = Py_NewRef(e->value); /* what it computes may run Python, which drops the entry */
        const int holds = !of_types || pac_plan_holds(value, call);
        Py_DECREF(value);
        if (holds) return 1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Adds a plan, or why there is none. 0 with an exception. */
static int add(plan_table *t, pac_call *call, PyObject *plan) {
    const int of_types = is_plan(plan) && pac_plan_of_types(plan);
    if ((!is_plan(plan) && !PyUnicode_Check(plan)) || (is_plan(plan) && !pac_plan_fits(plan, call))) {
        PyErr_Format(PyExc_TypeError, "expected a CallPlan of %d operands and %d numbers, or why there is none, got %R",
                     call->operands, call->numbers, plan);
        return 0;
    }
    const int there = is_there(t, call, of_types);
    if (there) return there > 0;
    if (t->plans.count >= PAC_MOST_ENTRIES) forget(t);
    const pac_key key = pac_call_key(call, of_types);
    if (!pac_cache_add(&t->plans, &key, plan)) return 0;
    t->of_types += of_types;
    return 1;
}

/* ---- learning --------------------------------------------------------------------------------------------------- */

enum { COUNT_BITS = 3, COUNT = (1 << COUNT_BITS) - 1, NEVER = 0 };

/* The place of a hash, whose count is 0 if it is new: one of two, of which what came last is kept. */
static uint64_t *counted(plan_table *t, uint64_t hash, int *is_new) {
    uint64_t *seen = &t->seen[(hash >> COUNT_BITS) % (SEEN / 2) * 2], found = hash & ~(uint64_t)COUNT;
    *is_new = 0;
    if (!((seen[0] ^ hash) & ~(uint64_t)COUNT)) return seen;
    if (!((seen[1] ^ hash) & ~(uint64_t)COUNT)) found = seen[1];
    else *is_new = 1;
    seen[1] = seen[0];
    seen[0] = found;
    return seen;
}

/* How often calls of this hash came, with this one, or NEVER. */
static int count_call(plan_table *t, uint64_t hash) {
    int is_new;
    uint64_t *seen = counted(t, hash, &is_new);
    return !is_new && !(*seen & COUNT) ? NEVER : (int)(++*seen & COUNT);
}

static void count_anew(plan_table *t, uint64_t hash, int never) {
    int is_new;
    if (t->seen) *counted(t, hash, &is_new) = (hash & ~(uint64_t)COUNT) | !never;
}

/* Of types and of layouts: of both, since plans are of one or the other. */
static uint64_t types_count_hash(const pac_call *call) { return ~call->types_hash; }

/* Whether this call is to be captured. */
static int is_due(plan_table *t, const pac_call *call) {
    if (!t->seen && !(t->seen = PyMem_Calloc(SEEN, sizeof *t->seen))) return 0;
    const int of_types = count_call(t, types_count_hash(call)), of_layouts = count_call(t, call->hash);
    return of_types >= CAPTURED_AT || of_layouts >= CAPTURED_AT;
}

static PyObject *operands_of(const pac_call *call) {
    PyObject *operands = PyTuple_New(call->operands);
    for (int k = 0; operands && k < call->operands; ++k)
        PyTuple_SET_ITEM(operands, k, Py_NewRef(call->operand[k].array));
    return operands;
}

static PyObject *options_of(PyObject *const *values, PyObject *names) {
    PyObject *options = PyDict_New();
    for (Py_ssize_t k = 0; options && names && k < PyTuple_GET_SIZE(names); ++k)
        if (PyDict_SetItem(options, PyTuple_GET_ITEM(names, k), values[k]) < 0) Py_CLEAR(options);
    return options;
}

static PyObject *arguments_of(PyObject *const *args, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t k = 0; tuple && k < count; ++k) PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
    return tuple;
}

/* Calls the function by `learn`, which captures it. The call is held, its objects, too. Not inlined: what a warm call
   keeps in registers would be on the stack. */
__attribute__((noinline)) static PyObject *capture(plan_table *t, pac_call *call, PyObject *const *args,
                                                   Py_ssize_t count, PyObject *names) {
    PyObject *arguments = arguments_of(args, count), *options = options_of(args + count, names);
    PyObject *operands = operands_of(call), *found = NULL, *result = NULL, *plan;
    const uint64_t generation = pac_plan_generation;
    ++t->captures;
    count_anew(t, types_count_hash(call), 0);
    count_anew(t, call->hash, 0);
    if (arguments && options && operands)
        found = PyObject_CallFunctionObjArgs(t->learn, t->function, arguments, options, operands, NULL);
    if (found && !PyTuple_Check(found))
        PyErr_Format(PyExc_TypeError, "expected (result, plan), got %R", found);
    else if (found && PyArg_ParseTuple(found, "OO", &result, &plan)) {
        const int of_types = Py_TYPE(plan) == pac_plan_type && pac_plan_of_types(plan);
        Py_INCREF(result);
        count_anew(t, types_count_hash(call), !of_types);
        /* settings that changed meanwhile are not those that the plan was made under */
        const int is_current = generation == pac_plan_generation && generation == t->plans.generation;
        if (is_current && !add(t, call, plan)) Py_CLEAR(result);
    }
    Py_XDECREF(arguments);
    Py_XDECREF(options);
    Py_XDECREF(operands);
    Py_XDECREF(found);
    return result;
}

/* References to what plans use of a call, and to what is compared: Python may run, which changes lists of arguments and
   gives arrays other memory. */
static inline void hold_operands(const pac_call *call) {
    for (int k = 0; k < call->operands; ++k) {
        Py_INCREF(call->operand[k].array);
        Py_INCREF(call->operand[k].buffer);
    }
    for (int k = 0; k < call->numbers; ++k) Py_INCREF(call->number[k]);
}

static inline void release_operands(const pac_call *call) {
    for (int k = 0; k < call->operands; ++k) {
        Py_DECREF(call->operand[k].array);
        Py_DECREF(call->operand[k].buffer);
    }
    for (int k = 0; k < call->numbers; ++k) Py_DECREF(call->number[k]);
}

static void hold_objects(const pac_call *call) {
    for (int k = 0; k < call->objects; ++k) Py_INCREF(call->object[k]);
}

static void release_objects(const pac_call *call) {
    for (int k = 0; k < call->objects; ++k) Py_DECREF(call->object[k]);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* The result by a plan; Py_NotImplemented where there is none, with `*none` where that is known; NULL with an
   exception. */
static PyObject *planned(plan_table *t, pac_call *call, int *none) {
    *none = 0;
    for (int of_types = t->of_types > 0; of_types >= 0; --of_types) {
        const pac_key key = pac_call_key(call, of_types);
        uint64_t at = key.hash;
        for (const pac_entry *e; (e = pac_cache_next(&t->plans, &key, &at));) {
            if (!is_plan(e->value)) {
                *none = 1;
                continue;
            }
            const int computes = pac_plan_computes(e->value);
            PyObject *result = pac_plan_run(e->value, call);
            if (result != Py_NotImplemented) return result;
            *none |= !of_types; /* such a call is in other memory, or its numbers don't fit */
            if (computes) return result; /* by Python, so that the table may have changed */
            Py_DECREF(result);
        }
    }
    if (PyErr_Occurred()) return NULL; /* from comparing objects */
    Py_RETURN_NOTIMPLEMENTED;
}

PyObject *pac_table_call(PyObject *table, PyObject *const *args, size_t flags, PyObject *names) {
    plan_table *t = (plan_table *)table;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    pac_call call;
    int none, is_general = 0;
    if (!pac_plain() || !pac_call_read(&call, &t->numbers, args, count, names) || !call.operands)
        return PyObject_Vectorcall(t->function, args, flags, names);
    Py_INCREF(t);
    hold_operands(&call);
    if (t->plans.generation != pac_plan_generation) {
        forget(t);
        t->plans.generation = pac_plan_generation;
    }
    PyObject *result = planned(t, &call, &none);
    if (result != Py_NotImplemented)
        ++t->plans.hits;
    else {
        ++t->plans.misses;
        is_general = none || !is_due(t, &call);
        if (!is_general) {
            hold_objects(&call);
            Py_SETREF(result, capture(t, &call, args, count, names));
            release_objects(&call);
        }
    }
    release_operands(&call);
    if (is_general) Py_SETREF(result, PyObject_Vectorcall(t->function, args, flags, names));
    Py_DECREF(t);
    return result;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

/* PlanTable(function, learn, numbers, without) */
static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *function, *learn, *without;
    unsigned long long numbers;
    if (!PyArg_ParseTuple(args, "OOKO!", &function, &learn, &numbers, &PyTuple_Type, &without)) return NULL;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(without); ++k)
        if (!PyUnicode_Check(PyTuple_GET_ITEM(without, k)))
            return PyErr_Format(PyExc_TypeError, "expected names of keywords, got %R", without);
    plan_table *t = (plan_table *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    t->function = Py_NewRef(function);
    t->learn = Py_NewRef(learn);
    t->numbers = (pac_call_numbers){numbers, Py_NewRef(without)};
    t->plans.generation = pac_plan_generation;
    return (PyObject *)t;
}

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    plan_table *t = (plan_table *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->function);
    Py_VISIT(t->learn);
    return pac_cache_visit(&t->plans, visit, arg);
}

static int table_clear(PyObject *self) {
    plan_table *t = (plan_table *)self;
    forget(t);
    Py_XSETREF(t->function, Py_NewRef(Py_None)); /* never NULL: it may be called */
    Py_XSETREF(t->learn, Py_NewRef(Py_None));
    return 0;
}

static void table_dealloc(PyObject *self) {
    plan_table *t = (plan_table *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    forget(t);
    Py_XDECREF(t->function);
    Py_XDECREF(t->learn);
    Py_XDECREF(t->numbers.without);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *table_info(PyObject *self, PyObject *Py_UNUSED(none)) {
    const plan_table *t = (plan_table *)self;
    const pac_cache *cache = &t->plans;
    int plans = 0;
    for (int k = 0; k < cache->capacity && cache->generation == pac_plan_generation; ++k)
        plans += cache->slot[k] && is_plan(cache->slot[k]->value);
    return Py_BuildValue("{s:i,s:K,s:K,s:K}", "plans", plans, "hits", cache->hits, "misses", cache->misses, "captures",
                         t->captures);
}

static PyObject *table_forget(PyObject *self, PyObject *Py_UNUSED(none)) {
    forget((plan_table *)self);
    Py_RETURN_NONE;
}

/* entries(): (what the arguments are, plan or why there is none) of each. */
static PyObject *table_entries(PyObject *self, PyObject *Py_UNUSED(none)) {
    pac_cache copy;
    if (!pac_cache_copy(&copy, &((plan_table *)self)->plans)) return NULL;
    PyObject *entries = PyList_New(0);
    for (int k = 0; entries && k < copy.capacity; ++k) {
        if (!copy.slot[k]) continue;
        PyObject *key = pac_key_describe(&copy.slot[k]->key);
        PyObject *pair = key ? Py_BuildValue("NO", key, copy.slot[k]->value) : NULL;
        if (!pair || PyList_Append(entries, pair) < 0) Py_CLEAR(entries);
        Py_XDECREF(pair);
    }
    pac_cache_clear(&copy);
    return entries;
}

/* What a call finds: its plan or why there is none, None where it is unknown. */
static PyObject *lookup(const plan_table *t, pac_call *call) {
    for (int of_types = 1; of_types >= 0 && t->plans.generation == pac_plan_generation; --of_types) {
        const pac_key key = pac_call_key(call, of_types);
        uint64_t at = key.hash;
        for (const pac_entry *e; (e = pac_cache_next(&t->plans, &key, &at));) {
            PyObject *value = Py_NewRef(e->value);
            if (!is_plan(value) || pac_plan_holds(value, call)) return value;
            const int computes = pac_plan_computes(value);
            Py_DECREF(value);
            if (computes) break; /* by Python, so that the table may have changed */
        }
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* find(*args, **options): (what the arguments are, plan or why there is none or None), or (why they have no key, which
   argument is in the way) */
static PyObject *table_find(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const plan_table *t = (plan_table *)self;
    pac_call call;
    if (!pac_call_read(&call, &t->numbers, args, count, names))
        return Py_BuildValue("sO", call.why, call.what ? call.what : Py_None);
    if (!call.operands) return Py_BuildValue("sO", "there is no array", Py_None);
    hold_operands(&call);
    hold_objects(&call);
    const pac_key key = pac_call_key(&call, 0);
    PyObject *described = pac_key_describe(&key);
    PyObject *found = described ? Py_BuildValue("NN", described, lookup(t, &call)) : NULL;
    release_operands(&call);
    release_objects(&call);
    return found;
}

static PyMethodDef table_methods[] = {
    {"cache_info", table_info, METH_NOARGS, "Counts of plans, hits, misses and captures."},
    {"clear", table_forget, METH_NOARGS, "Drops all plans."},
    {"entries", table_entries, METH_NOARGS, "(What the arguments are, plan or why there is none) of each key."},
    {"find", (PyCFunction)(void (*)(void))table_find, METH_FASTCALL | METH_KEYWORDS,
     "What these arguments are, and their plan, why there is none, or None."},
    {0},
};
static PyType_Slot table_slots[] = {
    {Py_tp_new, table_new},     {Py_tp_dealloc, table_dealloc}, {Py_tp_traverse, table_traverse},
    {Py_tp_clear, table_clear}, {Py_tp_methods, table_methods},
    {Py_tp_doc, "A function's plans by its calls: PlanTable(function, learn, numbers, without)."},
    {0},
};
static PyType_Spec table_spec = {"pyarray._core.PlanTable", sizeof(plan_table), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, table_slots};

extern int pac_add_bound_launch_type(PyObject *), pac_add_plan_type(PyObject *);
extern int pac_add_planned_function_type(PyObject *);

int pac_add_plan_types(PyObject *module) {
    pac_table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
    if (!pac_table_type || PyModule_AddType(module, pac_table_type) < 0) return -1;
    if (PyModule_AddIntConstant(module, "CAPTURED_AT", CAPTURED_AT) < 0) return -1;
    if (PyModule_AddIntConstant(module, "MOST_PLANS", PAC_MOST_ENTRIES) < 0) return -1;
    if (pac_add_bound_launch_type(module) < 0 || pac_add_plan_type(module) < 0) return -1;
    return pac_add_planned_function_type(module);
}
