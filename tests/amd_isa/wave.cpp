// Launches: waves of a block take turns until each has ended or waits at a barrier; blocks run one after another, and
// further ones beside them where those that run don't come to an end.
#include "isa.h"
#include <algorithm>
#include <cstdlib>

static const uint64_t TURN = 20000, PATIENCE = 2000000, MOST_GROUPS = 64;

static std::string where(const Wave &wave)
{
    const Instruction *i = wave.at;
    const Line *line = i ? wave.machine->kernel->object->line_of(i->address) : nullptr;
    std::string text = line ? printed(" at %s:%d", line->file.c_str(), line->line) : "";
    const auto &id = wave.group->id;
    if (i) text += printed(" (%s at %#llx)", i->operation ? i->operation->name : "", (unsigned long long)i->address);
    return text + printed(", wave %d of block (%u, %u, %u)", wave.number, id[0], id[1], id[2]);
}

void fault(const Wave &wave, const std::string &words)
{
    throw Fault{wave.machine->kernel->name + ": " + words + where(wave)};
}

Instruction *find(Wave &wave, uint64_t address)
{
    std::string why;
    Instruction *found = decode(*wave.machine->kernel->object, address, why);
    if (!found) fault(wave, why);
    return found;
}

// ---- how a wave begins

static int bit(uint32_t x, int k) { return x >> k & 1; }

// Scalar registers as the descriptor asks for them; returns the first free one.
static int user_registers(Wave &w, const Descriptor &d)
{
    int next = 0;
    const auto skip = [&](int words) { next += words; };
    const uint64_t kernarg = (uint64_t)w.machine->kernarg.data();
    if (bit(d.properties, 0)) skip(4); // of scratch, which instructions of its own reach here
    if (bit(d.properties, 1)) set_scalar(w, next, 2, (uint64_t)w.machine->packet), next += 2;
    if (bit(d.properties, 2)) skip(2); // the queue
    if (bit(d.properties, 3)) set_scalar(w, next, 2, kernarg), next += 2;
    if (bit(d.properties, 4)) set_scalar(w, next, 2, 1), next += 2;
    if (bit(d.properties, 5)) skip(2);
    if (bit(d.properties, 6)) set_scalar(w, next, 1, d.private_bytes), next += 1;
    const int preloaded = d.preload & 127, from = d.preload >> 7;
    for (int k = 0; k < preloaded; ++k, ++next) {
        uint32_t word;
        memcpy(&word, w.machine->kernarg.data() + 4 * (from + k), 4);
        set_scalar(w, next, 1, word);
    }
    return d.rsrc2 >> 1 & 31;
}

static void begin(Wave &w, const Kernel &kernel, const Launch &launch)
{
    const Descriptor &d = kernel.descriptor;
    const int rows = kernel.registers + kernel.accumulators;
    w.registers.assign((size_t)rows * LANES, 0x7f7f7f7f);
    w.defined.assign(rows, 0);
    w.scratch.assign((size_t)d.private_bytes * LANES, 0x7f);
    memset(w.s, 0x7f, sizeof w.s);
    memset(w.s_known, 0, sizeof w.s_known);
    int next = user_registers(w, d);
    for (int axis = 0; axis < 3; ++axis)
        if (bit(d.rsrc2, 7 + axis)) set_scalar(w, next++, 1, w.group->id[axis]);
    if (bit(d.rsrc2, 10)) set_scalar(w, next++, 1, 0);
    set_scalar(w, 102, 2, 0); // flat scratch, which gfx942 has as registers: instructions add it themselves
    set_scalar(w, 106, 2, 0);
    set_scalar(w, 126, 2, 0);
    set_scalar(w, is_cdna ? 124 : 125, 1, 0);
    w.set_mask(126, w.launched);
    uint32_t ids[LANES] = {};
    const uint32_t *block = launch.block;
    for (int lane = 0; lane < w.count; ++lane) {
        const uint32_t flat = w.number * w.count + lane;
        ids[lane] = flat % block[0] | flat / block[0] % block[1] << 10 | flat / block[0] / block[1] << 20;
    }
    write_row(w, 0, ids, w.launched, ~0ull);
    uint64_t entry = d.entry;
    if (d.preload & 127) entry += 256; // past what loads the same for older firmware
    w.at = find(w, entry);
}

