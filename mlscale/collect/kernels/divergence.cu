// The lanes of a warp take WAYS different branches, one after another.
ENTRY KERNEL(GLOBAL const unsigned *in, GLOBAL unsigned *out, int rounds)
{
    int i = BLOCK * THREADS + THREAD;
    unsigned x = in[i], own = i % WAYS;
    for (unsigned way = 0; way < WAYS; way++) {
        if (own == way) {
            for (int k = 0; k < rounds; k++) {
                x = x * (1664525u + 2 * way) + 1013904223u;
                x ^= x >> 13;
            }
        }
    }
    out[i] = x;
}
