// 32-bit integer arithmetic: multiply-adds, shifts and exclusive ors.
ENTRY KERNEL(GLOBAL const unsigned *in, GLOBAL unsigned *out, int rounds)
{
    int i = BLOCK * THREADS + THREAD;
    unsigned x = in[i];
    for (int k = 0; k < rounds; k++) {
        x = x * 1664525u + 1013904223u;
        x ^= x >> 13;
    }
    out[i] = x;
}