static std::unique_ptr<Group> make_group(Machine &m, uint64_t number)
{
    const Launch &l = *m.launch;
    auto group = std::make_unique<Group>();
    group->id[0] = number % l.grid[0];
    group->id[1] = number / l.grid[0] % l.grid[1];
    group->id[2] = number / l.grid[0] / l.grid[1];
    group->shared.assign(m.kernel->descriptor.group_bytes + l.shared, 0x7f);
    group->shared_defined.assign(group->shared.size(), 0);
    const uint32_t threads = l.block[0] * l.block[1] * l.block[2], lanes = m.kernel->wave_lanes;
    for (uint32_t first = 0; first < threads; first += lanes) {
        auto wave = std::make_unique<Wave>();
        wave->machine = &m;
        wave->group = group.get();
        wave->at = nullptr;
        wave->number = first / lanes;
        wave->count = lanes;
        const uint32_t there = std::min(lanes, threads - first);
        wave->launched = there == 64 ? ~0ull : (1ull << there) - 1;
        begin(*wave, *m.kernel, l);
        group->waves.push_back(std::move(wave));
    }
    return group;
}

// ---- turns

static void turn(Wave &w)
{
    for (uint64_t steps = 0; steps < TURN && w.state == State::Ready; ++steps) {
        Instruction *i = w.at;
        w.jumped = false;
        i->run(w, *i);
        ++w.machine->clock;
        if (w.jumped) continue;
        if (w.state == State::Ended) return;
        if (!i->next) i->next = find(w, i->behind);
        w.at = i->next;
    }
}

// Whether all waves that go on were at a barrier, and may pass.
static bool release(Group &group)
{
    int waiting = 0, ended = 0;
    const Wave *late = nullptr, *first = nullptr;
    for (const auto &wave : group.waves) {
        if (wave->state == State::Ready) return false;
        if (wave->state == State::AtBarrier) ++waiting, first = wave.get();
        else ++ended, late = wave.get();
    }
    if (!waiting) return false;
    if (ended)
        fault(*first, printed("waits at a barrier that wave %d, which has ended, did not reach", late->number));
    for (const auto &wave : group.waves) wave->state = State::Ready;
    ++group.barriers;
    return true;
}

static bool ended(const Group &group)
{
    for (const auto &wave : group.waves)
        if (wave->state != State::Ended) return false;
    return true;
}

static void run_groups(Machine &m)
{
    const Launch &l = *m.launch;
    const uint64_t count = (uint64_t)l.grid[0] * l.grid[1] * l.grid[2];
    const char *given = getenv("HIP_EMULATOR_ISA_STEPS");
    const uint64_t most = given ? strtoull(given, nullptr, 10) : 20000000000ull;
    std::vector<std::unique_ptr<Group>> running;
    uint64_t started = 0, idle_since = 0;
    while (started < count || !running.empty()) {
        const bool patient = m.clock - idle_since < PATIENCE || running.size() >= MOST_GROUPS;
        if (started < count && (running.empty() || !patient)) {
            running.push_back(make_group(m, l.backwards ? count - 1 - started : started));
            ++started;
            idle_since = m.clock;
        }
        for (auto &group : running) {
            for (auto &wave : group->waves) turn(*wave);
            release(*group);
        }
        const size_t before = running.size();
        running.erase(std::remove_if(running.begin(), running.end(), [](const auto &g) { return ended(*g); }),
                      running.end());
        if (running.size() < before) idle_since = m.clock;
        if (m.clock > most)
            fault(*running[0]->waves[0],
                  printed("has not come to an end after %llu instructions", (unsigned long long)most));
    }
}

