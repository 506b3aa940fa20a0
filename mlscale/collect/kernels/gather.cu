// Reads at random places of a table.
ENTRY KERNEL(GLOBAL const float *table, GLOBAL const int *index, GLOBAL float *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i < n)
        out[i] = table[index[i]];
}
