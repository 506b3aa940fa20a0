// Dependent loads: each thread follows its own way through a cycle of nodes 128 bytes apart.
ENTRY KERNEL(GLOBAL const unsigned *next, GLOBAL const unsigned *start, GLOBAL unsigned *out,
             int steps)
{
    int i = BLOCK * THREADS + THREAD;
    unsigned node = start[i];
    for (int k = 0; k < steps; k++)
        node = next[node * 32];
    out[i] = node;
}
