#include "paper/linear_scan.h"

#include <algorithm>

#include "engine/scan/scan.h"
#include "engine/top_k.h"

namespace bitweigh::paper {

namespace {

// T[p * 256 + v]: what byte value v costs at byte p (the paper's w-hat, summed over the byte).
std::vector<float> byte_tables(const double* costs, std::size_t n_bits, BitOrder order) {
    const std::size_t n_bytes = bytes_of(n_bits);
    std::vector<float> tables(n_bytes * 256);
    for (std::size_t v = 0; v < 256; ++v) {
        for (std::size_t p = 0; p < n_bytes; ++p) {
            double sum = 0.0;
            for (std::size_t i = p * 8; i < std::min(n_bits, p * 8 + 8); ++i) {
                sum += costs[2 * i + ((v & bit_mask(i, order)) ? 1 : 0)];
            }
            tables[p * 256 + v] = static_cast<float>(sum);
        }
    }
    return tables;
}

// From 16 bytes on, four sums run side by side: one sum would wait for each addition in turn.
template <std::size_t fixed_bytes>
inline float distance(const float* tables, const std::uint8_t* code, std::size_t n_bytes) {
    const std::size_t bytes = fixed_bytes ? fixed_bytes : n_bytes;
    if (bytes < 16) {
        float sum = 0.0f;
        for (std::size_t p = 0; p < bytes; ++p) sum += tables[p * 256 + code[p]];
        return sum;
    }
    float sums[4] = {};
    std::size_t p = 0;
    for (; p + 4 <= bytes; p += 4) {
        for (std::size_t j = 0; j < 4; ++j) sums[j] += tables[(p + j) * 256 + code[p + j]];
    }
    for (; p < bytes; ++p) sums[0] += tables[p * 256 + code[p]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <std::size_t fixed_bytes>
void scan(const float* tables, const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
          TopK<Neighbour>& top) {
    const std::size_t stride = fixed_bytes ? fixed_bytes : n_bytes;
    auto worst = static_cast<float>(top.worst());
    for (std::size_t row = 0; row < n; ++row) {
        const float d = distance<fixed_bytes>(tables, codes + row * stride, n_bytes);
        if (d <= worst) {
            top.offer({d, static_cast<Id>(row)});
            worst = static_cast<float>(top.worst());
        }
    }
}

}  // namespace

std::vector<Neighbour> linear_scan(const std::uint8_t* codes, std::size_t n, const double* costs,
                                   std::size_t n_bits, BitOrder order, std::size_t k) {
    clean_vector_state();
    const std::size_t n_bytes = bytes_of(n_bits);
    const std::vector<float> tables = byte_tables(costs, n_bits, order);
    TopK<Neighbour> top(std::max<std::size_t>(1, std::min(k, n)));
    switch (n_bytes) {
        case 4: scan<4>(tables.data(), codes, n, n_bytes, top); break;
        case 8: scan<8>(tables.data(), codes, n, n_bytes, top); break;
        case 16: scan<16>(tables.data(), codes, n, n_bytes, top); break;
        case 32: scan<32>(tables.data(), codes, n, n_bytes, top); break;
        default: scan<0>(tables.data(), codes, n, n_bytes, top);
    }
    return top.take_sorted();
}

}  // namespace bitweigh::paper
