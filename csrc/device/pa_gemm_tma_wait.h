/* pa_gemm_tma_wait.h: how consumer warps, those that multiply, wait for a stage of bulk tensor copies (TMA). Where
   groups are along the depth (pa_gemm_tiles.h), the last slice of a tile goes on into the next group: these elements
   are cleared first. */
#ifndef PA_GEMM_TMA_WAIT_H
#define PA_GEMM_TMA_WAIT_H

#if PA_GEMM_GROUPED_DEPTH
/* Clears what a slice of an operand, of which a tile has ROWS rows (columns, for B), has behind `depth`: elements of
   the next group. */
template <int ROWS, bool K_MAJOR> PA_FN void pa_tma_clear_operand(unsigned char *slice, int depth)
{
    using slices = pa_mma_slices<ROWS, K_MAJOR, false>;
    enum { ACROSS = ROWS / PA_M_CHUNK };
    if (K_MAJOR) {
        for (int row = pa_mma_thread(); row < ROWS; row += PA_M_WORKERS)
            for (int d = depth; d < PA_M_DEPTH; ++d)
                *(PA_T *)(slice + slices::offset_of(row, d / PA_M_CHUNK) + d % PA_M_CHUNK * PA_M_SIZE) = PA_T{};
    } else {
        for (int i = pa_mma_thread(); i < (PA_M_DEPTH - depth) * ACROSS; i += PA_M_WORKERS)
            *(uint4 *)(slice + slices::offset_of(depth + i / ACROSS, i % ACROSS)) = make_uint4(0, 0, 0, 0);
    }
}
/* Waits for a stage's slices, of which those are cleared that the last ones of a tile have behind its group. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_wait_full(const pa_tma_block &o, const pa_gemm_tile_origin &t, pa_tma_stage stage, int s)
{
    const int64_t left = t.depth - (int64_t)s * PA_M_DEPTH;
    pa_mbarrier_wait(o.full(stage.at), stage.parity);
    if (left >= PA_M_DEPTH) return;
    unsigned char *slice = o.memory + stage.at * PA_M_SLICE;
    pa_tma_clear_operand<PA_M_ROWS, K_MAJOR_A>(slice, (int)left);
    pa_tma_clear_operand<PA_M_COLUMNS, K_MAJOR_B>(slice + PA_M_SLICE_A, (int)left);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    pa_mma_sync();
}
#else
template <bool, bool>
PA_FN void pa_tma_wait_full(const pa_tma_block &o, const pa_gemm_tile_origin &, pa_tma_stage stage, int)
{
    pa_mbarrier_wait(o.full(stage.at), stage.parity);
}
#endif
#endif
