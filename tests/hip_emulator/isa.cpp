// Kernels that are AMD code objects, which an executor of AMD's instructions runs: tests/amd_isa. HIP_EMULATOR_ISA
// names its target, HIP_EMULATOR_ISA_LIBRARY its library.
#include "emulator.h"
#include <cstdlib>
#include <dlfcn.h>

struct Range { uint64_t start, end; };
struct Launch { // as the executor has it
    uint32_t grid[3], block[3], shared;
    const char *arguments;
    size_t argument_bytes;
    bool backwards;
    void *context;
    bool (*live)(void *, uint64_t, uint64_t, Range *);
    const char *(*describe)(void *, uint64_t);
    char error[1024];
};

static struct Executor {
    const char *(*target)();
    void *(*load)(const char *, size_t, char *, size_t);
    void (*unload)(void *);
    uint64_t (*symbol)(void *, const char *, uint64_t *);
    void *(*kernel)(void *, const char *, char *, size_t);
    int (*run)(void *, Launch *);
} executor;

template <typename F> static bool find(void *library, const char *name, F &f)
{
    return (f = (F)dlsym(library, name)) != nullptr;
}

// The target of all devices; null: kernels are compiled for the CPU.
const char *isa_target()
{
    static const char *const target = getenv("HIP_EMULATOR_ISA");
    return target && *target ? target : nullptr;
}

static std::string start()
{
    const char *path = getenv("HIP_EMULATOR_ISA_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library)
        return std::string("the executor's library: ") + (path ? dlerror() : "HIP_EMULATOR_ISA_LIBRARY isn't set");
    if (!find(library, "isa_target", executor.target) || !find(library, "isa_load", executor.load)
        || !find(library, "isa_unload", executor.unload) || !find(library, "isa_symbol", executor.symbol)
        || !find(library, "isa_kernel", executor.kernel) || !find(library, "isa_run", executor.run))
        return std::string(path) + " is no executor";
    if (strcmp(executor.target(), isa_target())) return std::string(path) + " is for " + executor.target();
    return "";
}

// The size of an ELF image: its section headers are last.
static size_t image_size(const char *image)
{
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, image + 40, 8);
    memcpy(&size, image + 58, 2);
    memcpy(&count, image + 60, 2);
    return sections + (size_t)size * count;
}

void *isa_load(const char *image)
{
    static const std::string bad = start();
    char why[1024];
    if (!bad.empty()) return reason = bad, nullptr;
    if (memcmp(image, "\177ELF", 4)) return reason = "it is no code object: it doesn't begin as an ELF file", nullptr;
    void *object = executor.load(image, image_size(image), why, sizeof why);
    if (!object) reason = why;
    return object;
}

void isa_unload(void *object) { executor.unload(object); }

void *isa_kernel(void *object, const char *name)
{
    char why[1024];
    void *kernel = executor.kernel(object, name, why, sizeof why);
    if (!kernel) reason = why;
    return kernel;
}

static bool live(void *device, uint64_t address, uint64_t bytes, Range *found)
{
    const Block *block = block_of(address, bytes);
    if (!block || !block->opened || (!block->host && block->device != *(int *)device)) return false;
    *found = {block->start, block->start + block->size};
    return true;
}

static const char *words(void *, uint64_t address)
{
    static thread_local std::string text;
    return (text = describe(address)).c_str();
}

int isa_run(const Kernel &kernel)
{
    int device = kernel.function->device;
    Launch launch = {};
    for (int axis = 0; axis < 3; ++axis) {
        launch.grid[axis] = kernel.launch.grid[axis];
        launch.block[axis] = kernel.launch.block[axis];
    }
    launch.shared = kernel.launch.shared;
    launch.arguments = kernel.packed->data();
    launch.argument_bytes = kernel.packed->size();
    launch.backwards = emulator.order == Emulator::Shuffled && random_number() % 2;
    launch.context = &device;
    launch.live = live;
    launch.describe = words;
    return guarded(device, kernel.function->name, [&] {
        if (!executor.run(kernel.function->code, &launch)) return (int)Success;
        const bool memory = strstr(launch.error, ": touched ") != nullptr;
        return broke(device, memory ? IllegalAddress : LaunchFailure, launch.error);
    }, device);
}
