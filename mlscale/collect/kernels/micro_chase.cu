// Latency: one thread follows a cycle through memory (past the L1 cache), or with SHARED through
// shared memory; cycles of the second time round are counted.
extern "C" __global__ void KERNEL(const unsigned *next, unsigned *out, long long *cycles,
                                  int steps)
{
#if SHARED
    __shared__ unsigned words[4096];
    for (int i = 0; i < 4096; i++)
        words[i] = next[i];
#define FOLLOW(place) words[place]
#else
#define FOLLOW(place) __ldcg(next + (place))
#endif
    unsigned place = 0;
    for (int k = 0; k < steps; k++)
        place = FOLLOW(place);
    asm volatile("" : : "r"(place) : "memory");
    long long start = clock64();
    for (int k = 0; k < steps; k++)
        place = FOLLOW(place);
    asm volatile("" : : "r"(place) : "memory");
    cycles[0] = clock64() - start;
    out[0] = place;
}
#undef FOLLOW
