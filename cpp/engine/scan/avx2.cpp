// The kernel for x86-64 CPUs with AVX2: one vector holds a plane of a block.
#include "engine/scan/kernels.h"

#if BITWEIGH_HAS_AVX2

#define BITWEIGH_TARGET __attribute__((target("avx2")))
#include "engine/scan/scan_loop.h"
#include "engine/scan/x86_vectors.h"

namespace bitweigh {
namespace {

struct Avx2 : X86Vectors {
    static constexpr int group = 4;
    static constexpr int wide_group = 2;
};

}  // namespace

const Kernel avx2_kernel = {"avx2",
                            scan_narrow<Avx2>,
                            scan_wide<Avx2>,
                            scan_narrow_listed<Avx2>,
                            scan_wide_listed<Avx2>,
                            scan_lean<Avx2>};

}  // namespace bitweigh

#endif
