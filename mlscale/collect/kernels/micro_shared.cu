// Throughput of shared memory: every warp of a block of 1024 reads it without conflicts.
ENTRY KERNEL(GLOBAL const unsigned *in, GLOBAL unsigned *out, int rounds)
{
    SHARED volatile unsigned words[1024];
    words[THREAD] = in[THREAD];
    BARRIER();
    unsigned sum = 0;
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int j = 0; j < 16; j++)
            sum += words[(THREAD + 32 * j) & 1023];
    }
    out[BLOCK * THREADS + THREAD] = sum;
}
