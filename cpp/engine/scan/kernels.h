// The kernels compiled for this architecture, for dispatch.cpp alone.
#pragma once

#include "engine/scan/scan.h"

#if defined(__x86_64__)
#define BITWEIGH_HAS_AVX2 1
#define BITWEIGH_HAS_AVX512 1
#endif
#if defined(__aarch64__)
#define BITWEIGH_HAS_NEON 1
#endif

namespace bitweigh {

extern const Kernel scalar_kernel;
#if BITWEIGH_HAS_AVX2
extern const Kernel avx2_kernel;
#endif
#if BITWEIGH_HAS_AVX512
extern const Kernel avx512_kernel;
#endif
#if BITWEIGH_HAS_NEON
extern const Kernel neon_kernel;
#endif

}  // namespace bitweigh
