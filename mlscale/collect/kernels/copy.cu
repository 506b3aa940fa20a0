// Streaming: one read and one write per element.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    if (i < n)
        out[i] = in[i];
}
