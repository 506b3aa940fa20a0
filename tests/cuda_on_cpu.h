// Enough of CUDA to run the suite's kernels on a CPU: blocks one after another, the threads of a
// block as fibres that a barrier switches between.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

struct Index { unsigned x = 0, y = 0, z = 0; };
static Index blockIdx, threadIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static

static ucontext_t scheduler;
static std::vector<ucontext_t> fibres;
static std::vector<char> finished;

static void __syncthreads()
{
    unsigned own = threadIdx.x;
    swapcontext(&fibres[own], &scheduler);
    threadIdx.x = own;
}

static float exchanged[1024];
static float __shfl_down(float value, int distance, int = 32)
{
    exchanged[threadIdx.x] = value;
    __syncthreads();
    unsigned from = threadIdx.x + distance;
    float found = from / 32 == threadIdx.x / 32 ? exchanged[from] : value;
    __syncthreads();
    return found;
}
static float __shfl_down_sync(unsigned, float value, int distance)
{
    return __shfl_down(value, distance);
}

// Loads past a cache that is not there.
struct uint4 { unsigned x, y, z, w; };
template <class T> static T __ldcg(const T *place) { return *place; }
static float __uint_as_float(unsigned bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
static unsigned __float_as_uint(float value)
{
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

static int atomicAdd(int *place, int summand)
{
    int before = *place;
    *place += summand;
    return before;
}
static float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
#define __sinf std::sin
#define __expf std::exp
#define __logf std::log
// The tensor cores' tile: every lane holds all of it.
#define TILE_PRODUCT
#define TILE_SUM float sum[256] = {0}
static float half_value(unsigned short bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size = exponent ? std::ldexp(1024.0f + fraction, exponent - 25)
                          : std::ldexp((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}
static void add_tile(float *sum, const unsigned short *a, const unsigned short *b, int n)
{
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++)
            for (int k = 0; k < 16; k++)
                sum[r * 16 + c] += half_value(a[r * n + k]) * half_value(b[c * n + k]);
}
static void store_tile(float *out, const float *sum, int n)
{
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++)
            out[r * n + c] = sum[r * 16 + c];
}

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>)
{
    kernel(*static_cast<std::remove_reference_t<A> *>(arguments[I])...);
}

template <class... A>
static void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void **arguments)
{
    static void (*running)(A...);
    static void **with;
    running = kernel;
    with = arguments;
    gridDim.x = blocks;
    blockDim.x = threads;
    std::vector<std::vector<char>> stacks(threads, std::vector<char>(1 << 16));
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        fibres.assign(threads, ucontext_t());
        finished.assign(threads, 0);
        for (unsigned t = 0; t < threads; t++) {
            getcontext(&fibres[t]);
            fibres[t].uc_stack.ss_sp = stacks[t].data();
            fibres[t].uc_stack.ss_size = stacks[t].size();
            fibres[t].uc_link = &scheduler;
            void (*body)() = [] {
                unsigned own = threadIdx.x;
                call(running, with, std::index_sequence_for<A...>());
                finished[own] = 1;
            };
            makecontext(&fibres[t], body, 0);
        }
        for (bool left = true; left;) {
            left = false;
            for (unsigned t = 0; t < threads; t++) {
                if (finished[t])
                    continue;
                threadIdx.x = t;
                swapcontext(&scheduler, &fibres[t]);
                left = left || !finished[t];
            }
        }
    }
}
