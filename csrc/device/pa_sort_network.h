/* Sorting networks for up to PA_S_MAX_SMALL keys in vector registers.

   Key number i of R vectors is in lane i / R of vector i % R: most of a bitonic merge sort then compares whole vectors,
   and only what is at least R apart compares lanes. At the end the lanes of all vectors are interleaved, which brings
   keys in the order of memory. */

#ifdef PA_S_VBYTES
#elif defined(__AVX512F__)
#define PA_S_VBYTES 64
#elif defined(__AVX2__)
#define PA_S_VBYTES 32
#else
#define PA_S_VBYTES 16
#endif
#if PA_S_VBYTES == 64 && defined(__AVX512F__)
#define PA_S_MASKED 1 /* AVX-512's masks */
#else
#define PA_S_MASKED 0
#endif

#define PA_S_LANES (PA_S_VBYTES * 8 / PA_S_BITS)
#define PA_S_VECTORS 8
#define PA_S_MAX_SMALL (PA_S_VECTORS * PA_S_LANES)
#if PA_S_BITS == 64
#define PA_S_KEY_MAX INT64_MAX
#define PA_S_KEY_MIN INT64_MIN
typedef int64_t pa_key;
typedef uint64_t pa_word;
#else
#define PA_S_KEY_MAX INT32_MAX
#define PA_S_KEY_MIN INT32_MIN
typedef int32_t pa_key;
typedef uint32_t pa_word;
#endif
typedef pa_key pa_keys __attribute__((vector_size(PA_S_VBYTES)));
typedef pa_key pa_keys_at __attribute__((vector_size(PA_S_VBYTES), aligned(PA_S_BITS / 8), may_alias));

#define PA_S_INLINE static inline __attribute__((always_inline, unused))
#define PA_S_NOINLINE static __attribute__((noinline, unused))
/* PA_S_ALL(f, m) lists f(lane, m) of all lanes. */
#define PA_S_ALL2(f, m, l) f(l, m), f(l + 1, m)
#define PA_S_ALL4(f, m, l) PA_S_ALL2(f, m, l), PA_S_ALL2(f, m, l + 2)
#define PA_S_ALL8(f, m, l) PA_S_ALL4(f, m, l), PA_S_ALL4(f, m, l + 4)
#if PA_S_LANES == 2
#define PA_S_ALL(f, m) PA_S_ALL2(f, m, 0)
#elif PA_S_LANES == 4
#define PA_S_ALL(f, m) PA_S_ALL4(f, m, 0)
#elif PA_S_LANES == 8
#define PA_S_ALL(f, m) PA_S_ALL8(f, m, 0)
#else
#define PA_S_ALL(f, m) PA_S_ALL8(f, m, 0), PA_S_ALL8(f, m, 8)
#endif
#define PA_S_XOR(l, m) ((l) ^ (m))
#define PA_S_UPPER(l, m) ((l) & (m) ? -1 : 0)
#define PA_S_ZIP(l, m) (((l) & 1) * PA_S_LANES + (m) + (l) / 2)
#if defined(__clang__) || __GNUC__ >= 12
#define PA_S_SHUFFLE(a, b, f, m) __builtin_shufflevector(a, b, PA_S_ALL(f, m))
#else
#define PA_S_SHUFFLE(a, b, f, m) __builtin_shuffle(a, b, (pa_keys){PA_S_ALL(f, m)})
#endif

PA_S_INLINE pa_keys pa_keys_of(pa_key k) { return (pa_keys){0} + k; }

#if PA_S_MASKED
/* Assembly: compilers translate the builtins differently, and the header of the intrinsics takes longer to parse than
   the kernel to compile. */
#if PA_S_BITS == 64
#define PA_S_WIDTH "q"
#define PA_S_MOVE "vmovdqu64"
#else
#define PA_S_WIDTH "d"
#define PA_S_MOVE "vmovdqu32"
#endif
typedef uint16_t pa_lanes;
typedef pa_key pa_few_keys_at __attribute__((vector_size(PA_S_VBYTES / 4), aligned(PA_S_BITS / 8), may_alias));
#define PA_S_FULL ((pa_lanes)((1u << PA_S_LANES) - 1))

