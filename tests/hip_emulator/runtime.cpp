// Devices, memory and copies of the API, and what tests ask the emulator itself.
#include "emulator.h"
#include <cstdlib>
#include <pthread.h>

Emulator &emulator = *new Emulator; // never destroyed: Python frees arrays until the very end
thread_local int current_device;
thread_local std::string reason;

static void start_emulator()
{
    emulator.started = true;
    const char *memory = getenv("HIP_EMULATOR_MEMORY"), *order = getenv("HIP_EMULATOR_ORDER");
    emulator.memory = memory ? strtoull(memory, nullptr, 10) : (uint64_t)2 << 30;
    if (order && !strcmp(order, "early")) emulator.order = Emulator::Early;
    if (order && *order >= '0' && *order <= '9') {
        emulator.order = Emulator::Shuffled;
        emulator.seed = strtoull(order, nullptr, 10);
    }
    if (const char *target = isa_target())
        for (Device &device : emulator.devices) {
            device.target = target;
            device.warp = strncmp(target, "gfx9", 4) ? 32 : 64;
            device.name = device.warp == 64 ? "Emulated MI300X (64 lanes)" : "Emulated RX 7900 XTX (32 lanes)";
        }
    for (int k = 0; k < 2; ++k) {
        auto stream = emulator.devices[k].main = std::make_shared<Stream>();
        stream->device = k;
        stream->is_default = true;
        emulator.streams.push_back(stream);
    }
    pthread_atfork(nullptr, nullptr, [] {
        emulator.forked = true;
        new (&emulator.lock) std::recursive_mutex;
    });
}

int enter()
{
    if (emulator.forked) return NotInitialized;
    if (!emulator.started) start_emulator();
    return emulator.devices[current_device].broken;
}

// ---- devices

EXPORT int hipInit(unsigned flags)
{
    LOCK;
    if (emulator.forked) return NotInitialized;
    if (!emulator.started) start_emulator();
    return flags ? InvalidValue : Success;
}

EXPORT int hipGetDeviceCount(int *count)
{
    LOCK;
    if (emulator.forked) return NotInitialized;
    const char *asked = getenv("HIP_EMULATOR_DEVICES");
    *count = asked ? atoi(asked) : 2;
    return *count ? Success : NoDevice;
}

EXPORT int hipGetDevice(int *device)
{
    LOCK;
    if (emulator.forked) return NotInitialized;
    *device = current_device;
    return Success;
}

EXPORT int hipSetDevice(int device)
{
    LOCK;
    if (emulator.forked) return NotInitialized;
    if (device < 0 || device > 1) return InvalidDevice;
    current_device = device;
    return Success;
}

EXPORT int hipDeviceGetName(char *name, int size, int device)
{
    if (device < 0 || device > 1) return InvalidDevice;
    strncpy(name, emulator.devices[device].name, (size_t)size);
    return Success;
}

EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    if (device < 0 || device > 1) return InvalidDevice;
    switch (attribute) { // hipDeviceAttribute_t
    case 19: *value = 8 << 20; return Success;        // L2CacheSize
    case 26: case 27: case 28: case 56: *value = 1024; return Success; // MaxBlockDim, MaxThreadsPerBlock
    case 29: *value = 0x7fffffff; return Success;     // MaxGridDimX
    case 30: case 31: *value = 65536; return Success; // MaxGridDimY, Z
    case 57: *value = 2048; return Success;           // MaxThreadsPerMultiProcessor
    case 63: *value = 2; return Success;              // MultiprocessorCount
    case 74: *value = 64 << 10; return Success;       // MaxSharedMemoryPerBlock
    case 87: *value = emulator.devices[device].warp; return Success;
    case 88: *value = 1; return Success;              // MemoryPoolsSupported
    default: return InvalidValue;
    }
}

// hipDeviceProp_tR0600: 1472 bytes, of which a few are filled in
EXPORT int hipGetDevicePropertiesR0600(char *properties, int device)
{
    if (device < 0 || device > 1) return InvalidDevice;
    const Device &d = emulator.devices[device];
    memset(properties, 0, 1472);
    strcpy(properties, d.name);
    memcpy(properties + 288, &emulator.memory, 8);
    memcpy(properties + 308, &d.warp, 4);
    // as the real one has it: features stand behind the target
    strcpy(properties + 1160, (std::string(d.target) + (d.warp == 64 ? ":sramecc+:xnack-" : "")).c_str());
    return Success;
}

// The source's, so that what one emulator compiled isn't taken from a cache for another.
EXPORT int hipRuntimeGetVersion(int *version) { return *version = HIP_EMULATOR_VERSION, Success; }
EXPORT int hipDriverGetVersion(int *version) { return *version = HIP_EMULATOR_VERSION, Success; }

