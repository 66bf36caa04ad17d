// Determines which kernels this machine can run. The only file that queries the CPU.
#include <array>
#include <cstddef>

#include "engine/scan/kernels.h"

#if BITWEIGH_HAS_AVX2
#include <immintrin.h>
#endif

namespace bitweigh {

namespace {

#if BITWEIGH_HAS_AVX2
bool has_avx512() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

// Whether AVX-512 was measured to be faster than AVX2 on this kind of CPU. On an Intel Xeon with
// AMX it is, where codes are in a cache: the kernel 1.35x with 8-bit sums and 1.4x with 16-bit
// sums, batches of 64 queries 1.27x to 1.45x. On an AMD Zen 4, which computes vectors of 64 bytes
// in two halves, it is not: batches 0.87x to 1.17x, and 0.65x where codes come from memory. VBMI
// stands for Ice Lake and later: earlier ones clock down. `python -m benchmarks.kernels` measures
// it.
bool wide_vectors_pay() {
    return has_avx512() && __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512vbmi");
}
#endif

struct KernelList {
    std::array<const Kernel*, 4> kernels{};
    std::size_t size = 0;

    KernelList() {
#if BITWEIGH_HAS_AVX2
        __builtin_cpu_init();
        const bool first = wide_vectors_pay();
        if (first) kernels[size++] = &avx512_kernel;
        if (__builtin_cpu_supports("avx2")) kernels[size++] = &avx2_kernel;
        if (!first && has_avx512()) kernels[size++] = &avx512_kernel;
#endif
#if BITWEIGH_HAS_NEON
        kernels[size++] = &neon_kernel;
#endif
        kernels[size++] = &scalar_kernel;
    }
};

#if BITWEIGH_HAS_AVX2
__attribute__((target("avx"))) void zero_upper_halves() {
    _mm256_zeroupper();
}
#endif

}  // namespace

void clean_vector_state() {
#if BITWEIGH_HAS_AVX2
    if (available_kernels().front() != &scalar_kernel) zero_upper_halves();
#endif
}

std::span<const Kernel* const> available_kernels() {
    static const KernelList list;
    return {list.kernels.data(), list.size};
}

const Kernel* find_kernel(std::string_view name) {
    for (const Kernel* kernel : available_kernels()) {
        if (name == kernel->name) return kernel;
    }
    return nullptr;
}

}  // namespace bitweigh
