// Latency: one thread follows a cycle through shared memory.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL const unsigned *start, GLOBAL unsigned *out,
             int steps)
{
    SHARED unsigned words[4096];
    for (int i = 0; i < 4096; i++)
        words[i] = next[i];
    unsigned place = start[0];
    for (int k = 0; k < steps; k++)
        place = words[place];
    out[0] = place;
}
