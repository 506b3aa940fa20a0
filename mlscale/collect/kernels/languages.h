// One source in three languages: what CUDA C++, HIP and OpenCL C call differently.
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define ENTRY __kernel void
#define GLOBAL __global
#define SHARED __local
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define BLOCK ((unsigned)get_group_id(0))
#define BLOCKS ((unsigned)get_num_groups(0))
#define THREAD ((unsigned)get_local_id(0))
#define THREADS ((unsigned)get_local_size(0))
#define ATOMIC_ADD(place, summand) atomic_add(place, summand)
#define LOAD(place) (*(place))
#define AS_FLOAT(bits) as_float(bits)
#define AS_BITS(number) as_uint(number)
#define FMA(a, b, c) ((a) * (b) + (c))  // a processor without fused ones calls a library
#define RSQRT rsqrt
#define SIN sin
#define COS cos
#define EXP exp
#define LOG log
#define FAST_SIN native_sin
#define FAST_EXP native_exp
#define FAST_LOG native_log
#define ULONG ulong
#define UINT4 uint4
// The sum over 32 neighbours, in the first of them; by shared memory, all threads take part.
#define SUM_PLACES(threads) __local float places[threads]
#define SUM_OF_32(sum)                                              \
    for (int distance = 16; distance > 0; distance /= 2) {          \
        BARRIER();                                                  \
        places[THREAD] = sum;                                       \
        BARRIER();                                                  \
        sum += THREAD % 32 < distance ? places[THREAD + distance] : 0.0f; \
    }
#else
#define ENTRY extern "C" __global__ void
#define GLOBAL
#define SHARED __shared__
#define BARRIER() __syncthreads()
#define BLOCK blockIdx.x
#define BLOCKS gridDim.x
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define ATOMIC_ADD(place, summand) atomicAdd(place, summand)
#define AS_FLOAT(bits) __uint_as_float(bits)
#define AS_BITS(number) __float_as_uint(number)
#define FMA fmaf
#define RSQRT rsqrtf
#define SIN sinf
#define COS cosf
#define EXP expf
#define LOG logf
#define FAST_SIN __sinf
#define FAST_EXP __expf
#define FAST_LOG __logf
#define ULONG unsigned long long
#define UINT4 uint4
#define SUM_PLACES(threads)
#ifdef __HIP__
#define LOAD(place) (*(place))
#define SHUFFLE_DOWN(value, distance) __shfl_down(value, distance, 32)
#else
#define LOAD(place) __ldcg(place)  // past the L1 cache
#define SHUFFLE_DOWN(value, distance) __shfl_down_sync(0xffffffffu, value, distance)
#endif
#define SUM_OF_32(sum)                                     \
    for (int distance = 16; distance > 0; distance /= 2)   \
        sum += SHUFFLE_DOWN(sum, distance);
#endif