PA_S_INLINE pa_keys pa_keys_min(pa_keys a, pa_keys b)
{
    pa_keys r;
    __asm__("vpmins" PA_S_WIDTH " %2, %1, %0" : "=v"(r) : "v"(a), "v"(b));
    return r;
}
PA_S_INLINE pa_keys pa_keys_max(pa_keys a, pa_keys b)
{
    pa_keys r;
    __asm__("vpmaxs" PA_S_WIDTH " %2, %1, %0" : "=v"(r) : "v"(a), "v"(b));
    return r;
}
/* min(a, b) but in lanes with bit d, which get max(a, b). */
PA_S_INLINE pa_keys pa_keys_minmax(pa_keys a, pa_keys b, const int d)
{
    pa_keys r = pa_keys_min(a, b);
    const pa_lanes top = (pa_lanes)(d == 1 ? 0xaaaa : d == 2 ? 0xcccc : d == 4 ? 0xf0f0 : 0xff00);
    __asm__("vpmaxs" PA_S_WIDTH " %2, %1, %0%{%3%}" : "+v"(r) : "v"(a), "v"(b), "Yk"(top));
    return r;
}
PA_S_INLINE pa_lanes pa_keys_less(pa_keys a, pa_keys b)
{
    pa_lanes m;
    __asm__("vpcmpgt" PA_S_WIDTH " %2, %1, %0" : "=Yk"(m) : "v"(b), "v"(a));
    return m;
}
/* Moves the keys of some lanes to the first lanes. */
PA_S_INLINE pa_keys pa_keys_compress(pa_keys a, pa_lanes some)
{
    pa_keys r;
    __asm__("vpcompress" PA_S_WIDTH " %1, %0%{%2%}%{z%}" : "=v"(r) : "v"(a), "Yk"(some));
    return r;
}
/* The mask of as many lanes from the first on as `some` has. */
PA_S_INLINE pa_lanes pa_lanes_of(pa_lanes some) { return (pa_lanes)((1u << __builtin_popcount(some)) - 1); }
PA_S_INLINE void pa_keys_put(pa_key *to, pa_keys a, pa_lanes some)
{
    __asm__(PA_S_MOVE " %1, %0%{%2%}" : "+m"(*(pa_keys_at *)to) : "v"(a), "Yk"(some));
}
/* The first keys, mostly few: a store of a whole vector to an address that is no multiple of its size takes long.
   Writes up to a whole vector. */
PA_S_INLINE void pa_keys_put_few(pa_key *to, pa_keys a, pa_lanes some)
{
    __asm__("vmovdqu %x1, %0" : "=m"(*(pa_few_keys_at *)to) : "x"(a));
    if (__builtin_popcount(some) > PA_S_LANES / 4) *(pa_keys_at *)to = a;
}
#if PA_S_BITS == 32
typedef int64_t pa_positions __attribute__((vector_size(PA_S_VBYTES)));
typedef int64_t pa_positions_at __attribute__((vector_size(PA_S_VBYTES), aligned(8), may_alias));
typedef pa_key pa_half_keys __attribute__((vector_size(PA_S_VBYTES / 2)));
/* The first half of the lanes, and the second. */
PA_S_INLINE pa_positions pa_positions_low(pa_keys a)
{
    pa_positions r;
    __asm__("vpmovsxdq %t1, %0" : "=v"(r) : "v"(a));
    return r;
}
PA_S_INLINE pa_positions pa_positions_high(pa_keys a)
{
    pa_half_keys half;
    pa_positions r;
    __asm__("vextracti64x4 $1, %1, %0" : "=v"(half) : "v"(a));
    __asm__("vpmovsxdq %1, %0" : "=v"(r) : "v"(half));
    return r;
}
PA_S_INLINE void pa_positions_put(int64_t *to, pa_positions a, pa_lanes some)
{
    __asm__("vmovdqu64 %1, %0%{%2%}" : "+m"(*(pa_positions_at *)to) : "v"(a), "Yk"(some));
}
#endif
/* n keys, and `rest` above them. */
PA_S_INLINE pa_keys pa_keys_some(const pa_key *from, int64_t n, pa_key rest)
{
    pa_keys r = pa_keys_of(rest);
    const pa_lanes some = (pa_lanes)((1u << n) - 1);
    __asm__(PA_S_MOVE " %1, %0%{%2%}" : "+v"(r) : "m"(*(const pa_keys_at *)from), "Yk"(some));
    return r;
}
PA_S_INLINE void pa_keys_put_some(pa_key *to, pa_keys a, int64_t n) { pa_keys_put(to, a, (pa_lanes)((1u << n) - 1)); }
/* For any n, without a branch: lengths of runs are as good as random. */
PA_S_INLINE pa_keys pa_keys_get(const pa_key *from, int64_t n, pa_key rest)
{
    n = n < 0 ? 0 : n;
    return pa_keys_some(from, n < PA_S_LANES ? n : PA_S_LANES, rest);
}
PA_S_INLINE void pa_keys_put_up_to(pa_key *to, pa_keys a, int64_t n)
{
    n = n < 0 ? 0 : n;
    pa_keys_put_some(to, a, n < PA_S_LANES ? n : PA_S_LANES);
}
#else
PA_S_INLINE pa_keys pa_keys_min(pa_keys a, pa_keys b)
{
    const pa_keys m = a < b;
    return (a & m) | (b & ~m);
}
PA_S_INLINE pa_keys pa_keys_max(pa_keys a, pa_keys b)
{
    const pa_keys m = a < b;
    return (b & m) | (a & ~m);
}
PA_S_INLINE pa_keys pa_keys_minmax(pa_keys a, pa_keys b, const int d)
{
    const pa_keys top = d == 1   ? (pa_keys){PA_S_ALL(PA_S_UPPER, 1)}
                        : d == 2 ? (pa_keys){PA_S_ALL(PA_S_UPPER, 2)}
                                 : (pa_keys){PA_S_ALL(PA_S_UPPER, 4)};
    const pa_keys m = (a < b) ^ top;
    return (a & m) | (b & ~m);
}
PA_S_INLINE pa_keys pa_keys_some(const pa_key *from, int64_t n, pa_key rest)
{
    pa_keys r = pa_keys_of(rest);
    __builtin_memcpy(&r, from, (size_t)n * sizeof *from);
    return r;
}
PA_S_INLINE void pa_keys_put_some(pa_key *to, pa_keys a, int64_t n)
{
    __builtin_memcpy(to, &a, (size_t)n * sizeof *to);
}
PA_S_INLINE pa_keys pa_keys_get(const pa_key *from, int64_t n, pa_key rest)
{
    if (n >= PA_S_LANES) return *(const pa_keys_at *)from;
    return n <= 0 ? pa_keys_of(rest) : pa_keys_some(from, n, rest);
}
PA_S_INLINE void pa_keys_put_up_to(pa_key *to, pa_keys a, int64_t n)
{
    if (n >= PA_S_LANES) *(pa_keys_at *)to = a;
    else if (n > 0) pa_keys_put_some(to, a, n);
}
#endif

