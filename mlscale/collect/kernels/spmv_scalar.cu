// Sparse matrix (compressed rows) times vector, a thread per row.
ENTRY KERNEL(GLOBAL const int *begin, GLOBAL const int *column, GLOBAL const float *value,
             GLOBAL const float *x, GLOBAL float *out, int rows)
{
    int row = BLOCK * THREADS + THREAD;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = begin[row]; k < begin[row + 1]; k++)
        sum += value[k] * x[column[k]];
    out[row] = sum;
}
