// The three inner loops, compiled for several instruction sets; the machine picks at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace shoal {

// One cache line of lattice codes or norms.
struct alignas(64) Line {
    std::uint8_t bytes[64];
};

// Records are coded in blocks of 64. A block is four lines of minus half the squared norms (one int32 per record), then
// four groups of 16 records, each as `quads` lines of 16 x 4 codes: the four columns of a quad side by side.
inline constexpr std::size_t block_size = 64;
inline constexpr std::size_t group_size = 16;
inline constexpr std::size_t n_groups = block_size / group_size;
inline std::size_t lines_per_block(std::size_t quads) { return n_groups * (1 + quads); }

// What a scan looks for: records whose score, code . point - norm / 2, is high (near the point) or low (far from it).
struct Sieve {
    const std::int8_t* point;  // 4 * quads codes
    std::size_t quads;
    std::int32_t near_at_least = std::numeric_limits<std::int32_t>::max();
    std::int32_t far_at_most = std::numeric_limits<std::int32_t>::min();
};

// One bit per record of a block.
struct Hits {
    std::uint64_t near = 0;
    std::uint64_t far = 0;
};

// The boxes of blocks, in lattice units, column by column: lower[j * stride + b] and upper[j * stride + b].
struct Boxes {
    const float* lower;
    const float* upper;
    std::size_t stride;
};

struct Loops {
    const char* name;
    // The first block in [from, to) with a hit, which is written to `hits`; `to` if there is none.
    std::size_t (*scan)(const Line* blocks, std::size_t from, std::size_t to, const Sieve& sieve, Hits& hits);
    // Least and greatest squared distance of the boxes [from, to) from a point that lies in [low, high].
    void (*reach)(const Boxes& boxes, std::size_t from, std::size_t to, std::span<const float> low,
                  std::span<const float> high, float* least, float* greatest);
    // Squared distances of n points, held column by column, from `point`: the deciding arithmetic, many at a time.
    void (*distances)(const double* columns, std::size_t stride, std::size_t n, std::span<const double> point,
                      double* out);
};

// The fastest loops this machine can run, or those named ("generic", "avx2", "avx512"); nullptr if it cannot run them.
const Loops* loops(const char* name = nullptr);

}  // namespace shoal
