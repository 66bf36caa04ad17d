#include "engine/rows/lean_codes.h"

#include <algorithm>

namespace bitweigh {

namespace {

// The bit of a CodeNumber that holds bit i of the code.
CodeNumber code_mask(std::size_t i, BitOrder order) {
    return CodeNumber{bit_mask(i, order)} << (i / 8 * 8);
}

// For each byte of a number whose bit j stands for the mask j, the masks that each value sets.
std::vector<CodeNumber> parts_of(const std::vector<CodeNumber>& masks) {
    std::vector<CodeNumber> parts(bytes_of(masks.size()) * 256);
    for (std::size_t j = 0; j < masks.size(); ++j) {
        CodeNumber* byte_parts = parts.data() + j / 8 * 256;
        for (std::size_t value = 0; value < 256; ++value) {
            if (value >> (j % 8) & 1) byte_parts[value] |= masks[j];
        }
    }
    return parts;
}

}  // namespace

LeanCodes::LeanCodes(std::span<const std::uint16_t> key_bits, std::size_t n_bits, BitOrder order)
    : key_bits_(key_bits.begin(), key_bits.end()) {
    std::vector<CodeNumber> key_masks;
    for (const std::uint16_t bit : key_bits_) key_masks.push_back(code_mask(bit, order));
    for (std::size_t bit = 0; bit < n_bits; ++bit) {
        if (std::find(key_bits_.begin(), key_bits_.end(), bit) != key_bits_.end()) continue;
        rest_bits_.push_back(static_cast<std::uint16_t>(bit));
        rest_masks_.push_back(code_mask(bit, order));
    }
    n_bytes_ = std::max<std::size_t>(1, bytes_of(rest_bits_.size()));
    // A key of a damaged walk has at most 32 bits.
    key_parts_ = parts_of(key_masks);
    key_parts_.resize(4 * 256);
    rest_parts_ = parts_of(rest_masks_);
    rest_parts_.resize(n_bytes_ * 256);
}

void LeanCodes::write_rest(CodeNumber code, std::uint8_t* rest, std::size_t stride) const {
    for (std::size_t p = 0; p < n_bytes_; ++p) {
        unsigned byte = 0;
        for (std::size_t i = 8 * p; i < std::min(8 * p + 8, rest_masks_.size()); ++i) {
            byte |= static_cast<unsigned>((code & rest_masks_[i]) != 0) << (i % 8);
        }
        rest[p * stride] = static_cast<std::uint8_t>(byte);
    }
}

Key LeanRows::key_at(std::size_t position) const {
    const std::uint32_t* end = starts + n_keys;
    return static_cast<Key>(std::upper_bound(starts + 1, end, position) - (starts + 1));
}

}  // namespace bitweigh
