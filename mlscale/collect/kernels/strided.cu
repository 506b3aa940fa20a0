// Reads a whole sector for one word of it: neighbouring threads read STRIDE words apart.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, unsigned n)
{
    unsigned i = BLOCK * THREADS + THREAD;
    unsigned rows = n / STRIDE;
    if (i < n)
        out[i] = in[(i % rows) * STRIDE + i / rows];
}
