// Streaming: two reads, a multiply-add and one write per element, in single or double precision.
ENTRY KERNEL(GLOBAL const REAL *a, GLOBAL const REAL *b, GLOBAL REAL *out, REAL factor, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i < n)
        out[i] = a[i] + factor * b[i];
}
