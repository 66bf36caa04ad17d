// A set of segments as Python holds it.
#pragma once

#include <cstddef>

#include "engine/rows/segment_set.h"

namespace bitweigh {

struct SegmentSetObject {
    SegmentSet set;
    std::size_t n_bytes;  // Number of bytes of a code; 0 if there is no segment.
};

}  // namespace bitweigh
