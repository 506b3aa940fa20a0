// 256 bins in shared memory, 16 x 256 elements per block, then added to the global bins.
ENTRY KERNEL(GLOBAL const unsigned char *in, GLOBAL int *bins)
{
    SHARED int own[256];
    own[THREAD] = 0;
    BARRIER();
    int first = BLOCK * 16 * 256 + THREAD;
    for (int k = 0; k < 16; k++)
        ATOMIC_ADD(&own[in[first + k * 256]], 1);
    BARRIER();
    ATOMIC_ADD(&bins[THREAD], own[THREAD]);
}