static const std::map<int, std::pair<const char *, const char *>> ERRORS = {
    {Success, {"hipSuccess", "no error"}},
    {InvalidValue, {"hipErrorInvalidValue", "invalid argument"}},
    {OutOfMemory, {"hipErrorOutOfMemory", "out of memory"}},
    {NotInitialized, {"hipErrorNotInitialized", "initialization error"}},
    {InvalidConfiguration, {"hipErrorInvalidConfiguration", "invalid configuration argument"}},
    {NoDevice, {"hipErrorNoDevice", "no ROCm-capable device is detected"}},
    {InvalidDevice, {"hipErrorInvalidDevice", "invalid device ordinal"}},
    {InvalidImage, {"hipErrorInvalidImage", "device kernel image is invalid"}},
    {NoBinaryForGpu, {"hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"}},
    {InvalidHandle, {"hipErrorInvalidHandle", "invalid resource handle"}},
    {NotFound, {"hipErrorNotFound", "named symbol not found"}},
    {NotReady, {"hipErrorNotReady", "device not ready"}},
    {IllegalAddress, {"hipErrorIllegalAddress", "an illegal memory access was encountered"}},
    {LaunchFailure, {"hipErrorLaunchFailure", "unspecified launch failure"}},
    {NotSupported, {"hipErrorNotSupported", "operation not supported"}},
};

EXPORT const char *hipGetErrorName(int code) { return ERRORS.count(code) ? ERRORS.at(code).first : "hipErrorUnknown"; }
EXPORT const char *hipGetErrorString(int code)
{
    static thread_local std::string words; // until the thread's next question
    words = ERRORS.count(code) ? ERRORS.at(code).second : "unknown error";
    if ((code == InvalidImage || code == NotFound) && !reason.empty()) words += ": " + reason;
    return words.c_str();
}

// ---- memory

EXPORT int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    BEGIN;
    *total = emulator.memory;
    *free_bytes = emulator.memory - emulator.devices[current_device].held;
    return Success;
}

static int allocate_now(void **out, size_t size, bool host)
{
    Block *block;
    const int error = allocate(size, host, nullptr, &block);
    *out = block ? (void *)block->start : nullptr;
    return error;
}

EXPORT int hipMalloc(void **out, size_t size)
{
    BEGIN;
    return allocate_now(out, size, false);
}

EXPORT int hipHostMalloc(void **out, size_t size, unsigned)
{
    BEGIN;
    return allocate_now(out, size, true);
}

// Both wait for the whole device.
static int free_now(void *address, bool host)
{
    if (!address) return Success;
    auto at = emulator.blocks.find((uintptr_t)address);
    if (at == emulator.blocks.end() || at->second.host != host || at->second.leaving) return InvalidValue;
    const int device = at->second.device;
    run_device(device);
    release((uintptr_t)address);
    return emulator.devices[device].broken;
}

EXPORT int hipFree(void *address)
{
    BEGIN;
    return free_now(address, false);
}

EXPORT int hipHostFree(void *address)
{
    BEGIN;
    return free_now(address, true);
}

struct PoolProperties { // hipMemPoolProps
    int type, handles, location_type, location_device;
};

EXPORT int hipMemPoolCreate(void **out, const PoolProperties *properties)
{
    BEGIN;
    if (properties->type != 1 || properties->location_type != 1) return InvalidValue;
    if (properties->location_device < 0 || properties->location_device > 1) return InvalidDevice;
    auto pool = std::make_shared<Pool>();
    pool->device = properties->location_device;
    *out = (void *)emulator.pools.add(pool);
    return Success;
}

EXPORT int hipMemPoolDestroy(void *handle)
{
    BEGIN;
    const auto pool = emulator.pools.find(handle);
    if (!pool) return InvalidHandle;
    for (const auto &[start, block] : emulator.blocks)
        if (block.pool == pool.get()) return InvalidValue;
    emulator.devices[pool->device].held -= pool->kept;
    emulator.pools.live.erase((uintptr_t)handle);
    return Success;
}

EXPORT int hipMemPoolSetAttribute(void *handle, int, void *)
{
    BEGIN;
    return emulator.pools.find(handle) ? Success : InvalidHandle;
}

EXPORT int hipMemPoolTrimTo(void *handle, size_t keep)
{
    BEGIN;
    const auto pool = emulator.pools.find(handle);
    if (!pool) return InvalidHandle;
    if (pool->kept > keep) {
        emulator.devices[pool->device].held -= pool->kept - keep;
        pool->kept = keep;
    }
    return Success;
}

