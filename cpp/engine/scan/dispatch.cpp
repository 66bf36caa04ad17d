// Determines which kernels this machine can run. The only file that queries the CPU.
#include <array>
#include <cstddef>

#include "engine/scan/kernels.h"

#if BITWEIGH_HAS_AVX2
#include <immintrin.h>
#endif

namespace bitweigh {

namespace {

struct KernelList {
    std::array<const Kernel*, 3> kernels{};
    std::size_t size = 0;

    KernelList() {
#if BITWEIGH_HAS_AVX2
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx2")) kernels[size++] = &avx2_kernel;
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
    if (available_kernels().front() == &avx2_kernel) zero_upper_halves();
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
