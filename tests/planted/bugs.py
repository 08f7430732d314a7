"""Small bugs, one in each area: what stands in the source, what is to stand there instead, and the tests that
find it. A text is looked up in the whole source, so a file may move; it stands in one place.
"""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    name: str
    old: str
    new: str
    tests: str  # files in tests/, by their names alone, and options of pytest
    hip: bool = False  # on the emulated GPU, too


BUGS = (
    # views
    Bug(
        "a slice keeps its parent's stride",
        "new_strides.append(stride * step if",
        "new_strides.append(stride if",
        "test_shapes.py test_indexing.py",
    ),
    Bug(
        "an index one past the end",
        "if not -n <= index < n:",
        "if not -n <= index <= n:",
        "test_shapes.py test_indexing.py",
    ),
    Bug("bytes before the first element", "low += (n - 1) * stride", "low += n * stride", "test_shapes.py"),
    Bug(
        "overlap is seen from one side",
        "a[0] < b[1] and b[0] < a[1]",
        "a[0] < b[1] and b[0] < a[0]",
        "test_shapes.py test_aliasing.py",
    ),
    Bug(
        "axes with a gap are merged",
        "if sizes and all(outer == inner * n",
        "if sizes and all(outer >= inner * n",
        "test_shapes.py",
    ),
    Bug(
        "a view where only a copy can be",
        "            if n % m:\n                return None\n",
        "",
        "test_shapes.py",
    ),
    Bug(
        "what is repeated is writeable",
        "return any(n > 1 and s == 0",
        "return any(n > 2 and s == 0",
        "test_shapes.py test_array.py test_stride_tricks.py",
    ),
    # dtypes
    Bug("uint8 fits int8", "uint8: (uint16, int16),", "uint8: (uint16, int8),", "test_dtypes.py"),
    Bug(
        "float32 and complex128 in half",
        "float32: (float64, complex64),",
        "float32: (float64,),",
        "test_dtypes.py",
    ),
    # worker threads
    Bug("a lost wake-up", "    atomic_store(&pool->waiting, 1);\n", "", "test_threads.py"),
    Bug(
        "the last block is a whole one",
        "left == 1 ? job->count : begin + job->grain",
        "begin + job->grain",
        "test_threads.py",
    ),
    Bug(
        "a block is taken twice",
        "left = atomic_fetch_sub(&job->remaining, taken);",
        "left = atomic_load(&job->remaining); sched_yield(); atomic_store(&job->remaining, left - taken);",
        "test_threads.py",
    ),
    Bug("workers that a fork left behind", "    pool->started = 0;\n", "", "test_threads.py"),
    Bug(
        "two callers in one pool",
        " || inside_block || atomic_exchange(&pool->busy, 1)) {",
        " || inside_block) {",
        "test_threads.py",
    ),
    Bug(
        "memory off its line",
        "posix_memalign(&block, ALIGNMENT, want)",
        "posix_memalign(&block, 16, want)",
        "test_driver_cpu.py test_pool.py",
    ),
    Bug("the last failure is told", "candidate->tid < tid;", "candidate->tid > tid;", "test_debug.py"),
    # exchange
    Bug(
        "DLPack's offset",
        "(uint64_t)(uintptr_t)tensor->data + tensor->byte_offset",
        "(uint64_t)(uintptr_t)tensor->data",
        "test_dlpack.py",
    ),
    Bug("DLPack's read-only flag", "versioned ? (int)(versioned_tensor->flags & 1) : 0", "0", "test_dlpack.py"),
    Bug(
        "DLPack's strides",
        "size <= 1 ? (int64_t)step : stride",
        "size <= 2 ? (int64_t)step : given",
        "test_dlpack.py",
    ),
    Bug(
        "DLPack's export is writeable",
        "flags = (0 if source._writeable else READ_ONLY)",
        "flags = (0)",
        "test_dlpack.py",
    ),
    # caches
    Bug(
        "a key without the headers",
        "format_steps(steps), fingerprint, headers(), *parts",
        "format_steps(steps), fingerprint, *parts",
        "test_cache.py",
    ),
    Bug(
        "a key without the compiler",
        "key_of(text, format_steps(steps), fingerprint, headers()",
        "key_of(text, format_steps(steps), headers()",
        "test_cache.py",
    ),
    Bug(
        "a damaged entry is loaded",
        '.get("sha256") == hashlib.sha256(binary).hexdigest():',
        '.get("sha256"):',
        "test_cache.py",
    ),
    Bug(
        "a race for one name",
        'temporary = path.with_name(f".new-{secrets.token_hex(8)}")',
        'temporary = path.with_name(".new-1")',
        "test_cache.py test_kept.py",
    ),
    Bug(
        "anybody's cache is trusted",
        "return status.st_uid in owners and not status",
        "return not status",
        "test_cache.py test_autotune_sources.py",
    ),
    Bug(
        "a captured value is stale",
        "if static_key(value) != static_key(c.value)]",
        "if value is None]",
        "test_stale.py",
    ),
    Bug(
        "numbers of another sign are one key",
        "return kind, x.hex()",
        "return kind, x",
        "test_replayed_calls.py",
    ),
    Bug(
        "operands of another distance are one key",
        "(k, j, x._ptr - start,",
        "(k, j, 0,",
        "test_replayed_calls.py",
    ),
    # the language
    Bug(
        "directions are swapped",
        '"IN" if found == {"r"} else "OUT" if',
        '"OUT" if found == {"r"} else "IN" if',
        "test_directions.py",
    ),
    Bug(
        "a weak operand makes a weak result",
        "weak=a.weak and b.weak)",
        "weak=a.weak or b.weak)",
        "test_semantics.py test_kernels.py test_cost_analysis.py",
    ),
    Bug(
        "a check too many is left out",
        "Interval(start.low, stop.high.plus(Affine(-1)))",
        "Interval(start.low, stop.high.plus(Affine(-2)))",
        "test_debug_proofs.py test_debug.py",
    ),
    Bug(
        "a missed bound",
        "return (uint64_t)i < (uint64_t)n;",
        "return (uint64_t)i <= (uint64_t)n;",
        "test_debug.py test_device_headers.py",
    ),
    Bug(
        "a sub-view past the end",
        "(size <= (int64_t)((uint64_t)extent - (uint64_t)offset))",
        "(size <= extent)",
        "test_debug.py test_device_headers.py",
    ),
    Bug(
        "slices with a negative step",
        "high = step < 0 ? n - 1 : n;",
        "high = n;",
        "test_kernel_views.py test_device_headers.py",
    ),
    Bug(
        "division that is exact goes down",
        "q = (T)(q - (T)((r != 0) & ((r ^ d) < 0)));",
        "q = (T)(q - (T)((r ^ d) < 0));",
        "test_device_headers.py",
    ),
    Bug(
        "a shift by all bits",
        "(U)b < N ? (W)a << ((W)(U)b & (N - 1)) : 0",
        "(U)b <= N ? (W)a << ((W)(U)b & (N - 1)) : 0",
        "test_device_headers.py",
    ),
    Bug(
        "constants wrap as unsigned",
        'if dtype.kind == "i" and value >> (bits - 1) else value',
        "if False else value",
        "test_semantics.py test_kernels.py test_constant_arguments.py",
    ),
    # library kernels
    Bug(
        "the identity of products",
        'ReduceOp("prod", "{0} * {1}", 1, double_accumulator=True)',
        'ReduceOp("prod", "{0} * {1}", 0, double_accumulator=True)',
        "test_statistical_functions.py",
    ),
    Bug(
        "minima of no elements",
        "        if op.identity is None and not all(x._shape[k] for k in axes):\n",
        "        if False:\n",
        "test_statistical_functions.py",
    ),
    Bug(
        "NaN comes first",
        "nan = ones if descending else ones ^ top",
        "nan = ones ^ top",
        "test_sorting_functions.py",
    ),
    Bug(
        "infinity is sorted as NaN",
        "bad = (v & job->sign_flip) > job->limit;",
        "bad = (v & job->sign_flip) >= job->limit;",
        "test_sort_instruction_sets.py test_sorting_functions.py",
    ),
    Bug(
        "the side of a search",
        '("i", "right"): "x <= key"',
        '("i", "right"): "x < key"',
        "test_set_functions.py",
    ),
    Bug(
        "the last bin's upper edge",
        "elif v >= edges[bin + 1] and bin < bins - 1:",
        "elif v >= edges[bin + 1]:",
        "test_histogram_functions.py",
    ),
    Bug(
        "draws that repeat each other",
        "(state.start + blocks) % (1 << 64)",
        "(state.start + blocks // 2) % (1 << 64)",
        "test_random_generator.py",
    ),
    Bug(
        "a product loses a step",
        "for (p = 0; p < kc; p++, a += sak, b += sbk, prefetched += prefetch_step)",
        "for (p = 0; p < kc - (kc > 5); p++, a += sak, b += sbk, prefetched += prefetch_step)",
        "test_gemm_header.py -k drawn",
    ),
    # memory and streams
    Bug(
        "a block that is too small",
        "return (((nbytes - 1) >> shift) + 1) << shift",
        "return ((nbytes - 1) >> shift) << shift",
        "test_pool.py",
    ),
    Bug(
        "a read doesn't wait for a write",
        "if ((ranges[r].writes || old->writes) &&",
        "if (ranges[r].writes &&",
        "test_stream_order.py",
        hip=True,
    ),
    Bug(
        "ranges that touch at one end",
        "ranges[r].low < old->high && old->low < ranges[r].high)",
        "ranges[r].low < old->high && old->low < ranges[r].low)",
        "test_stream_order.py",
        hip=True,
    ),
)
