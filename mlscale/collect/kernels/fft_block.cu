// Each block transforms 1024 complex numbers in shared memory; 512 threads, ten stages.
ENTRY KERNEL(GLOBAL const float *re, GLOBAL const float *im, GLOBAL float *out_re,
             GLOBAL float *out_im)
{
    SHARED float x[1024], y[1024];
    int t = THREAD, first = BLOCK * 1024;
    for (int i = t; i < 1024; i += 512) {
        int from = 0;  // the ten bits of i, turned round
        for (int bit = 0; bit < 10; bit++)
            from |= (i >> bit & 1) << (9 - bit);
        x[i] = re[first + from];
        y[i] = im[first + from];
    }
    for (int width = 1; width < 1024; width *= 2) {
        BARRIER();
        int k = t % width, low = t / width * 2 * width + k, high = low + width;
        float angle = -3.14159265358979f * (float)k / (float)width;
        float s = SIN(angle), c = COS(angle);
        float a = x[high] * c - y[high] * s, b = x[high] * s + y[high] * c;
        float p = x[low], q = y[low];
        x[low] = p + a;
        y[low] = q + b;
        x[high] = p - a;
        y[high] = q - b;
    }
    BARRIER();
    for (int i = t; i < 1024; i += 512) {
        out_re[first + i] = x[i];
        out_im[first + i] = y[i];
    }
}
