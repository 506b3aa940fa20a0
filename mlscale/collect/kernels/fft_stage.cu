// One radix-2 stage over global memory: butterflies of elements `half` apart.
extern "C" __global__ void KERNEL(const float *re, const float *im, float *out_re, float *out_im,
                                  int butterflies, int half)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= butterflies)
        return;
    int k = t % half, low = t / half * 2 * half + k, high = low + half;
    float s, c;
    sincosf(-3.14159265358979f * (float)k / (float)half, &s, &c);
    float x = re[high] * c - im[high] * s, y = re[high] * s + im[high] * c;
    out_re[low] = re[low] + x;
    out_im[low] = im[low] + y;
    out_re[high] = re[low] - x;
    out_im[high] = im[low] - y;
}
