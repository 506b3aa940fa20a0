// Random points in the unit square: how many fall into the quarter circle, counted in integers.
ENTRY KERNEL(GLOBAL int *out, int draws)
{
    unsigned i = BLOCK * THREADS + THREAD;
    unsigned state = i * 2654435761u + 12345u;
    int inside = 0;
    for (int k = 0; k < draws; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        unsigned x = state >> 17, y = state & 0x7fffu;
        inside += x * x + y * y < 0x40000000u;
    }
    out[i] = inside;
}
