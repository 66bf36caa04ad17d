// Tests every kernel against a plain double loop on random blocks and tables: runs and lists.
#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "engine/scan/scan.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr Hit untouched = {0xdeadbeef, 0xdeadbeef};

// The ways to draw the entries of a query's tables.
enum class Fill {
    any,       // Entries from 0 to the largest: most 8-bit sums saturate.
    balanced,  // Entries for sums around half of the 8-bit range.
    largest,   // The largest entries alone.
    one_bit,   // Entries 0 or 1.
};

struct Problem {
    bool wide;
    std::size_t planes;
    std::size_t begin;
    std::size_t end;
    std::vector<std::uint8_t> blocks;
    std::vector<std::uint8_t> entries;
    std::vector<std::array<unsigned, block_rows>> sums;  // Sums of blocks begin to end.
};

unsigned entry_max(bool wide, std::size_t planes) {
    if (!wide) return 255;
    return std::min(wide_entry_max, static_cast<unsigned>(65534 / (2 * planes)));
}

Problem make_problem(Rng& rng, bool wide, std::size_t planes, std::size_t begin, std::size_t length,
                     Fill fill) {
    Problem problem{wide, planes, begin, begin + length, {}, {}, {}};
    problem.blocks.resize(problem.end * planes * block_rows);
    for (std::uint8_t& byte : problem.blocks) byte = static_cast<std::uint8_t>(rng() >> 56);
    std::size_t max_entry = entry_max(wide, planes);
    if (fill == Fill::balanced) max_entry = std::clamp<std::size_t>(128 / planes, 1, max_entry);
    if (fill == Fill::one_bit) max_entry = 1;
    problem.entries.resize(planes * plane_table_bytes);
    for (std::size_t table = 0; table < 2 * planes; ++table) {
        std::uint8_t* entries = problem.entries.data() + table * table_bytes;
        for (std::size_t v = 0; v < 16; ++v) {
            const std::size_t entry = fill == Fill::largest ? max_entry : pick(rng, max_entry);
            entries[v] = entries[v + 16] = static_cast<std::uint8_t>(entry);
        }
    }
    for (std::size_t block = begin; block < problem.end; ++block) {
        auto& sums = problem.sums.emplace_back();
        for (std::size_t r = 0; r < block_rows; ++r) {
            unsigned sum = 0;
            for (std::size_t p = 0; p < planes; ++p) {
                const unsigned byte = problem.blocks[(block * planes + p) * block_rows + r];
                const std::uint8_t* tables = problem.entries.data() + p * plane_table_bytes;
                sum += tables[byte % 16];
                sum += tables[table_bytes + byte / 16];
            }
            sums[r] = wide ? sum : std::min(sum, 255u);
        }
    }
    return problem;
}

// Thresholds at which a row just is, or just is not, within; and the smallest and the largest.
std::vector<unsigned> thresholds_for(Rng& rng, const Problem& problem) {
    const unsigned max_threshold = problem.wide ? 65534 : 254;
    std::vector<unsigned> thresholds = {0, max_threshold};
    if (problem.sums.empty()) return thresholds;
    unsigned min_sum = max_threshold;
    for (const auto& sums : problem.sums) {
        min_sum = std::min(min_sum, *std::min_element(sums.begin(), sums.end()));
    }
    const auto& sums = problem.sums[pick(rng, problem.sums.size() - 1)];
    for (const unsigned sum : {min_sum, sums[pick(rng, 31)], sums[pick(rng, 31)]}) {
        for (const unsigned threshold : {sum, sum - 1}) {
            if (threshold <= max_threshold) thresholds.push_back(threshold);
        }
    }
    return thresholds;
}

// The rows of block begin + i that are within the threshold.
std::uint32_t rows_within(const Problem& problem, std::size_t i, unsigned threshold) {
    std::uint32_t rows = 0;
    for (std::size_t r = 0; r < block_rows; ++r) {
        if (problem.sums[i][r] <= threshold) rows |= std::uint32_t{1} << r;
    }
    return rows;
}

// Checks the hits that a kernel wrote; `hits` has one element more than the kernel had room for.
void check_hits(const Kernel& kernel, const Problem& problem, unsigned threshold, const char* what,
                std::size_t n, const std::vector<Hit>& hits, const std::vector<Hit>& expected) {
    const auto same = [](const Hit& a, const Hit& b) {
        return a.block == b.block && a.rows == b.rows;
    };
    const bool equal = n == expected.size() &&
                       std::equal(expected.begin(), expected.end(), hits.begin(), same) &&
                       same(hits.back(), untouched);
    CHECK(equal, kernel.name << (problem.wide ? " wide, " : " narrow, ") << problem.planes
                             << " planes, " << what << " of " << hits.size() - 1 << " blocks from "
                             << problem.begin << ", threshold " << threshold << ": " << n
                             << " hits, expected " << expected.size() << "; rows of the first "
                             << std::hex << (n ? hits[0].rows : 0) << ", expected "
                             << (expected.empty() ? 0 : expected[0].rows));
}

