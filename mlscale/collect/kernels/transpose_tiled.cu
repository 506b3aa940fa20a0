// n x n transposition by 32 x 32 tiles in shared memory; 256 threads; n is a multiple of 32.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int n)
{
    SHARED float tile[32][33];
    int tiles = n / 32, column = THREAD % 32, row = THREAD / 32;
    int left = BLOCK % tiles * 32, top = BLOCK / tiles * 32;
    for (int r = row; r < 32; r += 8)
        tile[r][column] = in[(top + r) * n + left + column];
    BARRIER();
    for (int r = row; r < 32; r += 8)
        out[(left + r) * n + top + column] = tile[column][r];
}
