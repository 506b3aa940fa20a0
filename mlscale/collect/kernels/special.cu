// Transcendental functions: the accurate ones, or with FAST the special-function unit's.
#if FAST
#define SIN __sinf
#define EXP __expf
#define LOG __logf
#else
#define SIN sinf
#define EXP expf
#define LOG logf
#endif
extern "C" __global__ void KERNEL(const float *in, float *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < rounds; k++)
        x = 0.5f * SIN(x) + 0.25f * EXP(-x) + 0.1f * LOG(1.0f + x);
    out[i] = x;
}
#undef SIN
#undef EXP
#undef LOG
