/* VariantTable: the launchers of a kernel's variants, by the key of their arguments. */
#include "launcher.h"
#include <string.h>
#include <structmember.h>

PyTypeObject *pac_variant_table_type;

/* ---- keys ------------------------------------------------------------------------------------------------------- */

PyObject *pac_key_object(const pac_key *key) {
    PyObject *words = PyBytes_FromStringAndSize((const char *)key->words, key->count * (Py_ssize_t)sizeof *key->words);
    if (!words || !key->objects) return words;
    const Py_ssize_t count = PyList_GET_SIZE(key->objects);
    PyObject *object = PyTuple_New(1 + count);
    if (!object) {
        Py_DECREF(words);
        return NULL;
    }
    PyTuple_SET_ITEM(object, 0, words);
    for (Py_ssize_t k = 0; k < count; ++k)
        PyTuple_SET_ITEM(object, 1 + k, Py_NewRef(PyList_GET_ITEM(key->objects, k)));
    return object;
}

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_of_words(const uint64_t *words, Py_ssize_t count) {
    uint64_t hash = (uint64_t)count;
    for (Py_ssize_t k = 0; k < count; ++k) hash = mixed(hash, words[k]);
    return hash;
}

/* 0 with an exception, for a key that can't be hashed. */
static int hash_of_object(PyObject *object, uint64_t *hash) {
    const Py_hash_t own = PyObject_Hash(object);
    *hash = mixed(*hash, (uint64_t)own);
    return own != -1;
}

/* The words of a key's object. NULL with an exception. */
static PyObject *words_of(PyObject *object) {
    PyObject *words = PyTuple_Check(object) && PyTuple_GET_SIZE(object) ? PyTuple_GET_ITEM(object, 0) : object;
    if (PyBytes_Check(words)) return words;
    PyErr_Format(PyExc_TypeError, "expected a key of TreeDef.key, got %R", object);
    return NULL;
}

/* ---- looking up ------------------------------------------------------------------------------------------------- */

/* Whether the objects of an entry's key are equal to those of `key`. -1 with an exception. Comparing may run Python. */
static int same_objects(PyObject *object, PyObject *objects) {
    const Py_ssize_t count = objects ? PyList_GET_SIZE(objects) : 0;
    if ((PyTuple_Check(object) ? PyTuple_GET_SIZE(object) - 1 : 0) != count) return 0;
    int same = 1;
    for (Py_ssize_t k = 0; k < count && same > 0; ++k)
        same = PyObject_RichCompareBool(PyTuple_GET_ITEM(object, 1 + k), PyList_GET_ITEM(objects, k), Py_EQ);
    return same;
}

/* The entry's number; -1: there is none, or there is an exception. */
static int number_of(pac_variant_table *table, const pac_key *key) {
    uint64_t hash = hash_of_words(key->words, key->count);
    const Py_ssize_t nbytes = key->count * (Py_ssize_t)sizeof *key->words;
    for (Py_ssize_t k = 0; key->objects && k < PyList_GET_SIZE(key->objects); ++k)
        if (!hash_of_object(PyList_GET_ITEM(key->objects, k), &hash)) return -1;
again:
    for (uint64_t at = hash; table->places; ++at) {
        const int k = table->index[at & (uint64_t)(table->places - 1)];
        if (k < 0) break;
        const pac_variant_entry *entry = &table->entry[k];
        if (entry->hash != hash) continue;
        PyObject *words = PyTuple_Check(entry->key) ? PyTuple_GET_ITEM(entry->key, 0) : entry->key;
        if (PyBytes_GET_SIZE(words) != nbytes || memcmp(PyBytes_AS_STRING(words), key->words, (size_t)nbytes)) continue;
        if (!key->objects && words == entry->key) return k;
        const uint64_t changes = table->changes;
        PyObject *object = Py_NewRef(entry->key);
        const int same = same_objects(object, key->objects);
        Py_DECREF(object);
        if (same < 0) return -1;
        if (changes != table->changes) goto again; /* what was compared has changed the table */
        if (same) return k;
    }
    return -1;
}

/* Puts an entry's number where it is looked for. There is a free place. */
static void place(pac_variant_table *table, int number) {
    const uint64_t last = (uint64_t)(table->places - 1);
    uint64_t at = table->entry[number].hash;
    while (table->index[at & last] >= 0) ++at;
    table->index[at & last] = number;
}

/* Room for one more entry. 0 with an exception. */
static int grow(pac_variant_table *table) {
    if (!pac_grow((void **)&table->entry, table->count, &table->capacity, sizeof *table->entry)) return 0;
    if (table->places > 2 * table->count) return 1;
    const int places = table->places ? 2 * table->places : 8;
    int *index = PyMem_Realloc(table->index, (size_t)places * sizeof *index);
    if (!index) return PyErr_NoMemory() != NULL;
    table->index = index;
    table->places = places;
    memset(index, -1, (size_t)places * sizeof *index);
    for (int k = 0; k < table->count; ++k) place(table, k);
    return 1;
}

