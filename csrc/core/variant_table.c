/* VariantTable: the launchers of a kernel's variants, by the key of their arguments. */
#include "launcher.h"
#include <structmember.h>

PyTypeObject *pac_variant_table_type;

/* ---- keys ------------------------------------------------------------------------------------------------------- */

PyObject *pac_key_object(const pac_key *key) {
    PyObject *words = PyBytes_FromStringAndSize((const char *)key->word, key->words * (Py_ssize_t)sizeof *key->word);
    if (!words || !key->objects) return words;
    PyObject *object = PyTuple_New(1 + key->objects);
    if (!object) {
        Py_DECREF(words);
        return NULL;
    }
    PyTuple_SET_ITEM(object, 0, words);
    for (int k = 0; k < key->objects; ++k) PyTuple_SET_ITEM(object, 1 + k, Py_NewRef(key->object[k]));
    return object;
}

/* The key that an object says, which it borrows from. 0 with an exception. */
static int read_key(PyObject *object, pac_key *key) {
    const int is_tuple = PyTuple_Check(object) && PyTuple_GET_SIZE(object) > 1;
    PyObject *words = is_tuple ? PyTuple_GET_ITEM(object, 0) : object;
    if (!PyBytes_Check(words)) {
        PyErr_Format(PyExc_TypeError, "expected a key of TreeDef.key, got %R", object);
        return 0;
    }
    *key = (pac_key){.words = (int)(PyBytes_GET_SIZE(words) / (Py_ssize_t)sizeof *key->word),
                     .objects = is_tuple ? (int)PyTuple_GET_SIZE(object) - 1 : 0,
                     .word = (uint64_t *)PyBytes_AS_STRING(words),
                     .object = is_tuple ? &PyTuple_GET_ITEM(object, 1) : NULL};
    for (int k = 0; k < key->words; ++k) key->hash = pac_mixed(key->hash, key->word[k]);
    return 1;
}

static pac_entry *entry_of(pac_variant_table *table, const pac_key *key) {
    uint64_t at = key->hash;
    return pac_cache_next(&table->launchers, key, &at);
}

PyObject *pac_variant_find(pac_variant_table *table, const pac_key *key) {
    const pac_entry *entry = entry_of(table, key);
    return entry ? Py_NewRef(entry->value) : NULL;
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

/* get(key): the launcher, or None. */
static PyObject *table_get(PyObject *self, PyObject *object) {
    pac_key key;
    PyObject *found = read_key(object, &key) ? pac_variant_find((pac_variant_table *)self, &key) : NULL;
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

static int table_contains(PyObject *self, PyObject *object) {
    pac_key key;
    const int found = read_key(object, &key) && entry_of((pac_variant_table *)self, &key);
    return found || !PyErr_Occurred() ? found : -1;
}

/* put(key, launcher) */
static PyObject *table_put(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    pac_variant_table *table = (pac_variant_table *)self;
    pac_key key;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "put() takes a key and a launcher");
        return NULL;
    }
    if (!read_key(args[0], &key)) return NULL;
    pac_entry *entry = entry_of(table, &key);
    if (entry) Py_SETREF(entry->value, Py_NewRef(args[1]));
    else if (PyErr_Occurred() || !pac_cache_add(&table->launchers, &key, args[1])) return NULL;
    Py_RETURN_NONE;
}

static int table_clear(PyObject *self) {
    pac_cache_clear(&((pac_variant_table *)self)->launchers);
    return 0;
}

static PyObject *clear_method(PyObject *self, PyObject *Py_UNUSED(none)) {
    table_clear(self);
    Py_RETURN_NONE;
}

/* items(): a list of (key, launcher) */
static PyObject *table_items(PyObject *self, PyObject *Py_UNUSED(none)) {
    pac_cache copy;
    if (!pac_cache_copy(&copy, &((pac_variant_table *)self)->launchers)) return NULL;
    PyObject *items = PyList_New(0);
    for (int k = 0; items && k < copy.capacity; ++k) {
        if (!copy.slot[k]) continue;
        PyObject *key = pac_key_object(&copy.slot[k]->key);
        PyObject *pair = key ? Py_BuildValue("NO", key, copy.slot[k]->value) : NULL;
        if (!pair || PyList_Append(items, pair) < 0) Py_CLEAR(items);
        Py_XDECREF(pair);
    }
    pac_cache_clear(&copy);
    return items;
}

/* hit(): counts a launch that has found its variant. */
static PyObject *table_hit(PyObject *self, PyObject *Py_UNUSED(none)) {
    ++((pac_variant_table *)self)->launchers.hits;
    Py_RETURN_NONE;
}

static Py_ssize_t table_length(PyObject *self) { return ((pac_variant_table *)self)->launchers.count; }

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return pac_cache_visit(&((pac_variant_table *)self)->launchers, visit, arg);
}

static void table_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    table_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef table_methods[] = {
    {"get", table_get, METH_O, "get(key)"},
    {"put", (PyCFunction)(void (*)(void))table_put, METH_FASTCALL, "put(key, launcher)"},
    {"clear", clear_method, METH_NOARGS, "clear()"},
    {"items", table_items, METH_NOARGS, "items()"},
    {"hit", table_hit, METH_NOARGS, "hit()"},
    {0},
};
static PyMemberDef table_members[] = {
    {"hits", T_ULONGLONG, offsetof(pac_variant_table, launchers.hits), READONLY,
     "Launches that have found their variant."},
    {0},
};
static PyType_Slot table_slots[] = {
    {Py_tp_new, PyType_GenericNew},       {Py_tp_dealloc, table_dealloc},   {Py_tp_traverse, table_traverse},
    {Py_tp_clear, table_clear},           {Py_tp_methods, table_methods},   {Py_tp_members, table_members},
    {Py_sq_contains, table_contains},     {Py_mp_length, table_length},
    {Py_tp_doc, "Launchers by the keys of their arguments."},
    {0},
};
static PyType_Spec table_spec = {"pyarray._core.VariantTable", sizeof(pac_variant_table), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, table_slots};

int pac_add_variant_table_type(PyObject *module) {
    pac_variant_table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
    return pac_variant_table_type ? PyModule_AddType(module, pac_variant_table_type) : -1;
}
