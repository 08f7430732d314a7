// Accesses to the same bytes by waves that no barrier orders: HIP_EMULATOR_ISA_RACES=1.
#include "isa.h"

static std::string told(const Wave &wave, uint64_t address, bool shared)
{
    return shared ? printed("LDS at %llu", (unsigned long long)address)
                  : printed("memory at %#llx of block (%u, %u, %u)", (unsigned long long)address, wave.group->id[0],
                            wave.group->id[1], wave.group->id[2]);
}

// Only between the waves of a block: others are ordered by launches, or by atomics.
void note_access(Wave &wave, uint64_t address, uint32_t bytes, bool shared, bool writes, bool atomic)
{
    Group &group = *wave.group;
    const uint64_t own = 1ull << wave.number, now = group.barriers + 1;
    for (uint32_t k = 0; k < bytes; ++k) {
        Accesses &a = group.accesses[(address + k) << 1 | shared];
        if (a.since != now) a = {now, 0, 0, 0};
        const uint64_t others = atomic ? a.writers | a.readers : a.writers | a.atomics | (writes ? a.readers : 0);
        const uint64_t conflicting = atomic && !writes ? a.writers : others;
        if (conflicting & ~own)
            fault(wave, printed("races with wave %d for %s", __builtin_ctzll(conflicting & ~own),
                                told(wave, address, shared).c_str()));
        (atomic ? a.atomics : writes ? a.writers : a.readers) |= own;
    }
}
