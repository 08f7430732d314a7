// Modules and launches. A code object is a shared object behind a head of 64 bytes: magic, target, size.
#include "emulator.h"
#include <cerrno>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>


struct Head {
    char magic[8], target[48];
    uint64_t size;
};

// Kernels find the scheduler in this library.
static void publish_own_names()
{
    Dl_info here;
    if (dladdr((void *)&publish_own_names, &here)) dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

// The loader takes a name or an inode that it knows for the library it has loaded.
static bool is_new(void *library, const std::string &path)
{
    link_map *map;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && path == map->l_name;
}

static void *load(const char *bytes, size_t size)
{
    static const bool published = (publish_own_names(), true);
    (void)published;
    const std::string path = fresh(temporary_folder() + "/hip-emulator", [&](const std::string &name) {
        return write_new(name, std::string(bytes, size));
    });
    void *library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string what = "a library of " + std::to_string(size) + " bytes at " + (path.empty() ? "no path" : path);
    if (!library) reason = what + ": " + (path.empty() ? strerror(errno) : dlerror());
    else if (!is_new(library, path)) {
        reason = what + ": the loader takes it for another one";
        dlclose(library);
        library = nullptr;
    }
    unlink(path.c_str());
    return library;
}

EXPORT int hipModuleLoadData(void **out, const void *image)
{
    BEGIN;
    const Head *head = (const Head *)image;
    auto module = std::make_shared<Module>();
    module->device = current_device;
    if (isa_target()) module->library = isa_load((const char *)image);
    else {
        if (memcmp(head->magic, "HIPEMUL", 8) != 0) return InvalidImage;
        if (strcmp(head->target, emulator.devices[current_device].target) != 0) return NoBinaryForGpu;
        module->library = load((const char *)(head + 1), head->size);
    }
    if (!module->library) return InvalidImage;
    *out = (void *)emulator.modules.add(module);
    return Success;
}

EXPORT int hipModuleUnload(void *handle)
{
    BEGIN;
    const auto module = emulator.modules.find(handle);
    if (!module) return InvalidHandle;
    run_device(module->device);
    auto &live = emulator.functions.live;
    for (auto at = live.begin(); at != live.end();) at = at->second->module == module.get() ? live.erase(at) : ++at;
    if (isa_target()) isa_unload(module->library);
    else dlclose(module->library);
    emulator.modules.live.erase((uintptr_t)handle);
    return Success;
}

EXPORT int hipModuleGetFunction(void **out, void *handle, const char *name)
{
    BEGIN;
    const auto module = emulator.modules.find(handle);
    if (!module) return InvalidHandle;
    auto function = std::make_shared<Function>();
    function->device = module->device;
    function->name = name;
    function->module = module.get();
    if (isa_target()) {
        function->code = isa_kernel(module->library, name);
        if (!function->code) return NotFound;
        *out = (void *)emulator.functions.add(function);
        return Success;
    }
    function->entry = (int (*)(pa_grid_launch *))dlsym(module->library, ("pa_grid_" + function->name).c_str());
    if (!function->entry) {
        const char *said = dlerror(); // it names the library
        reason = said ? said : "its address is null";
        return NotFound;
    }
    *out = (void *)emulator.functions.add(function);
    return Success;
}

int run(const Kernel &kernel)
{
    if (kernel.function->code) return isa_run(kernel);
    static thread_local void *stacks;
    const Function &function = *kernel.function;
    pa_grid_launch launch = kernel.launch;
    launch.stacks = &stacks;
    launch.buffer = kernel.packed->data();
    launch.size = kernel.packed->size();
    launch.warp = (uint32_t)emulator.devices[function.device].warp;
    launch.backwards = emulator.order == Emulator::Shuffled && random_number() % 2;
    launch.count = (int64_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
    return guarded(function.device, function.name, [&] {
        if (!function.entry(&launch)) return (int)Success;
        return broke(function.device, LaunchFailure, function.name + ": " + launch.error);
    }, function.device);
}

// The arguments come packed, in `extra`; a list of pointers would need their sizes.
int make_kernel(const void *handle, const unsigned *grid, const unsigned *block, unsigned shared, void **params,
                void **extra, Kernel *made)
{
    made->function = emulator.functions.find(handle);
    if (!made->function || made->function->device != current_device) return InvalidHandle;
    if (params || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3)
        return InvalidValue;
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2]) return InvalidValue;
    if ((uint64_t)block[0] * block[1] * block[2] > 1024 || shared > 64 << 10 || grid[1] > 65536 || grid[2] > 65536)
        return InvalidConfiguration;
    made->packed = std::make_shared<std::vector<char>>((char *)extra[1], (char *)extra[1] + *(size_t *)extra[3]);
    made->launch = {};
    for (int axis = 0; axis < 3; ++axis) made->launch.grid[axis] = grid[axis], made->launch.block[axis] = block[axis];
    made->launch.shared = shared;
    return Success;
}

EXPORT int hipModuleLaunchKernel(void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz,
                                 unsigned shared, void *stream_handle, void **params, void **extra)
{
    BEGIN;
    const auto stream = stream_of(stream_handle);
    if (!stream || stream->device != current_device) return InvalidHandle;
    const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    Kernel kernel;
    if (int error = make_kernel(handle, grid, block, shared, params, extra, &kernel)) return error;
    enqueue(stream, [kernel] { return run(kernel); });
    return Success;
}