static uint64_t hidden_value(const Launch &l, const std::string &kind)
{
    const int axis = kind.back() - 'x';
    if (kind.compare(0, 19, "hidden_block_count_") == 0) return l.grid[axis];
    if (kind.compare(0, 18, "hidden_group_size_") == 0) return l.block[axis];
    if (kind == "hidden_grid_dims")
        return l.grid[2] > 1 || l.block[2] > 1 ? 3 : l.grid[1] > 1 || l.block[1] > 1 ? 2 : 1;
    if (kind == "hidden_dynamic_lds_size") return l.shared;
    if (kind == "hidden_private_base") return PRIVATE_APERTURE >> 32;
    if (kind == "hidden_shared_base") return SHARED_APERTURE >> 32;
    return 0; // remainders of blocks, offsets of the grid
}

// As the hardware queue has it: kernels read the sizes of blocks and of the grid from it.
static void make_packet(Machine &m)
{
    const Launch &l = *m.launch;
    for (int axis = 0; axis < 3; ++axis) {
        const uint16_t block = (uint16_t)l.block[axis];
        const uint32_t threads = l.block[axis] * l.grid[axis];
        memcpy(m.packet + 4 + 2 * axis, &block, 2);
        memcpy(m.packet + 12 + 4 * axis, &threads, 4);
    }
    const uint32_t shared = m.kernel->descriptor.group_bytes + l.shared;
    const uint64_t kernarg = (uint64_t)m.kernarg.data();
    memcpy(m.packet + 24, &m.kernel->descriptor.private_bytes, 4);
    memcpy(m.packet + 28, &shared, 4);
    memcpy(m.packet + 40, &kernarg, 8);
}

static std::string make_arguments(Machine &m, const Metadata &metadata)
{
    const Launch &l = *m.launch;
    m.kernarg.assign(m.kernel->descriptor.kernarg_bytes + 64, 0);
    uint32_t own = 0;
    for (const Argument &a : metadata.arguments)
        if (a.kind.compare(0, 7, "hidden_")) own = std::max(own, a.offset + a.size);
    if (l.argument_bytes != own && l.argument_bytes != (own + 7) / 8 * 8)
        return printed("%s takes %u bytes of arguments, and %zu came", m.kernel->name.c_str(), own, l.argument_bytes);
    memcpy(m.kernarg.data(), l.arguments, std::min<size_t>(own, l.argument_bytes));
    for (const Argument &a : metadata.arguments) {
        if (a.kind.compare(0, 7, "hidden_")) continue;
        const uint64_t value = hidden_value(l, a.kind);
        memcpy(m.kernarg.data() + a.offset, &value, std::min<uint32_t>(8, a.size));
    }
    const uint64_t threads = (uint64_t)l.block[0] * l.block[1] * l.block[2];
    if (threads > metadata.block_limit)
        return printed("%s is launched with %llu threads a block, and is compiled for %u", m.kernel->name.c_str(),
                       (unsigned long long)threads, metadata.block_limit);
    return "";
}

bool run(const Kernel &kernel, Launch &launch)
{
    Machine m;
    m.kernel = &kernel;
    m.launch = &launch;
    m.check_defined = !getenv("HIP_EMULATOR_ISA_UNDEFINED");
    m.races = getenv("HIP_EMULATOR_ISA_RACES");
    const char *traced = getenv("HIP_EMULATOR_ISA_TRACE"); // a kernel's name
    m.trace = traced && kernel.name == traced;
    std::string words;
    try {
        for (const Metadata &metadata : kernel.object->metadata)
            if (metadata.name == kernel.name) words = make_arguments(m, metadata);
        make_packet(m);
        if (words.empty()) run_groups(m);
    } catch (const Fault &found) {
        words = found.words;
    }
    snprintf(launch.error, sizeof launch.error, "%s", words.c_str());
    return words.empty();
}
