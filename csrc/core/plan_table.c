/* PlanTable: a function's plans by its calls, and when one is made. */
#include "plan.h"
#include <string.h>

enum {
    CAPTURED_AT = 4, /* of equal calls, the one that is captured: a capture takes longer than the call */
    MOST_PLANS = 1024, /* then the table starts anew */
    SEEN = 2048 /* calls that are counted */
};

/* A kind of calls: its plan, or the text that says why it has none. */
typedef struct {
    pac_key key;
    PyObject *plan;
} entry;

typedef struct {
    PyObject_HEAD
    PyObject *function, *learn; /* learn(function, args, options, operands) -> (result, plan or why there is none) */
    uint64_t numbers;           /* a bit for each position of which Python's numbers are operands */
    uint64_t generation;
    entry **slots; /* `capacity` of them, a power of two */
    int count, capacity, of_types;
    /* How often calls came that have no plan: a hash with a number below CAPTURED_AT in its lowest bits. A wrong one
       makes a capture come early; nothing else depends on it. */
    uint64_t *seen;
    unsigned long long hits, misses, captures;
} plan_table;

PyTypeObject *pac_table_type;

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static void free_entry(entry *e) {
    pac_key_clear(&e->key);
    Py_CLEAR(e->plan);
    PyMem_Free(e);
}

/* What is dropped may run Python, which finds an empty table. */
static void forget(plan_table *t) {
    entry **slots = t->slots;
    const int capacity = t->capacity;
    t->slots = NULL;
    t->count = t->capacity = t->of_types = 0;
    PyMem_Free(t->seen);
    t->seen = NULL;
    for (int k = 0; k < capacity; ++k)
        if (slots[k]) free_entry(slots[k]);
    PyMem_Free(slots);
}

/* The next entry of the call from `*at` on, which is moved behind it. */
static entry *find(const plan_table *t, const pac_call *call, int of_types, uint64_t *at) {
    if (!t->capacity) return NULL;
    for (;; ++*at) {
        entry *e = t->slots[*at & (uint64_t)(t->capacity - 1)];
        if (!e) return NULL;
        if (pac_key_equals(&e->key, call, of_types)) {
            ++*at;
            return e;
        }
    }
}

static void put(entry **slots, int capacity, entry *e) {
    uint64_t at = e->key.hash;
    while (slots[at & (uint64_t)(capacity - 1)]) ++at;
    slots[at & (uint64_t)(capacity - 1)] = e;
}

/* Room for one more: at most half of the slots are used. 0 with an exception. */
static int grow(plan_table *t) {
    if (2 * (t->count + 1) <= t->capacity) return 1;
    const int capacity = t->capacity ? 2 * t->capacity : 16;
    entry **slots = PyMem_Calloc((size_t)capacity, sizeof *slots);
    if (!slots) {
        PyErr_NoMemory();
        return 0;
    }
    for (int k = 0; k < t->capacity; ++k)
        if (t->slots[k]) put(slots, capacity, t->slots[k]);
    PyMem_Free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    return 1;
}

/* Whether another call has added it meanwhile. */
static int is_there(const plan_table *t, const pac_call *call, int of_types) {
    uint64_t at = of_types ? call->types_hash : call->hash;
    for (entry *e; (e = find(t, call, of_types, &at));)
        if (!of_types || pac_plan_holds(e->plan, call)) return 1;
    return 0;
}

