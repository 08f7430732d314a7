/* The cache of plans: a hash table of values by complete keys. */
#include "cache.h"
#include <string.h>

uint64_t pac_plan_generation;

/* clear_plans(): what they launch was compiled under other settings. */
PyObject *pac_clear_plans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    ++pac_plan_generation;
    Py_RETURN_NONE;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static void free_entry(pac_entry *entry) {
    PyObject **object = entry->key.object;
    for (int k = 0; k < entry->key.objects; ++k) Py_XDECREF(object[k]);
    Py_XDECREF(entry->value);
    PyMem_Free(entry);
}

/* An entry in one block: itself, its words, its objects. NULL with an exception. */
static pac_entry *new_entry(const pac_key *key, PyObject *value) {
    const size_t words = (size_t)key->words * sizeof *key->word, objects = (size_t)key->objects * sizeof *key->object;
    pac_entry *entry = PyMem_Malloc(sizeof *entry + words + objects);
    if (!entry) {
        PyErr_NoMemory();
        return NULL;
    }
    char *const behind = (char *)(entry + 1);
    entry->key = (pac_key){key->hash, key->words, key->objects, (uint64_t *)behind, (PyObject **)(behind + words)};
    memcpy(entry->key.word, key->word, words);
    for (int k = 0; k < key->objects; ++k) entry->key.object[k] = Py_NewRef(key->object[k]);
    entry->value = Py_NewRef(value);
    return entry;
}

void pac_cache_clear(pac_cache *cache) {
    pac_entry **slot = cache->slot;
    const int capacity = cache->capacity;
    cache->slot = NULL;
    cache->count = cache->capacity = 0;
    ++cache->changes;
    for (int k = 0; k < capacity; ++k)
        if (slot[k]) free_entry(slot[k]);
    PyMem_Free(slot);
}

static void put(pac_entry **slot, int capacity, pac_entry *entry) {
    uint64_t at = entry->key.hash;
    while (slot[at & (uint64_t)(capacity - 1)]) ++at;
    slot[at & (uint64_t)(capacity - 1)] = entry;
}

/* Room for one more. 0 with an exception. */
static int grow(pac_cache *cache) {
    if (2 * (cache->count + 1) <= cache->capacity) return 1;
    const int capacity = cache->capacity ? 2 * cache->capacity : 8;
    pac_entry **slot = PyMem_Calloc((size_t)capacity, sizeof *slot);
    if (!slot) return PyErr_NoMemory() != NULL;
    for (int k = 0; k < cache->capacity; ++k)
        if (cache->slot[k]) put(slot, capacity, cache->slot[k]);
    PyMem_Free(cache->slot);
    cache->slot = slot;
    cache->capacity = capacity;
    return 1;
}

int pac_cache_add(pac_cache *cache, const pac_key *key, PyObject *value) {
    pac_entry *entry = new_entry(key, value);
    if (!entry) return 0;
    if (cache->count >= PAC_MOST_ENTRIES) pac_cache_clear(cache);
    if (!grow(cache)) {
        free_entry(entry);
        return 0;
    }
    put(cache->slot, cache->capacity, entry);
    ++cache->count;
    ++cache->changes;
    return 1;
}

int pac_cache_copy(pac_cache *copy, const pac_cache *cache) {
    *copy = (pac_cache){0};
    for (int k = 0; k < cache->capacity; ++k) {
        if (!cache->slot[k] || pac_cache_add(copy, &cache->slot[k]->key, cache->slot[k]->value)) continue;
        pac_cache_clear(copy);
        return 0;
    }
    return 1;
}

int pac_cache_visit(const pac_cache *cache, visitproc visit, void *arg) {
    for (int k = 0; k < cache->capacity; ++k) {
        if (!cache->slot[k]) continue;
        Py_VISIT(cache->slot[k]->value);
        for (int n = 0; n < cache->slot[k]->key.objects; ++n) Py_VISIT(cache->slot[k]->key.object[n]);
    }
    return 0;
}

/* ---- looking up ------------------------------------------------------------------------------------------------- */

/* -1 with an exception. Classes are the same object or different. */
static int same_object(PyObject *a, PyObject *b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b) || PyType_Check(a)) return 0;
    return PyObject_RichCompareBool(a, b, Py_EQ);
}

/* Whether an entry's objects are equal to those of a key. Comparing may run Python, after which the entry is looked at
   only if the cache hasn't changed. -1 with an exception. */
static int same_objects(const pac_cache *cache, const pac_entry *entry, const pac_key *key) {
    const uint64_t changes = cache->changes;
    int same = 1;
    for (int k = 0; k < key->objects && same > 0 && changes == cache->changes; ++k) {
        PyObject *object = Py_NewRef(entry->key.object[k]);
        same = same_object(object, key->object[k]);
        Py_DECREF(object);
    }
    return same;
}

pac_entry *pac_cache_search(const pac_cache *cache, const pac_key *key, uint64_t *at) {
    while (cache->capacity) {
        pac_entry *entry = cache->slot[*at & (uint64_t)(cache->capacity - 1)];
        if (!entry) return NULL;
        ++*at;
        if (!pac_same_words(&entry->key, key)) continue;
        const uint64_t changes = cache->changes;
        const int same = same_objects(cache, entry, key);
        if (same < 0) return NULL;
        if (changes != cache->changes) *at = key->hash;
        else if (same) return entry;
    }
    return NULL;
}
