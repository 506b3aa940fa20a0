// n x n transposition; the writes of a warp are n words apart.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i < n * n)
        out[i % n * n + i / n] = in[i];
}
