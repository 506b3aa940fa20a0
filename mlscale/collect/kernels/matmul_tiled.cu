// n x n matrix product by 16 x 16 tiles in shared memory; 256 threads; n is a multiple of 16.
ENTRY KERNEL(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *out, int n)
{
    SHARED float left[16][16], right[16][16];
    int tiles = n / 16, x = THREAD % 16, y = THREAD / 16;
    int row = BLOCK / tiles * 16 + y, column = BLOCK % tiles * 16 + x;
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; tile++) {
        left[y][x] = a[row * n + tile * 16 + x];
        right[y][x] = b[(tile * 16 + y) * n + column];
        BARRIER();
        for (int k = 0; k < 16; k++)
            sum += left[y][k] * right[k][x];
        BARRIER();
    }
    out[row * n + column] = sum;
}
