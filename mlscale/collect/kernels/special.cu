// Transcendental functions: the accurate ones, or the special-function unit's by FAST_SIN and so on.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int rounds)
{
    int i = BLOCK * THREADS + THREAD;
    float x = in[i];
    for (int k = 0; k < rounds; k++)
        x = 0.5f * SINE(x) + 0.25f * EXPONENTIAL(-x) + 0.1f * LOGARITHM(1.0f + x);
    out[i] = x;
}