/* Lane l of the result is lane l ^ m. */
PA_S_INLINE pa_keys pa_keys_xor_lanes(pa_keys a, const int m)
{
    switch (m) {
    case 1: return PA_S_SHUFFLE(a, a, PA_S_XOR, 1);
#if PA_S_LANES > 2
    case 2: return PA_S_SHUFFLE(a, a, PA_S_XOR, 2);
    case 3: return PA_S_SHUFFLE(a, a, PA_S_XOR, 3);
#endif
#if PA_S_LANES > 4
    case 4: return PA_S_SHUFFLE(a, a, PA_S_XOR, 4);
    case 7: return PA_S_SHUFFLE(a, a, PA_S_XOR, 7);
#endif
#if PA_S_LANES > 8
    case 8: return PA_S_SHUFFLE(a, a, PA_S_XOR, 8);
    case 15: return PA_S_SHUFFLE(a, a, PA_S_XOR, 15);
#endif
    default: return a;
    }
}

PA_S_INLINE void pa_keys_exchange(pa_keys *a, pa_keys *b)
{
    const pa_keys low = pa_keys_min(*a, *b);
    *b = pa_keys_max(*a, *b);
    *a = low;
}

/* Bitonic steps between key number i and i ^ m of neighbouring runs, as they lie in vectors a and b. */
PA_S_INLINE void pa_keys_exchange_lanes(pa_keys *a, pa_keys *b, const int m)
{
    const pa_keys low = *a, high = *b;
    *a = pa_keys_minmax(low, pa_keys_xor_lanes(high, m), (m + 1) / 2);
    *b = pa_keys_minmax(high, pa_keys_xor_lanes(low, m), (m + 1) / 2);
}
/* The steps after that between lanes less than d apart. */
PA_S_INLINE void pa_keys_lanes(pa_keys *a, const int d)
{
    if (d > 4) *a = pa_keys_minmax(*a, pa_keys_xor_lanes(*a, 4), 4);
    if (d > 2) *a = pa_keys_minmax(*a, pa_keys_xor_lanes(*a, 2), 2);
    if (d > 1) *a = pa_keys_minmax(*a, pa_keys_xor_lanes(*a, 1), 1);
}
PA_S_INLINE void pa_keys_zip(pa_keys *a, pa_keys *b)
{
    const pa_keys low = PA_S_SHUFFLE(*a, *b, PA_S_ZIP, 0);
    *b = PA_S_SHUFFLE(*a, *b, PA_S_ZIP, PA_S_LANES / 2);
    *a = low;
}

/* Macros: loops that the compiler has to unroll double the compile time. */
#define PA_S_1(f, ...) f(0, __VA_ARGS__);
#define PA_S_2(f, ...) f(0, __VA_ARGS__); f(1, __VA_ARGS__);
#define PA_S_4(f, ...) PA_S_2(f, __VA_ARGS__) f(2, __VA_ARGS__); f(3, __VA_ARGS__);
#define PA_S_8(f, ...) \
    PA_S_4(f, __VA_ARGS__) f(4, __VA_ARGS__); f(5, __VA_ARGS__); f(6, __VA_ARGS__); f(7, __VA_ARGS__);
