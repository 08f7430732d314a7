// An emulated HIP runtime: what its parts know of each other.
// Work is queued and runs as late as the API allows, on the thread that waits for it; one lock guards everything.
#pragma once
#include "pa_grid_launch.h"
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum Error {
    Success = 0,
    InvalidValue = 1,
    OutOfMemory = 2,
    NotInitialized = 3,
    InvalidConfiguration = 9,
    NoDevice = 100,
    InvalidDevice = 101,
    InvalidImage = 200,
    NoBinaryForGpu = 209,
    InvalidHandle = 400,
    NotFound = 500,
    NotReady = 600,
    IllegalAddress = 700,
    LaunchFailure = 719,
    NotSupported = 801,
};

struct Stream;
struct Place { // after the first `count` operations of a stream
    std::shared_ptr<Stream> stream;
    uint64_t count = 0;
    bool reached() const;
};
struct Operation {
    std::function<int()> run;
    std::vector<Place> after;
};
struct Stream {
    int device = 0;
    bool is_default = false, blocking = true;
    uint64_t done = 0;
    std::deque<Operation> waiting;
    uint64_t tail() const { return done + waiting.size(); }
};
struct Moment { // when an event happened
    int64_t nanoseconds = -1;
};
struct Event {
    int device = -1;
    bool timed = true;
    Place place;
    std::shared_ptr<Moment> moment;
};
struct Pool {
    int device = 0;
    uint64_t kept = 0; // bytes that were freed into it
};
struct Block {
    uintptr_t start = 0, first_page = 0;
    size_t size = 0, pages = 0;
    int device = 0;
    bool host = false, opened = false, leaving = false; // readable; about to be freed
    Pool *pool = nullptr;
};
struct Module {
    int device = 0;
    void *library = nullptr; // or the executor's code object
};
struct Function {
    int device = 0;
    std::string name;
    int (*entry)(pa_grid_launch *) = nullptr;
    void *code = nullptr; // the executor's kernel
    const Module *module = nullptr;
};
struct Kernel { // a launch, with a copy of its arguments
    std::shared_ptr<Function> function;
    pa_grid_launch launch;
    std::shared_ptr<std::vector<char>> packed;
};
struct Device {
    const char *target, *name;
    int warp;
    uint64_t held = 0; // bytes of blocks and pools
    int broken = 0;    // the error that every call answers from now on
    std::shared_ptr<Stream> main = {};
};

template <typename T> struct Handles { // made-up addresses, never used twice: what follows one by mistake crashes
    std::map<uintptr_t, std::shared_ptr<T>> live;
    uintptr_t next;
    explicit Handles(uintptr_t first) : next(first) {}
    uintptr_t add(std::shared_ptr<T> made)
    {
        next += 16;
        live[next] = std::move(made);
        return next;
    }
    std::shared_ptr<T> find(const void *handle) const
    {
        auto at = live.find((uintptr_t)handle);
        return at == live.end() ? nullptr : at->second;
    }
};

struct Emulator {
    std::recursive_mutex lock;
    bool started = false, forked = false;
    std::string fault; // what broke a device, in words
    Device devices[2] = {{"gfx90a", "Emulated MI210 (64 lanes)", 64}, {"gfx1030", "Emulated RX 6800 (32 lanes)", 32}};
    uint64_t memory = 0;                     // of a device
    enum { Late, Early, Shuffled } order = Late;
    uint64_t seed = 0;
    std::map<uintptr_t, Block> blocks;       // by address
    std::map<uintptr_t, size_t> gone;        // freed ones, for the words of a fault
    std::vector<std::shared_ptr<Stream>> streams; // all that have work or a handle
    Handles<Stream> stream_handles{0x510000000000};
    Handles<Event> events{0x520000000000};
    Handles<Pool> pools{0x530000000000};
    Handles<Module> modules{0x540000000000};
    Handles<Function> functions{0x550000000000};
};
extern Emulator &emulator;
extern thread_local int current_device;
extern thread_local std::string reason; // of this thread's last error about a module, in the loader's words

// Every call of the API begins with it: an error code where the process, or the current device, is no use.
int enter();
// Words about what broke; returns the code.
int broke(int device, int code, const std::string &words);

// memory.cpp
int allocate(size_t size, bool host, Pool *pool, Block **made);
void open_block(Block &block);
const int ANY_DEVICE = -1, NO_DEVICE = -2; // whose memory can be touched
void reach(int device);
void release(uintptr_t start);
Block *block_of(uintptr_t address, size_t size); // the live block that holds the range
std::string describe(uintptr_t address);
bool check_margins(int device); // false: something wrote beside its block

// streams.cpp
std::shared_ptr<Stream> stream_of(const void *handle); // of the current device's; null if there is none such
void enqueue(const std::shared_ptr<Stream> &stream, std::function<int()> run, std::vector<Place> after = {});
void run_until(const Place &place);
void run_device(int device);
uint64_t random_number();

// modules.cpp
int make_kernel(const void *handle, const unsigned *grid, const unsigned *block, unsigned shared, void **params,
                void **extra, Kernel *made);
int run(const Kernel &kernel);

// isa.cpp: what an executor of AMD's instructions does with code objects, if HIP_EMULATOR_ISA asks for it
const char *isa_target();
void *isa_load(const char *image); // null, with words in `reason`
void isa_unload(void *object);
void *isa_kernel(void *object, const char *name);
int isa_run(const Kernel &kernel);

// files.cpp
std::string temporary_folder();
std::string read_all(const std::string &path); // empty where it can't be read
bool write_new(const std::string &path, const std::string &bytes); // false, with errno, where there is such a file
// A path that begins so, belongs to nobody and is never given twice; empty, with errno, where `make` can't make it.
std::string fresh(const std::string &start, const std::function<bool(const std::string &)> &make);

// faults.cpp: runs it with the memory of the device `reaches` only; a fault in it breaks the device
int guarded(int device, const std::string &what, const std::function<int()> &work, int reaches);

// How a function of the runtime begins, and how it finds a stream.
#define LOCK std::lock_guard<std::recursive_mutex> hold(emulator.lock)
#define BEGIN                                                                                                          \
    LOCK;                                                                                                              \
    if (int error = enter()) return error
#define STREAM(name, handle)                                                                                           \
    const std::shared_ptr<Stream> name = stream_of(handle);                                                            \
    if (!name) return InvalidHandle