void check_scan(const Kernel& kernel, const Problem& problem, unsigned threshold) {
    std::vector<Hit> expected;
    for (std::size_t i = 0; i < problem.sums.size(); ++i) {
        const std::uint32_t rows = rows_within(problem, i, threshold);
        if (rows) expected.push_back({static_cast<std::uint32_t>(problem.begin + i), rows});
    }
    std::vector<Hit> hits(problem.sums.size() + 1, untouched);
    const ScanTables tables = {problem.entries.data(), problem.planes,
                               static_cast<std::uint16_t>(threshold)};
    const std::size_t n = (problem.wide ? kernel.wide : kernel.narrow)(
        problem.blocks.data(), problem.begin, problem.end, tables, hits.data());
    check_hits(kernel, problem, threshold, "a run", n, hits, expected);
}

// `picked` has indexes into problem.sums, in any order, some of them repeatedly.
void check_listed(const Kernel& kernel, const Problem& problem, unsigned threshold,
                  const std::vector<std::size_t>& picked) {
    std::vector<const std::uint8_t*> list;
    std::vector<Hit> expected;
    for (const std::size_t i : picked) {
        const std::uint32_t rows = rows_within(problem, i, threshold);
        if (rows) expected.push_back({static_cast<std::uint32_t>(list.size()), rows});
        list.push_back(problem.blocks.data() + (problem.begin + i) * problem.planes * block_rows);
    }
    std::vector<Hit> hits(list.size() + 1, untouched);
    const ScanTables tables = {problem.entries.data(), problem.planes,
                               static_cast<std::uint16_t>(threshold)};
    const std::size_t n = (problem.wide ? kernel.wide_listed : kernel.narrow_listed)(
        list.data(), list.size(), tables, hits.data());
    check_hits(kernel, problem, threshold, "a list", n, hits, expected);
}

// The same with a sum that each block starts from; sums saturate.
void check_lean(Rng& rng, const Kernel& kernel, const Problem& problem, unsigned threshold,
                const std::vector<std::size_t>& picked) {
    std::vector<const std::uint8_t*> list;
    std::vector<std::uint8_t> bases;
    std::vector<Hit> expected;
    for (const std::size_t i : picked) {
        const auto base =
            static_cast<unsigned>(pick(rng, 3) ? pick(rng, threshold) : pick(rng, 255));
        std::uint32_t rows = 0;
        for (std::size_t r = 0; r < block_rows; ++r) {
            if (base + problem.sums[i][r] <= threshold) rows |= std::uint32_t{1} << r;
        }
        if (rows) expected.push_back({static_cast<std::uint32_t>(list.size()), rows});
        list.push_back(problem.blocks.data() + (problem.begin + i) * problem.planes * block_rows);
        bases.push_back(static_cast<std::uint8_t>(base));
    }
    std::vector<Hit> hits(list.size() + 1, untouched);
    const ScanTables tables = {problem.entries.data(), problem.planes,
                               static_cast<std::uint16_t>(threshold)};
    const std::size_t n =
        kernel.lean_listed(list.data(), bases.data(), list.size(), tables, hits.data());
    check_hits(kernel, problem, threshold, "a list of lean rows", n, hits, expected);
}

// Returns the number of scans compared.
std::size_t check_problem(Rng& rng, const Problem& problem) {
    // Around the sizes of the groups that kernels scan side by side, and far beyond.
    constexpr std::size_t list_lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 33};
    std::size_t scans = 0;
    for (const unsigned threshold : thresholds_for(rng, problem)) {
        std::vector<std::size_t> picked;
        if (!problem.sums.empty()) {
            picked.resize(list_lengths[pick(rng, std::size(list_lengths) - 1)]);
            for (std::size_t& i : picked) i = pick(rng, problem.sums.size() - 1);
        }
        for (const Kernel* kernel : available_kernels()) {
            check_scan(*kernel, problem, threshold);
            check_listed(*kernel, problem, threshold, picked);
            if (!problem.wide) check_lean(rng, *kernel, problem, threshold, picked);
            scans += 2 + !problem.wide;
        }
    }
    return scans;
}

}  // namespace

std::size_t test_kernels() {
    CHECK(find_kernel("scalar") == available_kernels().back(), "");
    CHECK(find_kernel("none") == nullptr, "");
    std::vector<std::size_t> all_planes = {32, 64, 128, 520, 1024};
    for (std::size_t planes = 1; planes <= 20; ++planes) all_planes.push_back(planes);
    Rng rng(4);
    std::size_t scans = 0;
    for (const std::size_t planes : all_planes) {
        // The longest codes bring 16-bit sums to their limit; a few of their blocks are enough.
        const std::size_t longest = planes > 128 ? 3 : 9;
        for (std::size_t length = 0; length <= longest; ++length) {
            for (const bool wide : {false, true}) {
                for (const Fill fill : {Fill::any, Fill::balanced, Fill::largest, Fill::one_bit}) {
                    const std::size_t begin = (length + planes) % 3 ? 2 * pick(rng, 3) + 1 : 0;
                    scans +=
                        check_problem(rng, make_problem(rng, wide, planes, begin, length, fill));
                }
            }
        }
    }
    return scans;
}

}  // namespace bitweigh::test
