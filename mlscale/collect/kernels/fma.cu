// Chains of dependent multiply-adds: CHAINS of them independent in each thread.
ENTRY KERNEL(GLOBAL const REAL *in, GLOBAL REAL *out, REAL factor, REAL summand, int rounds)
{
    int i = BLOCK * THREADS + THREAD;
    REAL x[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        x[c] = in[i] + (REAL)c;
    for (int k = 0; k < rounds; k++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = x[c] * factor + summand;
    }
    REAL sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    out[i] = sum;
}
