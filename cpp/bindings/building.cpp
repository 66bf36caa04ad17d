// Builds segments: packs codes into blocks, and sorts rows by key or by id. All of this may take
// long; a Stop or Ctrl-C ends it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/block_memory.h"
#include "bindings/interruptible.h"
#include "bindings/segment_arrays.h"
#include "engine/probe/band_table.h"
#include "engine/rows/bits.h"
#include "engine/rows/id_lookup.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

// The number of rows processed between two interrupt checks; whole blocks.
constexpr std::size_t chunk_rows = 1 << 16;

// Calls work(first, n) for chunks of n rows.
template <class Work>
void in_chunks(std::size_t rows, std::size_t row_bytes, Checkpoint& checkpoint, Work work) {
    for (std::size_t first = 0; first < rows; first += chunk_rows) {
        const std::size_t n = std::min(chunk_rows, rows - first);
        work(first, n);
        // A checkpoint counts bytes of a scan, which is several times as fast.
        checkpoint.done(n * row_bytes * 8);
    }
}

using NewBlocks = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

NewBlocks as_array(std::unique_ptr<BlockMemory> memory, std::size_t bytes) {
    std::uint8_t* data = memory->data();
    nb::capsule owner(memory.get(), [](void* p) noexcept { delete static_cast<BlockMemory*>(p); });
    memory.release();  // only now: there may be no memory for a capsule
    return {data, {bytes}, owner};
}

NewBlocks empty_blocks(std::size_t bytes) {
    return as_array(std::make_unique<BlockMemory>(bytes), bytes);
}

NewBlocks pack(const Codes& codes, Stop* stop) {
    const std::size_t n_bytes = codes.shape(1);
    const std::size_t bytes = blocks_of(codes.shape(0)) * block_rows * n_bytes;
    auto memory = std::make_unique<BlockMemory>(bytes);
    run_checked(stop, [&](Checkpoint& checkpoint) {
        in_chunks(codes.shape(0), n_bytes, checkpoint, [&](std::size_t first, std::size_t n) {
            pack_blocks(codes.data() + first * n_bytes, n, n_bytes,
                        memory->data() + first * n_bytes);
        });
    });
    return as_array(std::move(memory), bytes);
}

NewBlocks pack_in_order(const Codes& codes, const Input<Row, 1>& rows, Stop* stop) {
    const std::size_t n_bytes = codes.shape(1);
    const std::size_t bytes = blocks_of(rows.shape(0)) * block_rows * n_bytes;
    auto memory = std::make_unique<BlockMemory>(bytes);
    run_checked(stop, [&](Checkpoint& checkpoint) {
        in_chunks(rows.shape(0), n_bytes, checkpoint, [&](std::size_t first, std::size_t n) {
            for (std::size_t i = first; i < first + n; ++i) {
                if (rows.data()[i] >= codes.shape(0)) throw std::out_of_range("no such row");
            }
            pack_rows(codes.data(), n_bytes, rows.data() + first, n,
                      memory->data() + first * n_bytes);
        });
    });
    return as_array(std::move(memory), bytes);
}

void take_rows(const Codes& values, const Input<Row, 1>& rows, const Output<std::uint8_t, 2>& taken,
               Stop* stop) {
    const std::size_t n_bytes = values.shape(1);
    if (taken.shape(0) != rows.shape(0) || taken.shape(1) != n_bytes) {
        throw std::invalid_argument("taken must have shape (len(rows), n_bytes)");
    }
    run_checked(stop, [&](Checkpoint& checkpoint) {
        in_chunks(rows.shape(0), n_bytes, checkpoint, [&](std::size_t first, std::size_t n) {
            for (std::size_t i = first; i < first + n; ++i) {
                const Row row = rows.data()[i];
                if (row >= values.shape(0)) throw std::out_of_range("no such row");
                std::memcpy(taken.data() + i * n_bytes, values.data() + row * n_bytes, n_bytes);
            }
        });
    });
}