PyObject *pac_variant_find(pac_variant_table *table, const pac_key *key) {
    const int number = number_of(table, key);
    return number < 0 ? NULL : Py_NewRef(table->entry[number].launcher);
}

/* The same for a key's object. -2 with an exception. */
static int number_of_object(pac_variant_table *table, PyObject *object) {
    PyObject *words = words_of(object);
    if (!words) return -2;
    const Py_ssize_t count = PyBytes_GET_SIZE(words) / (Py_ssize_t)sizeof(uint64_t);
    pac_key key = {PyMem_Malloc((size_t)(count + 1) * sizeof(uint64_t)), (int)count, NULL};
    if (!key.words) {
        PyErr_NoMemory();
        return -2;
    }
    memcpy(key.words, PyBytes_AS_STRING(words), (size_t)count * sizeof *key.words);
    if (PyTuple_Check(object)) {
        key.objects = PySequence_List(object);
        if (key.objects && PyList_SetSlice(key.objects, 0, 1, NULL) < 0) Py_CLEAR(key.objects);
    }
    const int number = PyErr_Occurred() ? -1 : number_of(table, &key);
    Py_XDECREF(key.objects);
    PyMem_Free(key.words);
    return number < 0 && PyErr_Occurred() ? -2 : number;
}

/* ---- methods ---------------------------------------------------------------------------------------------------- */

/* get(key): the launcher, or None. */
static PyObject *table_get(PyObject *self, PyObject *key) {
    pac_variant_table *table = (pac_variant_table *)self;
    const int number = number_of_object(table, key);
    if (number == -2) return NULL;
    return Py_NewRef(number < 0 ? Py_None : table->entry[number].launcher);
}

static int table_contains(PyObject *self, PyObject *key) {
    const int number = number_of_object((pac_variant_table *)self, key);
    return number == -2 ? -1 : number >= 0;
}

/* put(key, launcher) */
static PyObject *table_put(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    pac_variant_table *table = (pac_variant_table *)self;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "put() takes a key and a launcher");
        return NULL;
    }
    const int number = number_of_object(table, args[0]);
    if (number == -2) return NULL;
    ++table->changes;
    if (number >= 0) {
        Py_SETREF(table->entry[number].launcher, Py_NewRef(args[1]));
        Py_RETURN_NONE;
    }
    PyObject *words = words_of(args[0]);
    const Py_ssize_t objects = PyTuple_Check(args[0]) ? PyTuple_GET_SIZE(args[0]) : 0;
    uint64_t hash = hash_of_words((const uint64_t *)PyBytes_AS_STRING(words), PyBytes_GET_SIZE(words) / 8);
    for (Py_ssize_t k = 1; k < objects; ++k)
        if (!hash_of_object(PyTuple_GET_ITEM(args[0], k), &hash)) return NULL;
    if (!grow(table)) return NULL;
    table->entry[table->count] = (pac_variant_entry){hash, Py_NewRef(args[0]), Py_NewRef(args[1])};
    place(table, table->count++);
    Py_RETURN_NONE;
}

/* Drops all. What is dropped may run Python, which finds the table empty. */
static int table_clear(PyObject *self) {
    pac_variant_table *table = (pac_variant_table *)self;
    pac_variant_entry *entry = table->entry;
    const int count = table->count;
    table->entry = NULL;
    table->count = table->capacity = table->places = 0;
    PyMem_Free(table->index);
    table->index = NULL;
    ++table->changes;
    for (int k = 0; k < count; ++k) {
        Py_DECREF(entry[k].key);
        Py_DECREF(entry[k].launcher);
    }
    PyMem_Free(entry);
    return 0;
}

static PyObject *clear_method(PyObject *self, PyObject *Py_UNUSED(none)) {
    table_clear(self);
    Py_RETURN_NONE;
}

/* items(): a list of (key, launcher) */
static PyObject *table_items(PyObject *self, PyObject *Py_UNUSED(none)) {
    pac_variant_table *table = (pac_variant_table *)self;
    PyObject *items = PyList_New(0);
    for (int k = 0; items && k < table->count; ++k) {
        PyObject *pair = PyTuple_Pack(2, table->entry[k].key, table->entry[k].launcher);
        if (!pair || PyList_Append(items, pair) < 0) Py_CLEAR(items);
        Py_XDECREF(pair);
    }
    return items;
}

/* hit(): counts a launch that has found its variant. */
static PyObject *table_hit(PyObject *self, PyObject *Py_UNUSED(none)) {
    ++((pac_variant_table *)self)->hits;
    Py_RETURN_NONE;
}

static Py_ssize_t table_length(PyObject *self) { return ((pac_variant_table *)self)->count; }

static int table_traverse(PyObject *self, visitproc visit, void *arg) {
    pac_variant_table *table = (pac_variant_table *)self;
    Py_VISIT(Py_TYPE(self));
    for (int k = 0; k < table->count; ++k) {
        Py_VISIT(table->entry[k].key);
        Py_VISIT(table->entry[k].launcher);
    }
    return 0;
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
    {"hits", T_ULONGLONG, offsetof(pac_variant_table, hits), READONLY, "Launches that have found their variant."},
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