/* Adds a plan, or why there is none. 0 with an exception. */
static int add(plan_table *t, const pac_call *call, PyObject *plan) {
    const int is_plan = Py_TYPE(plan) == pac_plan_type, of_types = is_plan && pac_plan_of_types(plan);
    if ((!is_plan && !PyUnicode_Check(plan)) || (is_plan && !pac_plan_fits(plan, call))) {
        PyErr_Format(PyExc_TypeError, "expected a CallPlan of %d operands and %d numbers, or why there is none, got %R",
                     call->operands, call->numbers, plan);
        return 0;
    }
    if (is_there(t, call, of_types)) return 1;
    if (t->count >= MOST_PLANS) forget(t);
    entry *e = PyMem_Calloc(1, sizeof *e);
    if (!e) return PyErr_NoMemory() != NULL;
    if (!pac_key_keep(&e->key, call, of_types) || !grow(t)) {
        free_entry(e);
        return 0;
    }
    e->plan = Py_NewRef(plan);
    put(t->slots, t->capacity, e);
    ++t->count;
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

/* Calls the function by `learn`, which captures it. The key is copied first: lists among the arguments may change. */
static PyObject *capture(plan_table *t, pac_call *call, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *arguments = arguments_of(args, count), *options = options_of(args + count, names);
    PyObject *operands = operands_of(call), *found = NULL, *result = NULL, *plan;
    PyObject *objects = arguments_of(call->object, call->objects), *numbers = arguments_of(call->number, call->numbers);
    const uint64_t generation = pac_plan_generation;
    ++t->captures;
    count_anew(t, types_count_hash(call), 0);
    count_anew(t, call->hash, 0);
    if (arguments && options && operands && objects && numbers)
        found = PyObject_CallFunctionObjArgs(t->learn, t->function, arguments, options, operands, NULL);
    if (found && !PyTuple_Check(found))
        PyErr_Format(PyExc_TypeError, "expected (result, plan), got %R", found);
    else if (found && PyArg_ParseTuple(found, "OO", &result, &plan)) {
        const int of_types = Py_TYPE(plan) == pac_plan_type && pac_plan_of_types(plan);
        Py_INCREF(result);
        count_anew(t, types_count_hash(call), !of_types);
        /* settings that changed meanwhile are not those that the plan was made under */
        if (generation == pac_plan_generation && t->generation == generation && !add(t, call, plan)) Py_CLEAR(result);
    }
    Py_XDECREF(arguments);
    Py_XDECREF(options);
    Py_XDECREF(operands);
    Py_XDECREF(objects);
    Py_XDECREF(numbers);
    Py_XDECREF(found);
    return result;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* The result by a plan; Py_NotImplemented where there is none, with `*none` where that is known; NULL with an
   exception. */
static PyObject *planned(plan_table *t, pac_call *call, int *none) {
    *none = 0;
    for (int of_types = t->of_types > 0; of_types >= 0; --of_types) {
        uint64_t at = of_types ? call->types_hash : call->hash;
        for (entry *e; (e = find(t, call, of_types, &at));) {
            if (Py_TYPE(e->plan) != pac_plan_type) {
                *none = 1;
                continue;
            }
            PyObject *result = pac_plan_run(e->plan, call);
            if (result != Py_NotImplemented) return result; /* else no Python has run, and the table is as it was */
            *none |= !of_types; /* such a call is in other memory */
            Py_DECREF(result);
        }
    }
    Py_RETURN_NOTIMPLEMENTED;
}

PyObject *pac_table_call(PyObject *table, PyObject *const *args, size_t flags, PyObject *names) {
    plan_table *t = (plan_table *)table;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    pac_call call;
    int none;
    if (!pac_plain() || !pac_call_read(&call, t->numbers, args, count, names) || !call.operands)
        return PyObject_Vectorcall(t->function, args, flags, names);
    if (t->generation != pac_plan_generation) {
        forget(t);
        t->generation = pac_plan_generation;
    }
    Py_INCREF(t);
    PyObject *result = planned(t, &call, &none);
    if (result != Py_NotImplemented)
        ++t->hits;
    else {
        Py_DECREF(result);
        ++t->misses;
        result = !none && is_due(t, &call) ? capture(t, &call, args, count, names)
                                           : PyObject_Vectorcall(t->function, args, flags, names);
    }
    Py_DECREF(t);
    return result;
}

/* ---- the object ------------------------------------------------------------------------------------------------- */

/* PlanTable(function, learn, numbers) */
static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(options)) {
    PyObject *function, *learn;
    unsigned long long numbers;
    if (!PyArg_ParseTuple(args, "OOK", &function, &learn, &numbers)) return NULL;
    plan_table *t = (plan_table *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    t->function = Py_NewRef(function);
    t->learn = Py_NewRef(learn);
    t->numbers = numbers;
    t->generation = pac_plan_generation;
    return (PyObject *)t;
}

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    plan_table *t = (plan_table *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->function);
    Py_VISIT(t->learn);
    for (int k = 0; k < t->capacity; ++k)
        if (t->slots[k]) Py_VISIT(t->slots[k]->plan);
    return 0;
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
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *table_info(PyObject *self, PyObject *Py_UNUSED(none)) {
    const plan_table *t = (plan_table *)self;
    const int is_current = t->generation == pac_plan_generation;
    int plans = 0;
    for (int k = 0; k < t->capacity && is_current; ++k)
        plans += t->slots[k] && Py_TYPE(t->slots[k]->plan) == pac_plan_type;
    return Py_BuildValue("{s:i,s:K,s:K,s:K}", "plans", plans, "hits", t->hits, "misses", t->misses, "captures",
                         t->captures);
}

static PyObject *table_forget(PyObject *self, PyObject *Py_UNUSED(none)) {
    forget((plan_table *)self);
    Py_RETURN_NONE;
}

/* entries(): (what the arguments are, plan or why there is none) of each. */
static PyObject *table_entries(PyObject *self, PyObject *Py_UNUSED(none)) {
    const plan_table *t = (plan_table *)self;
    PyObject *entries = PyList_New(0);
    for (int k = 0; entries && k < t->capacity; ++k) {
        if (!t->slots[k]) continue;
        PyObject *key = pac_key_describe(&t->slots[k]->key);
        PyObject *pair = key ? Py_BuildValue("NO", key, t->slots[k]->plan) : NULL;
        if (!pair || PyList_Append(entries, pair) < 0) Py_CLEAR(entries);
        Py_XDECREF(pair);
    }
    return entries;
}

/* What a call finds: its plan or why there is none, None where it is unknown. */
static PyObject *lookup(const plan_table *t, const pac_call *call) {
    for (int of_types = 1; of_types >= 0 && t->generation == pac_plan_generation; --of_types) {
        uint64_t at = of_types ? call->types_hash : call->hash;
        for (entry *e; (e = find(t, call, of_types, &at));)
            if (Py_TYPE(e->plan) != pac_plan_type || pac_plan_holds(e->plan, call)) return Py_NewRef(e->plan);
    }
    Py_RETURN_NONE;
}

/* find(*args, **options): (what the arguments are, plan or why there is none or None), or (why they have no key, which
   argument is in the way) */
static PyObject *table_find(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const plan_table *t = (plan_table *)self;
    pac_call call;
    pac_key key;
    if (!pac_call_read(&call, t->numbers, args, count, names))
        return Py_BuildValue("sO", call.why, call.what ? call.what : Py_None);
    if (!call.operands) return Py_BuildValue("sO", "there is no array", Py_None);
    if (!pac_key_keep(&key, &call, 0)) return NULL;
    PyObject *described = pac_key_describe(&key), *found = described ? lookup(t, &call) : NULL;
    pac_key_clear(&key);
    if (found) return Py_BuildValue("NN", described, found);
    Py_XDECREF(described);
    return NULL;
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
    {Py_tp_doc, "A function's plans by its calls: PlanTable(function, learn, numbers)."},
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
    if (PyModule_AddIntConstant(module, "MOST_PLANS", MOST_PLANS) < 0) return -1;
    if (pac_add_bound_launch_type(module) < 0 || pac_add_plan_type(module) < 0) return -1;
    return pac_add_planned_function_type(module);
}
