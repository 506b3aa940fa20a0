// Sum of 16 x 256 elements per block: registers, then 32 neighbours, then shared memory.
ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out)
{
    SHARED float of_warp[8];
    SUM_PLACES(256);
    int first = BLOCK * 16 * 256 + THREAD;
    float sum = 0.0f;
    for (int k = 0; k < 16; k++)
        sum += in[first + k * 256];
    SUM_OF_32(sum)
    if (THREAD % 32 == 0)
        of_warp[THREAD / 32] = sum;
    BARRIER();
    if (THREAD == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < 8; warp++)
            total += of_warp[warp];
        out[BLOCK] = total;
    }
}
