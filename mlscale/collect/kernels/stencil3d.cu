// Seven-point weighted sum on an n x n x n grid; the border is left as it is.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    int x = i % n, y = i / n % n, z = i / n / n;
    if (x > 0 && x < n - 1 && y > 0 && y < n - 1 && z > 0 && z < n - 1)
        out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]
                                        + in[i - n * n] + in[i + n * n]);
}
