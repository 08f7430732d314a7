/* pa_look_back_gpu.h: decoupled look-back, by which a single-pass scan finds the exclusive prefix of each tile of a
   line (D. Merrill, M. Garland, Single-pass parallel prefix scan with decoupled look-back, 2016). With the macros of
   pa_team_gpu.h.
   Tiles are numbered as blocks take them, so those before are taken by blocks that run. 32 tiles of a line are a group.
   A tile publishes its aggregate; the block that publishes the last one of a group, that of the group; the block that
   looks back from the last tile, the group's inclusive prefix. What comes before a tile is the prefix of its group,
   which adds the groups before from left to right, and the aggregates of the group's tiles before it, which a warp
   scans. Both are the same sums whoever has published how much, so results depend on no order of blocks.
   Each 32 bits of a value are published in a word of 64 bits with a flag, so no order of stores, and no fence, is
   needed. */
#ifndef PA_LOOK_BACK_GPU_H
#define PA_LOOK_BACK_GPU_H
#include "pa_team_gpu.h"

#if PA_CUDA
#define PA_BALLOT(x) __ballot_sync(0xffffffffu, x)
#else
#define PA_BALLOT(x) ((unsigned)__ballot(x)) /* of the first 32 threads, in divergent code */
#endif
enum {
    PA_GROUP = 32, /* tiles: a lane has the state of one */
    PA_STATE_WORDS = sizeof(PA_ACC) / 4,
    PA_FIRST_COUNTER = 16,          /* words before: the first one counts tiles, in a cache line of its own */
    PA_AGGREGATE = 1, PA_PREFIX = 2 /* flags; 0: nothing is published yet */
};
typedef unsigned long long pa_state_word;
struct pa_state { PA_ACC value; unsigned flag; };

/* States are words that start as zeros: counters of all groups, of how many tiles have published; then for each line
   states of its tiles, and of its groups. Offsets of a line's counters and of its states are in words. */
struct pa_state_offsets { int64_t counters, first; };
PA_FN pa_state_offsets pa_offsets_of_line(int64_t line, int64_t lines, int64_t tiles)
{
    const int64_t groups = (tiles - 1) / PA_GROUP + 1, all = PA_FIRST_COUNTER + lines * groups;
    const pa_state_offsets at = {PA_FIRST_COUNTER + line * groups, all + line * (tiles + groups) * PA_STATE_WORDS};
    return at;
}

struct pa_line_states {
    const pa_operand *memory;
    pa_runtime *rt;
    int64_t tile; /* that is reported with an access outside */
    pa_state_offsets at;
    int64_t tiles; /* of a line */

    __device__ inline pa_state_word *counter(int64_t group) const
    {
        return (pa_state_word *)memory->at + at.counters + group;
    }
    __device__ inline volatile pa_state_word *of_tile(int64_t number) const
    {
        return (volatile pa_state_word *)memory->at + at.first + number * PA_STATE_WORDS;
    }
    __device__ inline volatile pa_state_word *of_group(int64_t group) const { return of_tile(tiles + group); }

    __device__ inline void publish(volatile pa_state_word *to, PA_ACC value, unsigned flag) const
    {
        pa_words<PA_ACC> u;
        u.value = value;
        if (!PA_INSIDE(*memory, (const char *)to, 8 * PA_STATE_WORDS)) return;
#pragma unroll
        for (int k = 0; k < PA_STATE_WORDS; ++k) to[k] = (pa_state_word)flag << 32 | u.word[k];
    }
    /* A state whose words have different flags is being written. */
    __device__ inline pa_state read(const volatile pa_state_word *from) const
    {
        pa_words<PA_ACC> u;
        pa_state x = {PA_IDENTITY, PA_PREFIX};
        if (!PA_INSIDE(*memory, (const char *)from, 8 * PA_STATE_WORDS)) return x;
        pa_state_word words[PA_STATE_WORDS];
#pragma unroll
        for (int k = 0; k < PA_STATE_WORDS; ++k) words[k] = from[k];
        x.flag = (unsigned)(words[0] >> 32);
#pragma unroll
        for (int k = 0; k < PA_STATE_WORDS; ++k) {
            u.word[k] = (unsigned)words[k];
            if ((unsigned)(words[k] >> 32) != x.flag) x.flag = 0;
        }
        x.value = u.value;
        return x;
    }

