// Reads of shared memory STRIDE words apart: STRIDE-way bank conflicts for powers of two.
ENTRY KERNEL(GLOBAL const unsigned *in, GLOBAL unsigned *out, int rounds)
{
    SHARED unsigned words[2048];
    int i = BLOCK * THREADS + THREAD;
    for (unsigned k = THREAD; k < 2048; k += THREADS)
        words[k] = in[k];
    BARRIER();
    unsigned sum = i;
    for (int k = 0; k < rounds; k++)
        sum += words[(THREAD * STRIDE + k + (sum & 32)) & 2047];
    out[i] = sum;
}
