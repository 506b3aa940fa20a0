// Each block transforms 1024 complex numbers in shared memory; 512 threads, ten stages.
extern "C" __global__ void KERNEL(const float *re, const float *im, float *out_re, float *out_im)
{
    __shared__ float x[1024], y[1024];
    int t = threadIdx.x, first = blockIdx.x * 1024;
    for (int i = t; i < 1024; i += 512) {
        int from = __brev((unsigned)i) >> 22;
        x[i] = re[first + from];
        y[i] = im[first + from];
    }
    for (int half = 1; half < 1024; half *= 2) {
        __syncthreads();
        int k = t % half, low = t / half * 2 * half + k, high = low + half;
        float s, c;
        sincosf(-3.14159265358979f * (float)k / (float)half, &s, &c);
        float a = x[high] * c - y[high] * s, b = x[high] * s + y[high] * c;
        float p = x[low], q = y[low];
        x[low] = p + a;
        y[low] = q + b;
        x[high] = p - a;
        y[high] = q - b;
    }
    __syncthreads();
    for (int i = t; i < 1024; i += 512) {
        out_re[first + i] = x[i];
        out_im[first + i] = y[i];
    }
}