#define PA_S_X(i, j) pa_keys_exchange(&v[i], &v[j]);
#define PA_S_C(i, j) pa_keys_exchange_lanes(&v[i], &v[j], m);
#define PA_S_L(i, d) pa_keys_lanes(&v[i], d)

/* Merge pairs of sorted runs, each of (m + 1) / 2 lanes. */
PA_S_INLINE void pa_keys_merge_1(pa_keys *v, const int m)
{
    v[0] = pa_keys_minmax(v[0], pa_keys_xor_lanes(v[0], m), (m + 1) / 2);
    pa_keys_lanes(v, (m + 1) / 2);
}
PA_S_INLINE void pa_keys_merge_2(pa_keys *v, const int m)
{
    PA_S_C(0, 1)
    PA_S_2(PA_S_L, (m + 1) / 2)
    PA_S_X(0, 1)
}
PA_S_INLINE void pa_keys_merge_4(pa_keys *v, const int m)
{
    PA_S_C(0, 3) PA_S_C(1, 2)
    PA_S_4(PA_S_L, (m + 1) / 2)
    PA_S_X(0, 2) PA_S_X(1, 3) PA_S_X(0, 1) PA_S_X(2, 3)
}
PA_S_INLINE void pa_keys_merge_8(pa_keys *v, const int m)
{
    PA_S_C(0, 7) PA_S_C(1, 6) PA_S_C(2, 5) PA_S_C(3, 4)
    PA_S_8(PA_S_L, (m + 1) / 2)
    PA_S_X(0, 4) PA_S_X(1, 5) PA_S_X(2, 6) PA_S_X(3, 7)
    PA_S_X(0, 2) PA_S_X(1, 3) PA_S_X(4, 6) PA_S_X(5, 7)
    PA_S_X(0, 1) PA_S_X(2, 3) PA_S_X(4, 5) PA_S_X(6, 7)
}
#define PA_S_MERGES(r)                           \
    pa_keys_merge_##r(v, 1);                     \
    if (PA_S_LANES > 2) pa_keys_merge_##r(v, 3); \
    if (PA_S_LANES > 4) pa_keys_merge_##r(v, 7); \
    if (PA_S_LANES > 8) pa_keys_merge_##r(v, 15);

/* Sort 1, 2, 4 or 8 vectors. Lanes by themselves come first, by the networks that have the fewest comparisons. */
PA_S_INLINE void pa_keys_sort_1(pa_keys *v) { PA_S_MERGES(1) }
PA_S_INLINE void pa_keys_sort_2(pa_keys *v)
{
    PA_S_X(0, 1)
    PA_S_MERGES(2)
    pa_keys_zip(&v[0], &v[1]);
}
PA_S_INLINE void pa_keys_sort_4(pa_keys *v)
{
    PA_S_X(0, 1) PA_S_X(2, 3) PA_S_X(0, 2) PA_S_X(1, 3) PA_S_X(1, 2)
    PA_S_MERGES(4)
    pa_keys_zip(&v[0], &v[2]), pa_keys_zip(&v[1], &v[3]);
    pa_keys_zip(&v[0], &v[1]), pa_keys_zip(&v[2], &v[3]);
}
PA_S_INLINE void pa_keys_sort_8(pa_keys *v)
{
    PA_S_X(0, 2) PA_S_X(1, 3) PA_S_X(4, 6) PA_S_X(5, 7) PA_S_X(0, 4) PA_S_X(1, 5) PA_S_X(2, 6) PA_S_X(3, 7)
    PA_S_X(0, 1) PA_S_X(2, 3) PA_S_X(4, 5) PA_S_X(6, 7) PA_S_X(2, 4) PA_S_X(3, 5) PA_S_X(1, 4) PA_S_X(3, 6)
    PA_S_X(1, 2) PA_S_X(3, 4) PA_S_X(5, 6)
    PA_S_MERGES(8)
    pa_keys_zip(&v[0], &v[4]), pa_keys_zip(&v[1], &v[5]), pa_keys_zip(&v[2], &v[6]), pa_keys_zip(&v[3], &v[7]);
    pa_keys_zip(&v[0], &v[2]), pa_keys_zip(&v[1], &v[3]), pa_keys_zip(&v[4], &v[6]), pa_keys_zip(&v[5], &v[7]);
    pa_keys_zip(&v[0], &v[1]), pa_keys_zip(&v[2], &v[3]), pa_keys_zip(&v[4], &v[5]), pa_keys_zip(&v[6], &v[7]);
}
