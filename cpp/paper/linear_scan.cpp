#include "paper/linear_scan.h"

#include <algorithm>

#include "engine/query/top_k.h"
#include "engine/scan/scan.h"
#include "paper/byte_tables.h"
#include "paper/checked_loops.h"

namespace bitweigh::paper {

namespace {

// Scans rows [first, end). fixed_bytes, if not 0, is the number of bytes of a code.
template <std::size_t fixed_bytes, class Value>
void scan(const ByteTables<Value>& tables, const std::uint8_t* codes, std::size_t first,
          std::size_t end, std::size_t n_bytes, TopK<Neighbour>& top) {
    const std::size_t stride = fixed_bytes ? fixed_bytes : n_bytes;
    auto worst = static_cast<Value>(top.worst());
    for (std::size_t row = first; row < end; ++row) {
        const Value d = tables.template distance<fixed_bytes>(codes + row * stride);
        if (d <= worst) {
            top.offer({d, static_cast<Id>(row)});
            worst = static_cast<Value>(top.worst());
        }
    }
}

template <class Value>
std::vector<Neighbour> scan_with(const std::uint8_t* codes, std::size_t n, const double* costs,
                                 std::size_t n_bits, BitOrder order, std::size_t k,
                                 Checkpoint& checkpoint) {
    const std::size_t n_bytes = bytes_of(n_bits);
    const ByteTables<Value> tables(costs, n_bits, order);
    TopK<Neighbour> top(std::max<std::size_t>(1, std::min(k, n)));
    in_pieces(n, checkpoint, [&](std::size_t first, std::size_t size) {
        const std::size_t end = first + size;
        switch (n_bytes) {
            case 4:
                scan<4>(tables, codes, first, end, n_bytes, top);
                break;
            case 8:
                scan<8>(tables, codes, first, end, n_bytes, top);
                break;
            case 16:
                scan<16>(tables, codes, first, end, n_bytes, top);
                break;
            case 32:
                scan<32>(tables, codes, first, end, n_bytes, top);
                break;
            default:
                scan<0>(tables, codes, first, end, n_bytes, top);
        }
    });
    return top.take_sorted();
}

}  // namespace

std::vector<Neighbour> linear_scan(const std::uint8_t* codes, std::size_t n, const double* costs,
                                   std::size_t n_bits, BitOrder order, std::size_t k,
                                   bool single_precision, Checkpoint& checkpoint) {
    clean_vector_state();
    return single_precision ? scan_with<float>(codes, n, costs, n_bits, order, k, checkpoint)
                            : scan_with<double>(codes, n, costs, n_bits, order, k, checkpoint);
}

}  // namespace bitweigh::paper
