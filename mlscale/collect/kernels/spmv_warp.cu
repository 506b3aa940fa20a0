// Sparse matrix (compressed rows) times vector, a warp per row; blocks of 256 fill the rows.
ENTRY KERNEL(GLOBAL const int *begin, GLOBAL const int *column, GLOBAL const float *value,
             GLOBAL const float *x, GLOBAL float *out, int rows)
{
    SUM_PLACES(256);
    int row = (BLOCK * THREADS + THREAD) / 32, lane = THREAD % 32;
    float sum = 0.0f;
    if (row < rows)
        for (int k = begin[row] + lane; k < begin[row + 1]; k += 32)
            sum += value[k] * x[column[k]];
    SUM_OF_32(sum)
    if (row < rows && lane == 0)
        out[row] = sum;
}
