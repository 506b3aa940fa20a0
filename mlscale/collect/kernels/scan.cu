// Inclusive prefix sums of 512 elements per block, in shared memory, a barrier per doubling.
ENTRY KERNEL(GLOBAL const int *in, GLOBAL int *out)
{
    SHARED int sums[2][512];
    int i = THREAD, from = 0;
    sums[0][i] = in[BLOCK * 512 + i];
    BARRIER();
    for (int distance = 1; distance < 512; distance *= 2) {
        sums[1 - from][i] = sums[from][i] + (i >= distance ? sums[from][i - distance] : 0);
        from = 1 - from;
        BARRIER();
    }
    out[BLOCK * 512 + i] = sums[from][i];
}