void sort_band(const Codes& codes, const Input<std::uint16_t, 1>& bits, const std::string& bitorder,
               const Output<std::uint32_t, 1>& starts, const Output<Row, 1>& rows, Stop* stop) {
    const std::size_t n = codes.shape(0);
    if (bits.shape(0) == 0 || bits.shape(0) > max_band_bits || rows.shape(0) != n ||
        starts.shape(0) != (std::size_t{1} << bits.shape(0)) + 1 || n >= max_segment_rows) {
        throw std::invalid_argument("the arrays of a band do not fit each other");
    }
    for (std::size_t j = 0; j < bits.shape(0); ++j) {
        if (bits.data()[j] >= 8 * codes.shape(1)) throw std::out_of_range("no such bit");
    }
    const BitOrder order = order_named(bitorder);
    run_checked(stop, [&](Checkpoint& checkpoint) {
        std::vector<std::uint32_t> keys(n);
        in_chunks(n, bits.shape(0), checkpoint, [&](std::size_t first, std::size_t size) {
            keys_of(codes.data() + first * codes.shape(1), size, codes.shape(1),
                    {bits.data(), bits.shape(0)}, order, keys.data() + first);
        });
        sort_by_key(keys.data(), n, bits.shape(0), starts.data(), rows.data(), checkpoint);
    });
}

void sort_ids(const StoredIds& ids, const Output<Row, 1>& by_id, Stop* stop) {
    if (by_id.shape(0) != size_of(ids) || size_of(ids) >= max_segment_rows) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    run_checked(stop, [&](Checkpoint& checkpoint) {
        sort_by_id(column_of(ids), size_of(ids), by_id.data(), checkpoint);
    });
}

std::size_t stray_row(const Codes& codes, std::size_t n_bits, const std::string& bitorder) {
    const unsigned unused = unused_mask(n_bits, order_named(bitorder));
    return first_stray_row(codes.data(), codes.shape(0), codes.shape(1), unused);
}

}  // namespace

void bind_building(nb::module_& m) {
    nb::class_<Stop>(m, "Stop", "A flag that ends the calls it was passed to, on any thread.")
        .def(nb::init<>())
        .def("set", [](Stop& self) { self.requested = true; });
    m.def("empty_blocks", &empty_blocks, "nbytes"_a,
          "Return uninitialised memory for blocks, aligned for fast scans.");
    m.def("pack_blocks", &pack, "codes"_a, "stop"_a.none() = nb::none(),
          "Pack codes (n, n_bytes) into blocks of 32 rows.");
    m.def("pack_in_order", &pack_in_order, "codes"_a, "rows"_a, "stop"_a.none() = nb::none(),
          "Pack the given rows of codes (n, n_bytes), in the given order, into blocks of 32 rows.");
    m.def("take_rows", &take_rows, "values"_a, "rows"_a, "taken"_a.noconvert(),
          "stop"_a.none() = nb::none(),
          "Copy the given rows of values (n, n_bytes) into taken (len(rows), n_bytes).");
    m.def("sort_band", &sort_band, "codes"_a, "bits"_a, "bitorder"_a, "starts"_a.noconvert(),
          "rows"_a.noconvert(), "stop"_a.none() = nb::none(),
          "Write the rows in ascending key into rows (n,), and the position of the first row of\n"
          "each key into starts (2^len(bits) + 1,).");
    m.def("sort_ids", &sort_ids, "ids"_a, "by_id"_a.noconvert(), "stop"_a.none() = nb::none(),
          "Write the rows in ascending id into by_id (n,), rows of equal ids in ascending order.");
    m.def("first_stray_row", &stray_row, "codes"_a, "n_bits"_a, "bitorder"_a,
          "Return the first row with an unused bit set, or the number of rows if there is none.");
}

}  // namespace bitweigh
