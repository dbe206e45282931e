// The inner loops, compiled for several instruction sets; one is chosen at run time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace shoal {

// One cache line of lattice codes or norms.
struct alignas(64) Line {
    std::uint8_t bytes[64];
};

// Codes come in blocks of 64 records. A block is four lines of minus half the squared norms (one int32 each), then
// four groups of 16 records, each as `quads` lines of 16 x 4 codes: the four columns of a quad side by side.
inline constexpr std::size_t block_size = 64;
inline constexpr std::size_t group_size = 16;
inline constexpr std::size_t n_groups = block_size / group_size;
inline std::size_t lines_per_block(std::size_t quads) {
    return n_groups * (1 + quads);
}

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

// The boxes of n blocks, column by column: lower[j * stride + b] and upper[j * stride + b]; and the largest distances
// of their records from the middle.
struct Boxes {
    std::size_t n;
    std::size_t stride;
    const float* lower;
    const float* upper;
    const float* outer;
};

// A point for comparison with boxes: it lies in [low, high], and `outward` is its position relative to the middle.
struct Outlook {
    std::span<const float> low;
    std::span<const float> high;
    std::span<const float> outward;
    float radius;  // |outward|
    float shift;   // middle . outward
};

// A cell for the comparison of pairs of cells: its records column by column, tile[j * capacity + i], and their squared
// distances from the centroid. Capacities are multiples of 8.
struct CellView {
    std::size_t size;
    const float* tile;
    const float* own2;
    const float* centroid;
    float radius;
    bool gives;  // whether it may become smaller and the other larger
};

// Number of values from which minima are taken at a time.
inline constexpr std::size_t minima_block = 32;

// The best step between two cells: records by their slots, `none` for one that stays; a gain of 0 if there is none.
struct PairStep {
    static constexpr std::uint32_t none = 0xffffffff;
    float gain = 0;
    std::uint32_t from_a = none;
    std::uint32_t from_b = none;
};

// Up to 64 points, their squared reach, and the same points column by column.
struct Probes {
    std::size_t n_dims;
    const float* points;
    const float* tile;
    const float* limits;
};

// Codes of 64 points in 16 columns, plus 64: two columns of a point side by side, then those of the next point.
struct alignas(64) CodedSection {
    static constexpr std::size_t n_columns = 16;
    static constexpr std::int32_t zero_code = 64;

    std::uint8_t codes[n_columns / 2][2 * block_size];
    std::int16_t half_norms[block_size];  // minus half the squared norms

    static CodedSection of_zeros() {
        CodedSection zeros{};
        for (auto& pair : zeros.codes) std::fill_n(pair, 2 * block_size, std::uint8_t{zero_code});
        return zeros;
    }
};

// The box around the codes of a section.
struct CodedBox {
    std::uint8_t low[CodedSection::n_columns];
    std::uint8_t high[CodedSection::n_columns];

    static CodedBox of_zeros() {
        CodedBox zeros;
        std::fill_n(zeros.low, CodedSection::n_columns, std::uint8_t{CodedSection::zero_code});
        std::fill_n(zeros.high, CodedSection::n_columns, std::uint8_t{CodedSection::zero_code});
        return zeros;
    }
};

// A point in the columns of a section. `shift` is minus half its squared norm, and takes back what the 64 in the codes
// of a section add: the sum of shift, half norm and products is minus half the squared distance.
struct CodedProbe {
    std::uint16_t n_pairs;  // of columns in use
    std::int8_t codes[CodedSection::n_columns];
    std::int16_t shift;
};

// Up to 64 points: their block, a probe of each for each section, and, in squared steps, the distance within reach of
// each, and minus half of it.
struct CodedProbes {
    std::span<const CodedSection> block;
    const CodedProbe* probes;
    const std::int16_t* at_most;
    const std::int16_t* at_least;
};

// Axes column by column, each column with `width` numbers, a multiple of 8; and the centre to which rows are relative.
struct Turn {
    std::size_t width;
    std::span<const float> axes;  // none: rows are not turned
    std::span<const double> middle;
    double scale;
};

struct Loops {
    const char* name;
    // The first block in [from, to) with a hit, which is written to `hits`; `to` if there is none.
    std::size_t (*scan)(const Line* blocks, std::size_t from, std::size_t to, const Sieve& sieve, Hits& hits);
    // For each box, the least and the greatest squared distance from the point that a record in it can have.
    void (*reach)(const Boxes& boxes, const Outlook& from, float* least2, float* greatest2);
    // Writes the numbers of the boxes that are near enough or reach far enough, and returns their count.
    std::size_t (*select)(const float* least2, const float* greatest2, std::size_t n, float near2, float far2,
                          std::uint32_t* selected);
    // Squared distances of n points, stored column by column, from `point`: the deciding arithmetic, vectorised.
    void (*distances)(const double* columns, std::size_t stride, std::size_t n, std::span<const double> point,
                      double* out);
    // The step between two cells that lowers the sum of squared distances from the centroids most.
    // `room` is work space for width + 2 * capacity floats.
    PairStep (*compare)(const CellView& a, const CellView& b, std::size_t width, std::size_t capacity, float* room);
    // Squared distances of some rows, by their numbers, from a point; `width` is a multiple of 8.
    void (*gather)(const float* rows, std::size_t width, std::span<const std::uint32_t> numbers, const float* point,
                   float* out);
    // For each of n points, held column by column, the product with `across`.
    void (*products)(const float* tile, std::size_t capacity, std::size_t n, std::span<const float> across, float* out);
    // The coordinates of a scaled row, relative to the centre, along the axes; `away` is work space for the row.
    // Returns the squared length of the row.
    float (*turn)(const Turn& turn, std::span<const double> row, float* away, float* out);
    // Least squared distances from the box [low, high] to n boxes, held column by column.
    void (*gaps)(const float* lower, const float* upper, std::size_t n, std::span<const float> low,
                 std::span<const float> high, float* out);
    // The probes that the box [low, high] is within reach of, one bit each.
    std::uint64_t (*touch)(const Probes& probes, const float* low, const float* high);
    // The probes that the box around the codes of a block is within reach of, one bit each.
    std::uint64_t (*touch_codes)(const CodedProbes& probes, std::span<const CodedBox> box);
    // For each probe with its bit in `which`, the points whose codes do not exclude that they are within its reach;
    // returns the probes for which there are any.
    std::uint64_t (*sift)(const CodedProbes& probes, std::uint64_t which, std::span<const CodedSection> block,
                          std::uint64_t* hits);
    // For each probe with its bit in `which`, those of the points in `hits` that are within its reach. Points come as a
    // tile: 64, column by column.
    void (*screen)(const Probes& probes, std::uint64_t which, const float* tile, std::uint64_t* hits);
    // Adds `weight` wherever a code is not `code`.
    void (*add_differing)(const std::uint64_t* codes, std::size_t n, std::uint64_t code, double weight, double* out);
    // Adds the squares of the weighted differences from `origin`.
    void (*add_steps)(const double* positions, std::size_t n, double origin, double weight, double* out);
    // The minimum of every four values, so a quarter as many: value i of a block goes into minimum i % 8.
    void (*minima)(const double* values, std::size_t n_blocks, double* least);
};

// The fastest loops this machine can run, or those named ("generic", "avx2", "avx512"); nullptr if it cannot run them.
const Loops* loops(const char* name = nullptr);

}  // namespace shoal
