// One radix-2 stage over global memory: butterflies of elements `width` apart.
ENTRY KERNEL(GLOBAL const float *re, GLOBAL const float *im, GLOBAL float *out_re,
             GLOBAL float *out_im, int butterflies, int width)
{
    int t = BLOCK * THREADS + THREAD;
    if (t >= butterflies)
        return;
    int k = t % width, low = t / width * 2 * width + k, high = low + width;
    float angle = -3.14159265358979f * (float)k / (float)width;
    float s = SIN(angle), c = COS(angle);
    float x = re[high] * c - im[high] * s, y = re[high] * s + im[high] * c;
    out_re[low] = re[low] + x;
    out_im[low] = im[low] + y;
    out_re[high] = re[low] - x;
    out_im[high] = im[low] - y;
}
