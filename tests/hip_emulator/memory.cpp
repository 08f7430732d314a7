// Memory: every block lies in pages of its own between pages that nobody may touch, at addresses that are never used
// again.
#include "emulator.h"
#include <cstdio>
#include <sys/mman.h>

static const size_t PAGE = 4096, GAP = 64 << 10, ARENA = (size_t)1 << 42, ALIGNED = 64;
static const unsigned char POISON = 0x7f; // a huge number in every dtype

static uintptr_t arena()
{
    static const uintptr_t start =
        (uintptr_t)mmap(nullptr, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start;
}

int allocate(size_t size, bool host, Pool *pool, Block **made)
{
    static uintptr_t next;
    Device &device = emulator.devices[current_device];
    *made = nullptr;
    if (!size) return Success;
    uint64_t fresh = host ? 0 : size;
    if (pool) {
        const uint64_t reused = pool->kept < size ? pool->kept : size;
        fresh -= reused;
        if (device.held + fresh > emulator.memory) return OutOfMemory;
        pool->kept -= reused;
    }
    if (device.held + fresh > emulator.memory) return OutOfMemory;
    device.held += fresh;
    Block block;
    block.size = size;
    block.pages = (size + PAGE - 1) / PAGE * PAGE;
    if (!next) next = arena() + GAP;
    if (next + block.pages + GAP > arena() + ARENA) return OutOfMemory;
    block.first_page = next;
    next += block.pages + GAP;
    block.start = block.first_page + block.pages - (size + ALIGNED - 1) / ALIGNED * ALIGNED;
    block.device = current_device;
    block.host = host;
    block.pool = pool;
    *made = &(emulator.blocks[block.start] = block);
    if (!pool) open_block(**made);
    return Success;
}

static int reached = ANY_DEVICE; // the device whose memory can be touched now

static void reach_block(const Block &block)
{
    const bool open = block.host || reached == ANY_DEVICE || reached == block.device;
    mprotect((void *)block.first_page, block.pages, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// What runs on a device finds its memory and the host's only.
void reach(int device)
{
    if (device == reached) return;
    reached = device;
    for (const auto &[start, block] : emulator.blocks)
        if (block.opened && !block.host) reach_block(block);
}

void open_block(Block &block)
{
    block.opened = true;
    mprotect((void *)block.first_page, block.pages, PROT_READ | PROT_WRITE);
    memset((void *)block.first_page, POISON, block.pages);
    reach_block(block);
}

static bool poisoned(uintptr_t from, uintptr_t to)
{
    for (; from < to; ++from)
        if (*(unsigned char *)from != POISON) return false;
    return true;
}

// Up to a page before the block, and what is left of its last 64 bytes behind it; of the page only the near end each
// time.
static bool margins_hold(const Block &b, bool all)
{
    const uintptr_t low = all || b.start - b.first_page < 64 ? b.first_page : b.start - 64;
    if (poisoned(low, b.start) && poisoned(b.start + b.size, b.first_page + b.pages)) return true;
    emulator.fault = "next to the block of " + std::to_string(b.size) + " bytes";
    memset((void *)b.first_page, POISON, b.start - b.first_page); // said once is enough
    memset((void *)(b.start + b.size), POISON, b.first_page + b.pages - b.start - b.size);
    return false;
}

bool check_margins(int device)
{
    for (const auto &[start, block] : emulator.blocks)
        if (block.device == device && block.opened && !margins_hold(block, false)) return false;
    return true;
}

void release(uintptr_t start)
{
    Block block = emulator.blocks[start];
    reach(block.device);
    if (block.opened && !margins_hold(block, true)) broke(block.device, IllegalAddress, "a kernel wrote "
        + emulator.fault);
    mmap((void *)block.first_page, block.pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
        -1, 0);
    if (block.pool) block.pool->kept += block.size;
    else if (!block.host) emulator.devices[block.device].held -= block.size;
    emulator.blocks.erase(start);
    emulator.gone[start] = block.size;
    if (emulator.gone.size() > 4096) emulator.gone.erase(emulator.gone.begin());
}

Block *block_of(uintptr_t address, size_t size)
{
    auto at = emulator.blocks.upper_bound(address);
    if (at == emulator.blocks.begin()) return nullptr;
    Block &block = (--at)->second;
    return address + size <= block.start + block.size ? &block : nullptr;
}

std::string describe(uintptr_t address)
{
    char hex[32];
    snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)address);
    std::string text = std::string("address ") + hex;
    if (!address) return "no address that there can be";
    if (address < arena() || address >= arena() + ARENA) return text + ", which is no memory of a device";
    auto freed = emulator.gone.upper_bound(address);
    if (freed != emulator.gone.begin() && address < (--freed)->first + freed->second)
        return text + ", in a block of " + std::to_string(freed->second) + " bytes that was freed";
    auto above = emulator.blocks.upper_bound(address), below = above;
    if (below != emulator.blocks.begin()) {
        const Block &b = (--below)->second;
        if (address < b.start + b.size)
            return text + (b.opened ? ", in a block of device " + std::to_string(b.device)
                                    : ", in a block whose allocation hasn't come yet on its stream");
        if (address - b.start - b.size < GAP / 2)
            return text + ", " + std::to_string(address - b.start - b.size) + " bytes behind a block of "
                + std::to_string(b.size);
    }
    if (above != emulator.blocks.end() && above->first - address < GAP / 2)
        return text + ", " + std::to_string(above->first - address) + " bytes before a block of "
            + std::to_string(above->second.size);
    return text + ", where nothing is";
}
