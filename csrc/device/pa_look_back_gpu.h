/* pa_look_back_gpu.h: decoupled look-back, by which a single-pass scan finds the exclusive prefix of each tile of a
   line (D. Merrill, M. Garland, Single-pass parallel prefix scan with decoupled look-back, 2016). With the macros of
   pa_team_gpu.h.
   Tiles are numbered as blocks take them, so those before are taken by blocks that run. 32 tiles of a line are a group.
   A tile publishes its aggregate; the last of a group, that of the group, and then the group's inclusive prefix. What
   comes before a tile is the prefix of its group, which adds the groups before from left to right, and the aggregates
   of the group's tiles before it, which a warp scans. Both are the same sums whoever has published how much, so results
   depend on no order of blocks.
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
    PA_GROUP = 32,                      /* tiles: a lane has the state of one */
    PA_STATE_WORDS = sizeof(PA_ACC) / 4,
    PA_FIRST_STATE = 16,                /* words before: the first one counts tiles, in a cache line of its own */
    PA_AGGREGATE = 1, PA_PREFIX = 2     /* flags; 0: nothing is published yet */
};
typedef unsigned long long pa_state_word;
struct pa_state { PA_ACC value; unsigned flag; };

PA_FN volatile pa_state_word *pa_state_at(const pa_operand *states, int64_t index)
{
    return (volatile pa_state_word *)states->at + PA_FIRST_STATE + index * PA_STATE_WORDS;
}
PA_FN void pa_publish(const pa_operand *states, pa_runtime *rt, int64_t tile, int64_t index, PA_ACC value,
                      unsigned flag)
{
    volatile pa_state_word *to = pa_state_at(states, index);
    pa_words<PA_ACC> u;
    u.value = value;
    if (!PA_INSIDE(*states, (const char *)to, 8 * PA_STATE_WORDS)) return;
#pragma unroll
    for (int k = 0; k < PA_STATE_WORDS; ++k) to[k] = (pa_state_word)flag << 32 | u.word[k];
}
/* A state whose words have different flags is being written. */
PA_FN pa_state pa_read_state(const pa_operand *states, pa_runtime *rt, int64_t tile, int64_t index)
{
    const volatile pa_state_word *from = pa_state_at(states, index);
    pa_words<PA_ACC> u;
    pa_state x = {PA_IDENTITY, PA_PREFIX};
    if (!PA_INSIDE(*states, (const char *)from, 8 * PA_STATE_WORDS)) return x;
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

/* Called by the first warp. `first` is the index of the line's states: of its tiles, then of their groups. */
PA_FN PA_ACC pa_look_back(const pa_operand *states, pa_runtime *rt, int64_t first, int64_t tiles, int64_t tile,
                          PA_ACC own)
{
    const int lane = (int)threadIdx.x, place = (int)(tile % PA_GROUP);
    const int64_t group = tile / PA_GROUP, before = group - 1 - lane; /* the nearest group before is the first lane's */
    pa_state of_group = {PA_IDENTITY, PA_PREFIX}, of_tile = {PA_IDENTITY, PA_AGGREGATE};
    if (before >= 0) of_group = pa_read_state(states, rt, tile, first + tiles + before);
    if (lane < place) of_tile = pa_read_state(states, rt, tile, first + tile - place + lane);
    if (lane == place) of_tile.value = own;
    while (PA_BALLOT(of_tile.flag == 0))
        if (of_tile.flag == 0) of_tile = pa_read_state(states, rt, tile, first + tile - place + lane);
    PA_ACC total, within = pa_shfl(pa_warp_exclusive_scan(of_tile.value, &total), place);
    const bool publishes = place == PA_GROUP - 1 && lane == 0;
    if (publishes) pa_publish(states, rt, tile, first + tiles + group, total, PA_AGGREGATE);
    for (;;) { /* until there is a prefix, and all groups after it have aggregates */
        const unsigned prefixes = PA_BALLOT(of_group.flag == PA_PREFIX), missing = PA_BALLOT(of_group.flag == 0);
        if (prefixes && !(missing & (prefixes & (0u - prefixes)) - 1)) break;
        if (of_group.flag == 0 || (!prefixes && of_group.flag == PA_AGGREGATE))
            of_group = pa_read_state(states, rt, tile, first + tiles + before);
    }
    int nearest = __ffs((int)PA_BALLOT(of_group.flag == PA_PREFIX)) - 1;
    PA_ACC sum = pa_shfl(of_group.value, nearest);
    while (nearest > 0) {
        const PA_ACC next = pa_shfl(of_group.value, --nearest);
        sum = PA_COMBINE(sum, next);
    }
    if (publishes) pa_publish(states, rt, tile, first + tiles + group, PA_COMBINE(sum, total), PA_PREFIX);
    return PA_COMBINE(sum, within);
}

#endif