    /* Publishes a tile's aggregate, by one thread. Whether it is the group's last one: `complete` has to follow. */
    __device__ inline bool publish_tile(int64_t number, PA_ACC value) const
    {
        pa_state_word *published = counter(number / PA_GROUP);
        publish(of_tile(number), value, PA_AGGREGATE);
        return PA_INSIDE(*memory, (const char *)published, 8) && atomicAdd(published, 1) == PA_GROUP - 1;
    }
    /* Publishes a group's aggregate, by the first warp. If this were left to the group's last tile until it looks back,
       all later tiles would wait for that block: each round would take as long as its slowest block. */
    __device__ inline void complete(int64_t group) const
    {
        const int lane = (int)threadIdx.x;
        pa_state x = {PA_IDENTITY, 0};
        while (PA_BALLOT(x.flag == 0))
            if (x.flag == 0) x = read(of_tile(group * PA_GROUP + lane));
        PA_ACC total;
        pa_warp_exclusive_scan(x.value, &total);
        if (lane == 0) publish(of_group(group), total, PA_AGGREGATE);
    }
};

/* What a tile's block has read, by its first warp: the states of 32 groups before, the nearest in the first lane, and
   of the group's tiles. */
struct pa_look_back {
    pa_state of_group, of_tile;

    /* Starts to read, whether they are published or not. */
    __device__ inline pa_look_back(const pa_line_states &states, int64_t tile, PA_ACC own)
    {
        const int lane = (int)threadIdx.x, place = (int)(tile % PA_GROUP);
        const int64_t before = tile / PA_GROUP - 1 - lane;
        of_group.value = of_tile.value = PA_IDENTITY;
        of_group.flag = PA_PREFIX, of_tile.flag = PA_AGGREGATE;
        if (before >= 0) of_group = states.read(states.of_group(before));
        if (lane < place) of_tile = states.read(states.of_tile(tile - place + lane));
        if (lane == place) of_tile.value = own;
    }
    /* The exclusive prefix. */
    __device__ inline PA_ACC prefix(const pa_line_states &states, int64_t tile)
    {
        const int lane = (int)threadIdx.x, place = (int)(tile % PA_GROUP);
        const int64_t group = tile / PA_GROUP, before = group - 1 - lane;
        while (PA_BALLOT(of_tile.flag == 0))
            if (of_tile.flag == 0) of_tile = states.read(states.of_tile(tile - place + lane));
        PA_ACC total, within = pa_shfl(pa_warp_exclusive_scan(of_tile.value, &total), place);
        for (;;) { /* until there is a prefix, and all groups after it have aggregates */
            const unsigned prefixes = PA_BALLOT(of_group.flag == PA_PREFIX), missing = PA_BALLOT(of_group.flag == 0);
            if (prefixes && !(missing & (prefixes & (0u - prefixes)) - 1)) break;
            if (of_group.flag == 0 || (!prefixes && of_group.flag == PA_AGGREGATE))
                of_group = states.read(states.of_group(before));
        }
        int nearest = __ffs((int)PA_BALLOT(of_group.flag == PA_PREFIX)) - 1;
        PA_ACC sum = pa_shfl(of_group.value, nearest);
        while (nearest > 0) {
            const PA_ACC next = pa_shfl(of_group.value, --nearest);
            sum = PA_COMBINE(sum, next);
        }
        if (place == PA_GROUP - 1 && lane == 0) { /* after the aggregate, which would replace it */
            volatile pa_state_word *const to = states.of_group(group);
            while (states.read(to).flag == 0) {}
            states.publish(to, PA_COMBINE(sum, total), PA_PREFIX);
        }
        return PA_COMBINE(sum, within);
    }
};

#endif
