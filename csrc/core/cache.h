/* The cache of plans: values by complete keys. Elementwise operations, library functions and kernels have one each. */
#pragma once
#include "core.h"

/* What an entry is looked up by: words and objects, which are compared whole, objects by class and equality. The hash
   only finds the place, and says nothing that words and objects don't. */
typedef struct {
    uint64_t hash;
    int words, objects;
    uint64_t *word;
    PyObject **object;
} pac_key;

typedef struct {
    pac_key key;
    PyObject *value;
} pac_entry;

/* All zeros is an empty one. */
typedef struct {
    pac_entry **slot; /* `capacity` of them, a power of two, at most half of them used */
    int count, capacity;
    uint64_t changes;    /* of entries: who has run Python sees whether what was found is still there */
    uint64_t generation; /* of the settings that its values were made under */
    unsigned long long hits, misses;
} pac_cache;

/* Of settings that compiled code depends on: what plans launch was made under one of them. */
extern uint64_t pac_plan_generation;

/* Then a cache starts anew. */
enum { PAC_MOST_ENTRIES = 1024 };

static inline uint64_t pac_mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Word by word: a call has just written its words, and wider loads would wait for these stores. */
static inline int pac_same_words(const pac_key *a, const pac_key *b) {
    if (a->hash != b->hash || a->words != b->words || a->objects != b->objects) return 0;
    for (int k = 0; k < a->words; ++k)
        if (a->word[k] != b->word[k]) return 0;
    return 1;
}

/* The next entry of an equal key, from the place `*at` on, which begins as the key's hash and is moved behind it. NULL:
   there is none, or there is an exception, where comparing objects has run Python. */
pac_entry *pac_cache_search(const pac_cache *cache, const pac_key *key, uint64_t *at);

/* The same; mostly it is the entry at that place. */
static inline pac_entry *pac_cache_next(const pac_cache *cache, const pac_key *key, uint64_t *at) {
    pac_entry *entry = cache->capacity ? cache->slot[*at & (uint64_t)(cache->capacity - 1)] : NULL;
    if (!entry || key->objects || !pac_same_words(&entry->key, key)) return pac_cache_search(cache, key, at);
    ++*at;
    return entry;
}

/* Adds an entry with copies of words and references to objects and value; others of an equal key stay before it. 0 with
   an exception. */
int pac_cache_add(pac_cache *cache, const pac_key *key, PyObject *value);

/* A copy, whose entries stay while Python runs, which may change the cache; to be cleared. 0 with an exception. */
int pac_cache_copy(pac_cache *copy, const pac_cache *cache);

/* Drops all. What is dropped may run Python, which finds the cache empty. */
void pac_cache_clear(pac_cache *cache);

/* Drops all that was made under settings which have changed since (`clear_plans`). */
static inline void pac_cache_refresh(pac_cache *cache) {
    if (cache->generation == pac_plan_generation) return;
    cache->generation = pac_plan_generation;
    pac_cache_clear(cache);
}

int pac_cache_visit(const pac_cache *cache, visitproc visit, void *arg);
