// Values as 64-bit keys: equal values have equal keys, in every process and on every machine.
//
// Two values that share a key by chance count as one: a cell then holds more different ones than were counted, never
// fewer.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace shoal {

// A bijection of 64-bit numbers whose bits all depend on all (the finisher of splitmix64).
inline std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

inline std::uint64_t key_of(const std::uint8_t* bytes, std::size_t n) {
    std::uint64_t key = mixed(n + 0x9e3779b97f4a7c15u);
    for (; n >= 8; bytes += 8, n -= 8) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < 8; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
        key = mixed(key ^ word) + 0x9e3779b97f4a7c15u;
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < n; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
    return mixed(key ^ word);
}

// The keys of texts that lie one after the other: text i is bytes[offsets[i]] to bytes[offsets[i + 1]].
template <class Offset>
void text_keys(std::span<const Offset> offsets, const std::uint8_t* bytes, std::span<std::uint64_t> keys) {
    for (std::size_t i = 0; i < keys.size(); ++i)
        keys[i] = key_of(bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
}

}  // namespace shoal
