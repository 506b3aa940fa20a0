// n x n matrix product, an element per thread, operands from global memory.
ENTRY KERNEL(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *out, int n)
{
    int i = BLOCK * THREADS + THREAD;
    int row = i / n, column = i % n;
    if (row >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    out[i] = sum;
}
