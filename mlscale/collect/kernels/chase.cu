// Dependent loads: each thread follows its own way through a cycle of words.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL const unsigned *start, GLOBAL unsigned *out,
             int steps)
{
    int i = BLOCK * THREADS + THREAD;
    unsigned place = start[i];
    for (int k = 0; k < steps; k++)
        place = next[place];
    out[i] = place;
}
