// Every element adds to a bin in global memory.
ENTRY KERNEL(GLOBAL const int *in, GLOBAL int *bins, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i < n)
        ATOMIC_ADD(&bins[in[i]], 1);
}
