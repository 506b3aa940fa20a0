// Latency: one thread follows a cycle through memory, or with IN_SHARED through shared memory.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL const unsigned *start, GLOBAL unsigned *out,
             int steps)
{
#if IN_SHARED
    SHARED unsigned words[4096];
    for (int i = 0; i < 4096; i++)
        words[i] = next[i];
#endif
    unsigned place = start[0];
    for (int k = 0; k < steps; k++)
#if IN_SHARED
        place = words[place];
#else
        place = LOAD(next + place);
#endif
    out[0] = place;
}
