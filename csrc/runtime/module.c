/* Shared objects of compiled kernels. */
#include <dlfcn.h>
#include <stdio.h>

#include "internal.h"

static _Thread_local char last_error[1024];

static void keep_error(void)
{
    const char *reason = dlerror();
    snprintf(last_error, sizeof last_error, "%s", reason ? reason : "unknown reason");
}

uintptr_t pa_module_open(const char *path)
{
    /* Everything is bound now: an unknown symbol is an error here and not a crash in the first launch. */
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) keep_error();
    return (uintptr_t)module;
}

void pa_module_close(uintptr_t module) { dlclose((void *)module); }

uintptr_t pa_module_symbol(uintptr_t module, const char *name)
{
    void *symbol = dlsym((void *)module, name);
    if (!symbol) keep_error();
    return (uintptr_t)symbol;
}

const char *pa_module_error(void) { return last_error; }
