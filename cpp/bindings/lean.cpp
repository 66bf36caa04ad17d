// Builds lean segments piece by piece: sorts, cuts and packs rows in arrays of the caller. All of
// this may take long; a Stop or Ctrl-C ends it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "engine/building/lean_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

using Bits = Input<std::uint16_t, 1>;
using Bytes = Output<std::uint8_t, 2>;

// A band of a lean segment: how its keys and rests are read from codes.
struct LeanBand {
    std::size_t n_bytes;
    BitReader key, rest;
    std::size_t n_rest_bytes;

    LeanBand(std::span<const std::uint16_t> bits, std::size_t n_bits, BitOrder order)
        : n_bytes(bytes_of(n_bits)),
          key(bits, order, n_bytes),
          rest(other_bits(bits, n_bits), order, n_bytes),
          n_rest_bytes(std::max<std::size_t>(1, bytes_of(rest.n_bits()))) {}

    void check_codes(std::size_t width) const {
        if (width != n_bytes) throw std::invalid_argument("codes have another length");
    }
};

LeanBand new_band(const Bits& bits, std::size_t n_bits, const std::string& bitorder) {
    if (n_bits == 0 || n_bits > 8 * max_lean_bytes || bits.shape(0) == 0 ||
        bits.shape(0) > max_band_bits) {
        throw std::invalid_argument("no such band of a lean segment");
    }
    for (std::size_t j = 0; j < bits.shape(0); ++j) {
        if (bits.data()[j] >= n_bits) throw std::out_of_range("no such bit");
    }
    return {std::span(bits.data(), bits.shape(0)), n_bits, order_named(bitorder)};
}

bool sort(const LeanBand& band, const Bytes& codes, const Bytes& numbers, const Bytes& spare_codes,
          const Bytes& spare_numbers, Stop* stop) {
    const std::size_t n = codes.shape(0), number_bytes = numbers.shape(1);
    band.check_codes(codes.shape(1));
    band.check_codes(spare_codes.shape(1));
    if (numbers.shape(0) != n || spare_codes.shape(0) != n || spare_numbers.shape(0) != n ||
        spare_numbers.shape(1) != number_bytes || (number_bytes != 4 && number_bytes != 8) ||
        n >= max_segment_rows) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    bool in_spare = false;
    run_checked(stop, [&](Checkpoint& checkpoint) {
        in_spare = sort_lean_rows({codes.data(), numbers.data()},
                                  {spare_codes.data(), spare_numbers.data()}, n, number_bytes,
                                  band.key, checkpoint);
    });
    return in_spare;
}

void starts(const LeanBand& band, const Codes& codes, std::uint64_t first_key,
            std::uint64_t first_position, const Output<std::uint32_t, 1>& written, Stop* stop) {
    band.check_codes(codes.shape(1));
    bool right = true;
    run_checked(stop, [&](Checkpoint&) {
        right = key_starts(codes.data(), codes.shape(0), band.key, first_key,
                           {written.data(), written.shape(0)}, first_position);
    });
    if (!right) throw std::invalid_argument("the codes are not sorted, or have another key");
}

std::size_t below(const LeanBand& band, const Codes& codes, std::uint64_t key) {
    band.check_codes(codes.shape(1));
    return count_below(codes.data(), codes.shape(0), band.key, key);
}

void pack(const LeanBand& band, const Codes& codes, std::size_t offset,
          const Output<std::uint8_t, 1>& blocks, Stop* stop) {
    band.check_codes(codes.shape(1));
    if (offset >= block_rows ||
        blocks.shape(0) != blocks_of(offset + codes.shape(0)) * block_rows * band.n_rest_bytes) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    run_checked(stop, [&](Checkpoint&) {
        pack_rests(codes.data(), codes.shape(0), band.rest, band.n_rest_bytes, offset,
                   blocks.data());
    });
}

std::size_t mark(const Input<std::uint32_t, 1>& ids, const Output<std::uint8_t, 1>& marks,
                 Stop* stop) {
    std::size_t marked = 0;
    run_checked(stop, [&](Checkpoint&) {
        for (std::size_t i = 0; i < ids.shape(0); ++i) {
            if (ids.data()[i] / 8 >= marks.shape(0)) throw std::out_of_range("no such mark");
        }
        marked = mark_ids(ids.data(), ids.shape(0), marks.data());
    });
    return marked;
}

}  // namespace

void bind_lean(nb::module_& m) {
    nb::class_<LeanBand>(m, "LeanBand", "How keys and rests of one band are read from codes.")
        .def(nb::new_(&new_band), "bits"_a, "n_bits"_a, "bitorder"_a)
        .def_ro("n_rest_bytes", &LeanBand::n_rest_bytes)
        .def("sort", &sort, "codes"_a.noconvert(), "numbers"_a.noconvert(),
             "spare_codes"_a.noconvert(), "spare_numbers"_a.noconvert(),
             "stop"_a.none() = nb::none(),
             "Sort rows by key, stably: codes (n, n_bytes) with numbers (n, 4) or (n, 8). Both\n"
             "pairs of arrays are used; return whether the sorted rows are in the spare ones.")
        .def("starts", &starts, "codes"_a, "first_key"_a, "first_position"_a,
             "starts"_a.noconvert(), "stop"_a.none() = nb::none(),
             "Write the position of the first row of each key, from first_key on, of sorted codes.")
        .def("count_below", &below, "codes"_a, "key"_a,
             "Return how many of the sorted codes have a smaller key.")
        .def("pack_rests", &pack, "codes"_a, "offset"_a, "blocks"_a.noconvert(),
             "stop"_a.none() = nb::none(),
             "Pack the rests of codes into blocks, the first at row `offset` of the first block.");
    m.def("mark_ids", &mark, "ids"_a, "marks"_a.noconvert(), "stop"_a.none() = nb::none(),
          "Set the bit of each id; return the position of the first that was set, or len(ids).");
}

}  // namespace bitweigh