// The memory is there for what comes behind on the stream.
EXPORT int hipMallocFromPoolAsync(void **out, size_t size, void *handle, void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    const auto pool = emulator.pools.find(handle);
    if (!pool || pool->device != current_device) return InvalidHandle;
    Block *block;
    int error = allocate(size, false, pool.get(), &block);
    if (error == OutOfMemory) {
        run_until({stream, stream->tail()}); // what was freed on this stream may serve
        error = allocate(size, false, pool.get(), &block);
    }
    *out = block ? (void *)block->start : nullptr;
    if (!block) return error;
    const uintptr_t start = block->start;
    enqueue(stream, [start] { return open_block(emulator.blocks[start]), Success; });
    return error;
}

EXPORT int hipFreeAsync(void *address, void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    if (!address) return Success;
    const uintptr_t start = (uintptr_t)address;
    auto at = emulator.blocks.find(start);
    if (at == emulator.blocks.end() || at->second.host || at->second.leaving) return InvalidValue;
    at->second.leaving = true;
    enqueue(stream, [start] { return release(start), Success; });
    return Success;
}

struct PointerAttributes { // hipPointerAttribute_t
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
};

EXPORT int hipPointerGetAttributes(PointerAttributes *out, const void *address)
{
    BEGIN;
    const Block *block = block_of((uintptr_t)address, 1);
    if (!block) return InvalidValue;
    *out = {block->host ? 1 : 2, block->device, (void *)address, block->host ? (void *)address : nullptr, 0, 0};
    return Success;
}

// ---- copies

static bool within(const void *address, size_t size, bool host, int device)
{
    const Block *block = block_of((uintptr_t)address, size);
    return block && block->host == host && (host || block->device == device);
}

static int copy(const std::shared_ptr<Stream> &stream, void *to, const void *from, size_t size, int reaches)
{
    const int device = stream->device;
    enqueue(stream, [=] {
        return guarded(device, "a copy", [=] { return memcpy(to, from, size), Success; }, reaches);
    });
    return Success;
}

EXPORT int hipMemcpyHtoDAsync(void *to, const void *from, size_t size, void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    if (!size) return Success;
    if (!within(to, size, false, stream->device)) return InvalidValue;
    if (within(from, size, true, 0)) return copy(stream, to, from, size, stream->device); // read in its turn
    const int device = stream->device;
    auto staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + size);
    enqueue(stream, [=] {
        return guarded(device, "a copy", [=] { return memcpy(to, staged->data(), size), Success; }, device);
    });
    return Success;
}

EXPORT int hipMemcpyDtoHAsync(void *to, void *from, size_t size, void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    if (size && !within(from, size, false, stream->device)) return InvalidValue;
    return size ? copy(stream, to, from, size, stream->device) : Success;
}

EXPORT int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
    void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    if (size && (!within(to, size, false, to_device) || !within(from, size, false, from_device))) return InvalidValue;
    return size ? copy(stream, to, from, size, ANY_DEVICE) : Success;
}

EXPORT int hipMemsetD8Async(void *to, unsigned char value, size_t size, void *stream_handle)
{
    BEGIN;
    STREAM(stream, stream_handle);
    if (!size) return Success;
    if (!within(to, size, false, stream->device)) return InvalidValue;
    const int device = stream->device;
    enqueue(stream, [=] {
        return guarded(device, "a fill", [=] { return memset(to, value, size), Success; }, device);
    });
    return Success;
}

// ---- what tests ask

// Blocks of device memory that are alive; what is on its way is awaited.
EXPORT int64_t hipEmulatorBlocks(int device)
{
    LOCK;
    run_device(device);
    int64_t count = 0;
    for (const auto &[start, block] : emulator.blocks) count += block.device == device && !block.host;
    return count;
}

// What broke a device last, in words.
EXPORT const char *hipEmulatorFault() { return emulator.fault.c_str(); }

// As a new process would find them: devices that broke work again.
EXPORT void hipEmulatorMend()
{
    LOCK;
    emulator.fault.clear();
    for (Device &device : emulator.devices) device.broken = 0;
}

// "late", "early", or a number that decides the order; what waits is done first.
EXPORT void hipEmulatorOrder(const char *order)
{
    LOCK;
    for (int k = 0; k < 2; ++k) run_device(k);
    emulator.order = !strcmp(order, "late") ? Emulator::Late : !strcmp(order, "early") ? Emulator::Early
        : Emulator::Shuffled;
    emulator.seed = strtoull(order, nullptr, 10);
}

// Bytes that each device has from now on; 0 for the usual ones. Returns those that are held on a device.
EXPORT uint64_t hipEmulatorMemory(uint64_t bytes, int device)
{
    LOCK;
    emulator.memory = bytes ? bytes : (uint64_t)2 << 30;
    return emulator.devices[device].held;
}
