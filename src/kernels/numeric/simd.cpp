#include "numeric/simd.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define SHOAL_X86 1
#include <immintrin.h>
// Clang ignores a whole target attribute if it does not know one word of it.
#if defined(__clang__)
#define SHOAL_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#else
#define SHOAL_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif
#endif

namespace shoal {
namespace {

// Written once, inlined into a function per instruction set, vectorised by the compiler in each.
//
// The upper bound comes from |x - p|^2 = |x|^2 + |p|^2 - 2 x.p, all relative to the middle: a box bounds the product
// better than its farthest corner bounds the distance.
[[gnu::always_inline]] inline void reach_loop(const Boxes& boxes, const Outlook& from, float* __restrict least2,
                                              float* __restrict greatest2) {
    constexpr std::size_t chunk = 256;
    for (std::size_t start = 0; start < boxes.n; start += chunk) {
        const std::size_t n = std::min(chunk, boxes.n - start);
        float near2[chunk] = {};
        float away[chunk] = {};
        for (std::size_t j = 0; j < from.low.size(); ++j) {
            const float* __restrict lower = boxes.lower + j * boxes.stride + start;
            const float* __restrict upper = boxes.upper + j * boxes.stride + start;
            const float low = from.low[j];
            const float high = from.high[j];
            const float outward = from.outward[j];
            const float* __restrict opposite = outward > 0 ? lower : upper;
            for (std::size_t b = 0; b < n; ++b) {
                const float outside = std::max(std::max(lower[b] - high, low - upper[b]), 0.0f);
                near2[b] += outside * outside;
                away[b] -= opposite[b] * outward;
            }
        }
        const float* __restrict outer = boxes.outer + start;
        for (std::size_t b = 0; b < n; ++b) {
            const float product = std::min(away[b] + from.shift, outer[b] * from.radius);
            least2[start + b] = near2[b];
            greatest2[start + b] = outer[b] * outer[b] + from.radius * from.radius + 2 * product;
        }
    }
}

std::size_t select_generic(const float* least2, const float* greatest2, std::size_t n, float near2, float far2,
                           std::uint32_t* selected) {
    std::size_t n_selected = 0;
    for (std::size_t b = 0; b < n; ++b) {
        selected[n_selected] = static_cast<std::uint32_t>(b);
        // "Not less than" instead of "at least", so that NaN is within reach.
        n_selected += least2[b] <= near2 || !(greatest2[b] < far2);
    }
    return n_selected;
}

// As many doubles as a register of the instruction set holds: GCC keeps wider vectors in memory.
template <std::size_t n_lanes>
struct Doubles {
    typedef double type __attribute__((vector_size(n_lanes * sizeof(double))));
};
constexpr std::size_t generic_lanes = 2;
constexpr std::size_t avx2_lanes = 4;
constexpr std::size_t avx512_lanes = 8;

// Whole chunks, whose sums stay in registers: the columns are padded to `distances_chunk`, the surplus is not used.
template <std::size_t n_lanes>
[[gnu::always_inline]] inline void distances_loop(const double* columns, std::size_t stride, std::size_t n,
                                                  std::span<const double> point, double* __restrict out) {
    using Wide = typename Doubles<n_lanes>::type;
    constexpr std::size_t chunk = std::min<std::size_t>(8 * n_lanes, 32);
    for (std::size_t start = 0; start < n; start += chunk) {
        Wide sum[chunk / n_lanes] = {};
        for (std::size_t j = 0; j < point.size(); ++j) {
            const double* __restrict column = columns + j * stride + start;
            for (std::size_t w = 0; w < chunk / n_lanes; ++w) {
                Wide difference;
                std::memcpy(&difference, column + n_lanes * w, sizeof difference);
                difference -= point[j];
                sum[w] += difference * difference;
            }
        }
        if (n - start >= chunk)
            std::memcpy(out + start, sum, sizeof sum);
        else
            std::memcpy(out + start, sum, (n - start) * sizeof(double));
    }
}

[[gnu::always_inline]] inline void add_differing_loop(const std::uint64_t* __restrict codes, std::size_t n,
                                                      std::uint64_t code, double weight, double* __restrict out) {
    for (std::size_t i = 0; i < n; ++i) out[i] += codes[i] == code ? 0.0 : weight;
}

[[gnu::always_inline]] inline void add_steps_loop(const double* __restrict positions, std::size_t n, double origin,
                                                  double weight, double* __restrict out) {
    for (std::size_t i = 0; i < n; ++i) {
        const double step = (positions[i] - origin) * weight;
        out[i] += step * step;
    }
}

template <std::size_t n_lanes>
[[gnu::always_inline]] inline void minima_loop(const double* values, std::size_t n_blocks, double* __restrict least) {
    using Wide = typename Doubles<n_lanes>::type;
    constexpr std::size_t n_minima = minima_block / 4;
    for (std::size_t b = 0; b < n_blocks; ++b, values += minima_block, least += n_minima) {
        for (std::size_t w = 0; w < n_minima; w += n_lanes) {
            Wide lowest;
            std::memcpy(&lowest, values + w, sizeof lowest);
            for (std::size_t row = n_minima; row < minima_block; row += n_minima) {
                Wide next;
                std::memcpy(&next, values + row + w, sizeof next);
                lowest = next < lowest ? next : lowest;
            }
            std::memcpy(least + w, &lowest, sizeof lowest);
        }
    }
}

[[gnu::always_inline]] inline void gaps_loop(const float* lower, const float* upper, std::size_t n_boxes,
                                             std::span<const float> low, std::span<const float> high,
                                             float* __restrict out) {
    constexpr std::size_t chunk = 256;
    for (std::size_t start = 0; start < n_boxes; start += chunk) {
        const std::size_t n = std::min(chunk, n_boxes - start);
        float sum[chunk] = {};
        for (std::size_t j = 0; j < low.size(); ++j) {
            const float* __restrict least = lower + j * n_boxes + start;
            const float* __restrict greatest = upper + j * n_boxes + start;
            for (std::size_t b = 0; b < n; ++b) {
                const float outside = std::max(std::max(least[b] - high[j], low[j] - greatest[b]), 0.0f);
                sum[b] += outside * outside;
            }
        }
        std::copy_n(sum, n, out + start);
    }
}

// Eight floats at a time, in whatever registers the instruction set has.
constexpr std::size_t lanes = 8;
typedef float Lanes __attribute__((vector_size(lanes * sizeof(float))));

[[gnu::always_inline]] inline void load(Lanes& out, const float* from) {
    std::memcpy(&out, from, sizeof out);
}

// Which of 64 sums of squares, of those in `wanted`, are within their limits. gap(column, start, out) gives eight of
// the numbers to square, limit(start, out) their limits. A few columns are added at a time: where all eight sums are
// beyond, the rest is skipped.
template <class Gap, class Limit>
[[gnu::always_inline]] inline std::uint64_t sums_within(std::size_t n_dims, std::uint64_t wanted, const Limit& limit,
                                                        const Gap& gap) {
    constexpr std::size_t columns_at_once = 8;
    std::uint64_t bits = 0;
    for (std::size_t start = 0; start < block_size; start += lanes) {
        if (!(wanted >> start & 0xff)) continue;
        Lanes sums{};
        Lanes most;
        Lanes apart;
        limit(start, most);
        std::uint64_t any[lanes / 2] = {1};
        for (std::size_t j = 0; j < n_dims && (any[0] | any[1] | any[2] | any[3]);) {
            for (const std::size_t stop = std::min(j + columns_at_once, n_dims); j < stop; ++j) {
                gap(j, start, apart);
                sums += apart * apart;
            }
            const auto within = sums <= most;  // false for NaN
            std::memcpy(any, &within, sizeof any);
        }
        if (any[0] | any[1] | any[2] | any[3])
            for (std::size_t i = 0; i < lanes; ++i) bits |= std::uint64_t{sums[i] <= most[i]} << (start + i);
    }
    return bits & wanted;
}

[[gnu::always_inline]] inline std::uint64_t touch_loop(const Probes& probes, const float* low, const float* high) {
    const auto limit = [&](std::size_t start, Lanes& out)
                           __attribute__((always_inline)) { load(out, probes.limits + start); };
    return sums_within(probes.n_dims, ~std::uint64_t{0}, limit,
                       [&](std::size_t j, std::size_t start, Lanes& out) __attribute__((always_inline)) {
                           Lanes column;
                           load(column, probes.tile + j * block_size + start);
                           const Lanes below = low[j] - column;
                           const Lanes above = column - high[j];
                           out = below > above ? below : above;
                           out = out > 0 ? out : Lanes{};
                       });
}

[[gnu::always_inline]] inline void screen_loop(const Probes& probes, std::uint64_t which, const float* tile,
                                               std::uint64_t* hits) {
    for (; which; which &= which - 1) {
        const auto probe = static_cast<std::size_t>(std::countr_zero(which));
        const float* point = probes.points + probe * probes.n_dims;
        const auto limit = [&](std::size_t, Lanes& out)
                               __attribute__((always_inline)) { out = Lanes{} + probes.limits[probe]; };
        const auto gap = [&](std::size_t j, std::size_t start, Lanes& out) __attribute__((always_inline)) {
            load(out, tile + j * block_size + start);
            out -= point[j];
        };
        hits[probe] = sums_within(probes.n_dims, hits[probe], limit, gap);
    }
}

[[gnu::always_inline]] inline void products_loop(const float* tile, std::size_t capacity, std::size_t n,
                                                 std::span<const float> across, float* out) {
    for (std::size_t start = 0; start < n; start += lanes) {
        Lanes sum{};
        Lanes column;
        for (std::size_t j = 0; j < across.size(); ++j) {
            load(column, tile + j * capacity + start);
            sum += column * across[j];
        }
        std::memcpy(out + start, &sum, sizeof sum);
    }
}

// The next 8 * n_wide coordinates along the axes.
template <std::size_t n_wide>
[[gnu::always_inline]] inline void turn_to(const Turn& turn, const float* away, std::size_t start, float* out) {
    Lanes sums[n_wide] = {};
    Lanes column;
    for (std::size_t j = 0; j < turn.middle.size(); ++j)
        for (std::size_t w = 0; w < n_wide; ++w) {
            load(column, turn.axes.data() + j * turn.width + start + w * lanes);
            sums[w] += column * away[j];
        }
    std::memcpy(out + start, sums, sizeof sums);
}

[[gnu::always_inline]] inline float turn_loop(const Turn& turn, std::span<const double> row, float* __restrict away,
                                              float* out) {
    const double* __restrict from = row.data();
    const double* __restrict middle = turn.middle.data();
    for (std::size_t j = 0; j < row.size(); ++j) away[j] = static_cast<float>(from[j] * turn.scale - middle[j]);
    Lanes squares{};
    Lanes part;
    std::size_t j = 0;
    for (; j + lanes <= row.size(); j += lanes) {
        load(part, away + j);
        squares += part * part;
    }
    float length2 = 0;
    for (std::size_t i = 0; i < lanes; ++i) length2 += squares[i];
    for (; j < row.size(); ++j) length2 += away[j] * away[j];
    if (turn.axes.empty()) {
        std::copy_n(away, row.size(), out);
        return length2;
    }
    // Several registers at once: one alone would wait for each of its sums.
    std::size_t start = 0;
    for (; start + 7 * lanes < turn.width; start += 4 * lanes) turn_to<4>(turn, away, start, out);
    switch ((turn.width - start) / lanes) {
        case 7:
            turn_to<7>(turn, away, start, out);
            break;
        case 6:
            turn_to<6>(turn, away, start, out);
            break;
        case 5:
            turn_to<5>(turn, away, start, out);
            break;
        case 4:
            turn_to<4>(turn, away, start, out);
            break;
        case 3:
            turn_to<3>(turn, away, start, out);
            break;
        case 2:
            turn_to<2>(turn, away, start, out);
            break;
        case 1:
            turn_to<1>(turn, away, start, out);
            break;
    }
    return length2;
}

[[gnu::always_inline]] inline void gather_loop(const float* rows, std::size_t width,
                                               std::span<const std::uint32_t> numbers, const float* point, float* out) {
    for (std::size_t r = 0; r < numbers.size(); ++r) {
        const float* row = rows + numbers[r] * width;
        Lanes sum{};
        Lanes a;
        Lanes b;
        for (std::size_t j = 0; j < width; j += lanes) {
            load(a, row + j);
            load(b, point + j);
            a -= b;
            sum += a * a;
        }
        out[r] = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
    }
}

// Between cells a and b, with w the vector from one centroid to the other: a record x of a that moves to b changes the
// loss by nb/(nb+1) |x-cb|^2 - na/(na-1) |x-ca|^2; x and y that swap change it by 2 (y-x).w - |y-x|^2 (1/na + 1/nb).
[[gnu::always_inline]] inline PairStep compare_loop(const CellView& a, const CellView& b, std::size_t width,
                                                    std::size_t capacity, float* room) {
    float* across = room;
    float* lean_a = across + width;
    float* lean_b = lean_a + capacity;
    float apart2 = 0;
    float a_along = 0;
    float b_along = 0;
    for (std::size_t j = 0; j < width; ++j) {
        across[j] = b.centroid[j] - a.centroid[j];
        apart2 += across[j] * across[j];
        a_along += a.centroid[j] * across[j];
        b_along += b.centroid[j] * across[j];
    }
    const auto size_a = static_cast<float>(a.size);
    const auto size_b = static_cast<float>(b.size);
    const float share = 1 / size_a + 1 / size_b;
    const float apart = __builtin_sqrtf(apart2);
    const float reach = a.radius + b.radius;
    PairStep best;
    if (!a.gives && !b.gives && 2 * apart * (apart - reach) >= (apart + reach) * (apart + reach) * share) return best;

    // Products with w, relative to the cell's own centroid.
    products_loop(a.tile, capacity, a.size, {across, width}, lean_a);
    products_loop(b.tile, capacity, b.size, {across, width}, lean_b);
    float most_lean = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < a.size; ++i) {
        lean_a[i] -= a_along;
        most_lean = lean_a[i] > most_lean ? lean_a[i] : most_lean;
    }
    if (a.gives)
        for (std::uint32_t i = 0; i < a.size; ++i) {
            const float to_b2 = a.own2[i] - 2 * lean_a[i] + apart2;
            const float gain = size_a / (size_a - 1) * a.own2[i] - size_b / (size_b + 1) * to_b2;
            if (gain > best.gain) best = {gain, i, PairStep::none};
        }
    for (std::uint32_t y = 0; y < b.size; ++y) {
        const float lean_y = lean_b[y] - b_along;
        const float to_a2 = b.own2[y] + 2 * lean_y + apart2;
        if (b.gives) {
            const float gain = size_b / (size_b - 1) * b.own2[y] - size_a / (size_a + 1) * to_a2;
            if (gain > best.gain) best = {gain, PairStep::none, y};
        }
        const float most_apart = a.radius + __builtin_sqrtf(to_a2 > 0 ? to_a2 : 0);
        if (most_apart * most_apart * share - 2 * (lean_y + apart2 - most_lean) <= best.gain) continue;
        for (std::size_t start = 0; start < a.size; start += lanes) {
            Lanes apart_xy2{};
            Lanes column;
            for (std::size_t j = 0; j < width; ++j) {
                load(column, a.tile + j * capacity + start);
                column -= b.tile[j * capacity + y];
                apart_xy2 += column * column;
            }
            Lanes lean;
            load(lean, lean_a + start);
            const Lanes gains = apart_xy2 * share - 2 * (lean_y + apart2 - lean);
            for (std::size_t i = 0; i < lanes && start + i < a.size; ++i) {
                const float gain = gains[i];
                if (gain > best.gain) best = {gain, static_cast<std::uint32_t>(start + i), y};
            }
        }
    }
    return best;
}

std::size_t scan_generic(const Line* blocks, std::size_t from, std::size_t to, const Sieve& sieve, Hits& hits) {
    const std::size_t quads = sieve.quads;
    for (std::size_t b = from; b < to; ++b) {
        const Line* block = blocks + b * lines_per_block(quads);
        std::int32_t score[block_size];
        std::memcpy(score, block, sizeof score);
        for (std::size_t g = 0; g < n_groups; ++g)
            for (std::size_t q = 0; q < quads; ++q) {
                const std::uint8_t* codes = block[n_groups + g * quads + q].bytes;
                const std::int8_t* point = sieve.point + 4 * q;
                for (std::size_t i = 0; i < group_size; ++i)
                    score[g * group_size + i] += codes[4 * i] * point[0] + codes[4 * i + 1] * point[1] +
                                                 codes[4 * i + 2] * point[2] + codes[4 * i + 3] * point[3];
            }
        hits = {};
        for (std::size_t i = 0; i < block_size; ++i) {
            hits.near |= std::uint64_t{score[i] >= sieve.near_at_least} << i;
            hits.far |= std::uint64_t{score[i] <= sieve.far_at_most} << i;
        }
        if (hits.near | hits.far) return b;
    }
    return to;
}

void reach_generic(const Boxes& boxes, const Outlook& from, float* least2, float* greatest2) {
    reach_loop(boxes, from, least2, greatest2);
}

void distances_generic(const double* columns, std::size_t stride, std::size_t n, std::span<const double> point,
                       double* out) {
    distances_loop<generic_lanes>(columns, stride, n, point, out);
}

PairStep compare_generic(const CellView& a, const CellView& b, std::size_t width, std::size_t capacity, float* room) {
    return compare_loop(a, b, width, capacity, room);
}

void products_generic(const float* tile, std::size_t capacity, std::size_t n, std::span<const float> across,
                      float* out) {
    products_loop(tile, capacity, n, across, out);
}

float turn_generic(const Turn& turn, std::span<const double> row, float* away, float* out) {
    return turn_loop(turn, row, away, out);
}

void gather_generic(const float* rows, std::size_t width, std::span<const std::uint32_t> numbers, const float* point,
                    float* out) {
    gather_loop(rows, width, numbers, point, out);
}

void gaps_generic(const float* lower, const float* upper, std::size_t n, std::span<const float> low,
                  std::span<const float> high, float* out) {
    gaps_loop(lower, upper, n, low, high, out);
}

std::uint64_t touch_generic(const Probes& probes, const float* low, const float* high) {
    return touch_loop(probes, low, high);
}

void screen_generic(const Probes& probes, std::uint64_t which, const float* tile, std::uint64_t* hits) {
    screen_loop(probes, which, tile, hits);
}

std::uint64_t touch_codes_generic(const CodedProbes& probes, std::span<const CodedBox> box) {
    std::int32_t sums[block_size] = {};
    for (std::size_t s = 0; s < box.size(); ++s)
        for (std::size_t j = 0; j < CodedSection::n_columns; ++j) {
            const std::uint8_t* codes = probes.block[s].codes[j / 2] + j % 2;
            const std::int32_t low = box[s].low[j];
            const std::int32_t high = box[s].high[j];
            for (std::size_t i = 0; i < block_size; ++i) {
                const std::int32_t outside = std::max(std::max(low - codes[2 * i], codes[2 * i] - high), 0);
                sums[i] += outside * outside;
            }
        }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < block_size; ++i)
        bits |= std::uint64_t{std::min(sums[i], 32767) <= probes.at_most[i]} << i;
    return bits;
}

// Section after section, as long as there are points within reach. The sums of a section may wrap around on the way,
// but not in the end.
std::uint64_t sift_generic(const CodedProbes& probes, std::uint64_t which, std::span<const CodedSection> block,
                           std::uint64_t* hits) {
    std::uint64_t found = 0;
    for (; which; which &= which - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(which));
        std::int16_t sums[block_size] = {};
        std::uint64_t left = 1;
        for (std::size_t s = 0; s < block.size() && left; ++s) {
            const CodedProbe& probe = probes.probes[slot * block.size() + s];
            for (std::size_t i = 0; i < block_size; ++i)
                sums[i] = static_cast<std::int16_t>(sums[i] + block[s].half_norms[i] + probe.shift);
            for (std::size_t pair = 0; pair < probe.n_pairs; ++pair) {
                const std::uint8_t* codes = block[s].codes[pair];
                for (std::size_t i = 0; i < block_size; ++i)
                    sums[i] = static_cast<std::int16_t>(sums[i] + codes[2 * i] * probe.codes[2 * pair] +
                                                        codes[2 * i + 1] * probe.codes[2 * pair + 1]);
            }
            left = 0;
            for (std::size_t i = 0; i < block_size; ++i) left |= std::uint64_t{sums[i] >= probes.at_least[slot]} << i;
        }
        hits[slot] = left;
        found |= std::uint64_t{left != 0} << slot;
    }
    return found;
}

void add_differing_generic(const std::uint64_t* codes, std::size_t n, std::uint64_t code, double weight, double* out) {
    add_differing_loop(codes, n, code, weight, out);
}

void add_steps_generic(const double* positions, std::size_t n, double origin, double weight, double* out) {
    add_steps_loop(positions, n, origin, weight, out);
}

void minima_generic(const double* values, std::size_t n_blocks, double* least) {
    minima_loop<generic_lanes>(values, n_blocks, least);
}

constexpr Loops generic{"generic",         scan_generic,        reach_generic,    select_generic, distances_generic,
                        compare_generic,   gather_generic,      products_generic, turn_generic,   gaps_generic,
                        touch_generic,     touch_codes_generic, sift_generic,     screen_generic, add_differing_generic,
                        add_steps_generic, minima_generic};

#ifdef SHOAL_X86

// The four codes of a quad as one number.
std::int32_t word(const std::int8_t* point, std::size_t quad) {
    std::int32_t codes;
    std::memcpy(&codes, point + 4 * quad, sizeof codes);
    return codes;
}

// The codes of two columns as one number.
template <class Code>
std::int16_t two_of(const Code* codes, std::size_t pair) {
    std::int16_t two;
    std::memcpy(&two, codes + 2 * pair, sizeof two);
    return two;
}

[[gnu::target("avx2")]] void reach_avx2(const Boxes& boxes, const Outlook& from, float* least2, float* greatest2) {
    reach_loop(boxes, from, least2, greatest2);
}

[[gnu::target("avx2")]] void distances_avx2(const double* columns, std::size_t stride, std::size_t n,
                                            std::span<const double> point, double* out) {
    distances_loop<avx2_lanes>(columns, stride, n, point, out);
}

// Codes are 128 + c. Without an unsigned-by-signed dot product that cannot saturate, multiply |point| by c with the
// point's sign: both fit seven bits, so pairs fit sixteen. The sum of 128 * point goes in at the start instead.
[[gnu::target("avx2")]] std::size_t scan_avx2(const Line* blocks, std::size_t from, std::size_t to, const Sieve& sieve,
                                              Hits& hits) {
    const std::size_t quads = sieve.quads;
    std::int32_t shift = 0;
    for (std::size_t j = 0; j < 4 * quads; ++j) shift += 128 * sieve.point[j];
    const __m256i offset = _mm256_set1_epi32(shift);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i flip = _mm256_set1_epi8(-128);
    const __m256i near = _mm256_set1_epi32(sieve.near_at_least);
    const __m256i far = _mm256_set1_epi32(sieve.far_at_most);
    for (std::size_t b = from; b < to; ++b) {
        const Line* block = blocks + b * lines_per_block(quads);
        __m256i score[8];
        for (std::size_t half = 0; half < 8; ++half)
            score[half] =
                _mm256_add_epi32(offset, _mm256_load_si256(reinterpret_cast<const __m256i*>(block->bytes) + half));
        for (std::size_t q = 0; q < quads; ++q) {
            const __m256i point = _mm256_set1_epi32(word(sieve.point, q));
            const __m256i magnitude = _mm256_abs_epi8(point);
            for (std::size_t half = 0; half < 8; ++half) {
                const Line& line = block[n_groups + (half / 2) * quads + q];
                const __m256i* codes = reinterpret_cast<const __m256i*>(line.bytes) + half % 2;
                const __m256i code = _mm256_xor_si256(_mm256_load_si256(codes), flip);
                const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(code, point));
                score[half] = _mm256_add_epi32(score[half], _mm256_madd_epi16(pairs, ones));
            }
        }
        __m256i highest = score[0];
        __m256i lowest = score[0];
        for (std::size_t half = 1; half < 8; ++half) {
            highest = _mm256_max_epi32(highest, score[half]);
            lowest = _mm256_min_epi32(lowest, score[half]);
        }
        // "At least" as "not less than", since there is only a greater-than instruction.
        const __m256i none = _mm256_and_si256(_mm256_cmpgt_epi32(near, highest), _mm256_cmpgt_epi32(lowest, far));
        if (_mm256_movemask_epi8(none) == -1) [[likely]]
            continue;
        hits = {};
        for (std::size_t half = 0; half < 8; ++half) {
            const __m256 not_near = _mm256_castsi256_ps(_mm256_cmpgt_epi32(near, score[half]));
            const __m256 not_far = _mm256_castsi256_ps(_mm256_cmpgt_epi32(score[half], far));
            hits.near |= std::uint64_t(~_mm256_movemask_ps(not_near) & 0xff) << (8 * half);
            hits.far |= std::uint64_t(~_mm256_movemask_ps(not_far) & 0xff) << (8 * half);
        }
        return b;
    }
    return to;
}

[[gnu::target("avx2")]] PairStep compare_avx2(const CellView& a, const CellView& b, std::size_t width,
                                              std::size_t capacity, float* room) {
    return compare_loop(a, b, width, capacity, room);
}

[[gnu::target("avx2")]] void products_avx2(const float* tile, std::size_t capacity, std::size_t n,
                                           std::span<const float> across, float* out) {
    products_loop(tile, capacity, n, across, out);
}

[[gnu::target("avx2")]] float turn_avx2(const Turn& turn, std::span<const double> row, float* away, float* out) {
    return turn_loop(turn, row, away, out);
}

[[gnu::target("avx2")]] void gather_avx2(const float* rows, std::size_t width, std::span<const std::uint32_t> numbers,
                                         const float* point, float* out) {
    gather_loop(rows, width, numbers, point, out);
}

[[gnu::target("avx2")]] void gaps_avx2(const float* lower, const float* upper, std::size_t n,
                                       std::span<const float> low, std::span<const float> high, float* out) {
    gaps_loop(lower, upper, n, low, high, out);
}

[[gnu::target("avx2")]] std::uint64_t touch_avx2(const Probes& probes, const float* low, const float* high) {
    return touch_loop(probes, low, high);
}

// One bit for each of 64 numbers of 16 bits that is greater than its limit.
[[gnu::target("avx2"), gnu::always_inline]] inline std::uint64_t bits_above(const __m256i (&numbers)[4],
                                                                            const __m256i (&limits)[4]) {
    std::uint64_t above = 0;
    for (std::size_t i = 0; i < 4; i += 2) {
        const __m256i bytes = _mm256_packs_epi16(_mm256_cmpgt_epi16(numbers[i], limits[i]),
                                                 _mm256_cmpgt_epi16(numbers[i + 1], limits[i + 1]));
        const int bits = _mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xd8));
        above |= std::uint64_t{static_cast<std::uint32_t>(bits)} << (16 * i);
    }
    return above;
}

// A code is below the box, or above, or inside, so that one of the two saturating differences is what it is outside.
[[gnu::target("avx2")]] std::uint64_t touch_codes_avx2(const CodedProbes& probes, std::span<const CodedBox> box) {
    constexpr std::size_t n = 4;
    __m256i sums[n] = {};
    __m256i limits[n];
    for (std::size_t i = 0; i < n; ++i)
        limits[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(probes.at_most) + i);
    std::uint64_t left = 1;
    for (std::size_t s = 0; s < box.size() && left; ++s) {
        for (std::size_t pair = 0; pair < probes.probes[s].n_pairs; ++pair) {
            const auto* codes = reinterpret_cast<const __m256i*>(probes.block[s].codes[pair]);
            const __m256i low = _mm256_set1_epi16(two_of(box[s].low, pair));
            const __m256i high = _mm256_set1_epi16(two_of(box[s].high, pair));
            for (std::size_t i = 0; i < n; ++i) {
                const __m256i code = _mm256_load_si256(codes + i);
                const __m256i outside = _mm256_or_si256(_mm256_subs_epu8(low, code), _mm256_subs_epu8(code, high));
                sums[i] = _mm256_adds_epi16(sums[i], _mm256_maddubs_epi16(outside, outside));
            }
        }
        left = ~bits_above(sums, limits);
    }
    return left;
}

[[gnu::target("avx2")]] std::uint64_t sift_avx2(const CodedProbes& probes, std::uint64_t which,
                                                std::span<const CodedSection> block, std::uint64_t* hits) {
    constexpr std::size_t n = 4;
    std::uint64_t found = 0;
    for (; which; which &= which - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(which));
        const __m256i at_least = _mm256_set1_epi16(probes.at_least[slot]);
        __m256i sums[n] = {};
        std::uint64_t left = 1;
        for (std::size_t s = 0; s < block.size() && left; ++s) {
            const CodedProbe& probe = probes.probes[slot * block.size() + s];
            const __m256i shift = _mm256_set1_epi16(probe.shift);
            const auto* half_norms = reinterpret_cast<const __m256i*>(block[s].half_norms);
            for (std::size_t i = 0; i < n; ++i)
                sums[i] = _mm256_add_epi16(sums[i], _mm256_add_epi16(_mm256_load_si256(half_norms + i), shift));
            for (std::size_t pair = 0; pair < probe.n_pairs; ++pair) {
                const auto* codes = reinterpret_cast<const __m256i*>(block[s].codes[pair]);
                const __m256i two = _mm256_set1_epi16(two_of(probe.codes, pair));
                for (std::size_t i = 0; i < n; ++i)
                    sums[i] = _mm256_add_epi16(sums[i], _mm256_maddubs_epi16(_mm256_load_si256(codes + i), two));
            }
            left = ~bits_above({at_least, at_least, at_least, at_least}, sums);
        }
        hits[slot] = left;
        found |= std::uint64_t{left != 0} << slot;
    }
    return found;
}

[[gnu::target("avx2")]] void screen_avx2(const Probes& probes, std::uint64_t which, const float* tile,
                                         std::uint64_t* hits) {
    screen_loop(probes, which, tile, hits);
}

[[gnu::target("avx2")]] void add_differing_avx2(const std::uint64_t* codes, std::size_t n, std::uint64_t code,
                                                double weight, double* out) {
    add_differing_loop(codes, n, code, weight, out);
}

[[gnu::target("avx2")]] void add_steps_avx2(const double* positions, std::size_t n, double origin, double weight,
                                            double* out) {
    add_steps_loop(positions, n, origin, weight, out);
}

[[gnu::target("avx2")]] void minima_avx2(const double* values, std::size_t n_blocks, double* least) {
    minima_loop<avx2_lanes>(values, n_blocks, least);
}

constexpr Loops avx2{"avx2",      scan_avx2,     reach_avx2,         select_generic, distances_avx2, compare_avx2,
                     gather_avx2, products_avx2, turn_avx2,          gaps_avx2,      touch_avx2,     touch_codes_avx2,
                     sift_avx2,   screen_avx2,   add_differing_avx2, add_steps_avx2, minima_avx2};

SHOAL_AVX512 void reach_avx512(const Boxes& boxes, const Outlook& from, float* least2, float* greatest2) {
    reach_loop(boxes, from, least2, greatest2);
}

[[gnu::target("avx512f")]] std::size_t select_avx512(const float* least2, const float* greatest2, std::size_t n,
                                                     float near2, float far2, std::uint32_t* selected) {
    const __m512 near = _mm512_set1_ps(near2);
    const __m512 far = _mm512_set1_ps(far2);
    const __m512i step = _mm512_set1_epi32(16);
    __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t n_selected = 0;
    for (std::size_t b = 0; b < n; b += 16, numbers = _mm512_add_epi32(numbers, step)) {
        const __mmask16 there = n - b < 16 ? static_cast<__mmask16>((1u << (n - b)) - 1) : __mmask16{0xffff};
        const __m512 least = _mm512_maskz_loadu_ps(there, least2 + b);
        const __m512 greatest = _mm512_maskz_loadu_ps(there, greatest2 + b);
        const __mmask16 within = there & (_mm512_cmp_ps_mask(least, near, _CMP_LE_OQ) |
                                          static_cast<__mmask16>(~_mm512_cmp_ps_mask(greatest, far, _CMP_LT_OQ)));
        _mm512_mask_compressstoreu_epi32(selected + n_selected, within, numbers);
        n_selected += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(within)));
    }
    return n_selected;
}

SHOAL_AVX512 void distances_avx512(const double* columns, std::size_t stride, std::size_t n,
                                   std::span<const double> point, double* out) {
    distances_loop<avx512_lanes>(columns, stride, n, point, out);
}

// Four independent sums hide the latency of the dot products; with the number of quads known the point stays in
// registers. quads_known = 0 reads it from memory.
template <std::size_t quads_known>
[[gnu::target("avx512f,avx512bw,avx512vnni")]] std::size_t scan_avx512_for(const Line* blocks, std::size_t from,
                                                                           std::size_t to, const Sieve& sieve,
                                                                           Hits& hits) {
    const std::size_t quads = quads_known ? quads_known : sieve.quads;
    const std::size_t stride = lines_per_block(quads);
    __m512i kept[quads_known ? quads_known : 1];
    for (std::size_t q = 0; q < quads_known; ++q) kept[q] = _mm512_set1_epi32(word(sieve.point, q));
    const __m512i near = _mm512_set1_epi32(sieve.near_at_least);
    const __m512i far = _mm512_set1_epi32(sieve.far_at_most);
    for (std::size_t b = from; b < to; ++b) {
        const Line* line = blocks + b * stride;
        __m512i s0 = _mm512_load_si512(line);
        __m512i s1 = _mm512_load_si512(line + 1);
        __m512i s2 = _mm512_load_si512(line + 2);
        __m512i s3 = _mm512_load_si512(line + 3);
        line += n_groups;
        for (std::size_t q = 0; q < quads; ++q) {
            const __m512i p = q < quads_known ? kept[q] : _mm512_set1_epi32(word(sieve.point, q));
            s0 = _mm512_dpbusd_epi32(s0, _mm512_load_si512(line + q), p);
            s1 = _mm512_dpbusd_epi32(s1, _mm512_load_si512(line + quads + q), p);
            s2 = _mm512_dpbusd_epi32(s2, _mm512_load_si512(line + 2 * quads + q), p);
            s3 = _mm512_dpbusd_epi32(s3, _mm512_load_si512(line + 3 * quads + q), p);
        }
        const __m512i highest = _mm512_max_epi32(_mm512_max_epi32(s0, s1), _mm512_max_epi32(s2, s3));
        const __m512i lowest = _mm512_min_epi32(_mm512_min_epi32(s0, s1), _mm512_min_epi32(s2, s3));
        if (_mm512_cmpge_epi32_mask(highest, near) | _mm512_cmple_epi32_mask(lowest, far)) [[unlikely]] {
            const auto joined = [](__mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d) {
                return std::uint64_t{a} | std::uint64_t{b} << 16 | std::uint64_t{c} << 32 | std::uint64_t{d} << 48;
            };
            hits.near = joined(_mm512_cmpge_epi32_mask(s0, near), _mm512_cmpge_epi32_mask(s1, near),
                               _mm512_cmpge_epi32_mask(s2, near), _mm512_cmpge_epi32_mask(s3, near));
            hits.far = joined(_mm512_cmple_epi32_mask(s0, far), _mm512_cmple_epi32_mask(s1, far),
                              _mm512_cmple_epi32_mask(s2, far), _mm512_cmple_epi32_mask(s3, far));
            return b;
        }
    }
    return to;
}

std::size_t scan_avx512(const Line* blocks, std::size_t from, std::size_t to, const Sieve& sieve, Hits& hits) {
    switch (sieve.quads) {
        case 1:
            return scan_avx512_for<1>(blocks, from, to, sieve, hits);
        case 2:
            return scan_avx512_for<2>(blocks, from, to, sieve, hits);
        case 3:
            return scan_avx512_for<3>(blocks, from, to, sieve, hits);
        case 4:
            return scan_avx512_for<4>(blocks, from, to, sieve, hits);
        case 5:
            return scan_avx512_for<5>(blocks, from, to, sieve, hits);
        case 6:
            return scan_avx512_for<6>(blocks, from, to, sieve, hits);
        case 7:
            return scan_avx512_for<7>(blocks, from, to, sieve, hits);
        case 8:
            return scan_avx512_for<8>(blocks, from, to, sieve, hits);
        default:
            return scan_avx512_for<0>(blocks, from, to, sieve, hits);
    }
}

[[gnu::target("avx2,avx512f,avx512vl")]] PairStep compare_avx512(const CellView& a, const CellView& b,
                                                                 std::size_t width, std::size_t capacity, float* room) {
    return compare_loop(a, b, width, capacity, room);
}

[[gnu::target("avx2,avx512f,avx512vl")]] void products_avx512(const float* tile, std::size_t capacity, std::size_t n,
                                                              std::span<const float> across, float* out) {
    products_loop(tile, capacity, n, across, out);
}

[[gnu::target("avx2,avx512f,avx512vl")]] float turn_avx512(const Turn& turn, std::span<const double> row, float* away,
                                                           float* out) {
    return turn_loop(turn, row, away, out);
}

[[gnu::target("avx2,avx512f,avx512vl")]] void gather_avx512(const float* rows, std::size_t width,
                                                            std::span<const std::uint32_t> numbers, const float* point,
                                                            float* out) {
    gather_loop(rows, width, numbers, point, out);
}

SHOAL_AVX512 void gaps_avx512(const float* lower, const float* upper, std::size_t n, std::span<const float> low,
                              std::span<const float> high, float* out) {
    gaps_loop(lower, upper, n, low, high, out);
}

// Four registers hold a number for each of 64 points.
constexpr std::size_t n_sums = 4;

[[gnu::target("avx512f"), gnu::always_inline]] inline std::uint64_t bits_within(const __m512 (&sums)[n_sums],
                                                                                const __m512 (&limits)[n_sums]) {
    std::uint64_t bits = 0;
    for (std::size_t s = 0; s < n_sums; ++s)
        bits |= std::uint64_t{_mm512_cmp_ps_mask(sums[s], limits[s], _CMP_LE_OQ)} << (16 * s);
    return bits;
}

[[gnu::target("avx512f")]] std::uint64_t touch_avx512(const Probes& probes, const float* low, const float* high) {
    __m512 sums[n_sums] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    for (std::size_t j = 0; j < probes.n_dims; ++j) {
        const __m512 least = _mm512_set1_ps(low[j]);
        const __m512 greatest = _mm512_set1_ps(high[j]);
        for (std::size_t s = 0; s < n_sums; ++s) {
            const __m512 point = _mm512_loadu_ps(probes.tile + j * block_size + 16 * s);
            const __m512 outside = _mm512_sub_ps(point, _mm512_min_ps(_mm512_max_ps(point, least), greatest));
            sums[s] = _mm512_fmadd_ps(outside, outside, sums[s]);
        }
    }
    __m512 limits[n_sums];
    for (std::size_t s = 0; s < n_sums; ++s) limits[s] = _mm512_loadu_ps(probes.limits + 16 * s);
    return bits_within(sums, limits);
}

[[gnu::target("avx512f,avx512bw")]] std::uint64_t touch_codes_avx512(const CodedProbes& probes,
                                                                     std::span<const CodedBox> box) {
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    std::uint64_t left = 1;
    for (std::size_t s = 0; s < box.size() && left; ++s) {
        for (std::size_t pair = 0; pair < probes.probes[s].n_pairs; ++pair) {
            const auto* codes = reinterpret_cast<const __m512i*>(probes.block[s].codes[pair]);
            const __m512i low = _mm512_set1_epi16(two_of(box[s].low, pair));
            const __m512i high = _mm512_set1_epi16(two_of(box[s].high, pair));
            for (std::size_t i = 0; i < 2; ++i) {
                const __m512i code = _mm512_load_si512(codes + i);
                const __m512i outside = _mm512_or_si512(_mm512_subs_epu8(low, code), _mm512_subs_epu8(code, high));
                sums[i] = _mm512_adds_epi16(sums[i], _mm512_maddubs_epi16(outside, outside));
            }
        }
        const auto* limits = reinterpret_cast<const __m512i*>(probes.at_most);
        left = std::uint64_t{_mm512_cmple_epi16_mask(sums[0], _mm512_loadu_si512(limits))} |
               std::uint64_t{_mm512_cmple_epi16_mask(sums[1], _mm512_loadu_si512(limits + 1))} << (block_size / 2);
    }
    return left;
}

[[gnu::target("avx512f,avx512bw")]] std::uint64_t sift_avx512(const CodedProbes& probes, std::uint64_t which,
                                                              std::span<const CodedSection> block,
                                                              std::uint64_t* hits) {
    std::uint64_t found = 0;
    for (; which; which &= which - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(which));
        const __m512i at_least = _mm512_set1_epi16(probes.at_least[slot]);
        __m512i low = _mm512_setzero_si512();
        __m512i high = _mm512_setzero_si512();
        std::uint64_t left = 1;
        for (std::size_t s = 0; s < block.size() && left; ++s) {
            const CodedProbe& probe = probes.probes[slot * block.size() + s];
            const __m512i shift = _mm512_set1_epi16(probe.shift);
            const auto* half_norms = reinterpret_cast<const __m512i*>(block[s].half_norms);
            low = _mm512_add_epi16(low, _mm512_add_epi16(_mm512_load_si512(half_norms), shift));
            high = _mm512_add_epi16(high, _mm512_add_epi16(_mm512_load_si512(half_norms + 1), shift));
            for (std::size_t pair = 0; pair < probe.n_pairs; ++pair) {
                const auto* codes = reinterpret_cast<const __m512i*>(block[s].codes[pair]);
                const __m512i two = _mm512_set1_epi16(two_of(probe.codes, pair));
                low = _mm512_add_epi16(low, _mm512_maddubs_epi16(_mm512_load_si512(codes), two));
                high = _mm512_add_epi16(high, _mm512_maddubs_epi16(_mm512_load_si512(codes + 1), two));
            }
            left = std::uint64_t{_mm512_cmpge_epi16_mask(low, at_least)} |
                   std::uint64_t{_mm512_cmpge_epi16_mask(high, at_least)} << (block_size / 2);
        }
        hits[slot] = left;
        found |= std::uint64_t{left != 0} << slot;
    }
    return found;
}

[[gnu::target("avx512f")]] void screen_avx512(const Probes& probes, std::uint64_t which, const float* tile,
                                              std::uint64_t* hits) {
    // The sums are checked halfway: where all are beyond the limit, the rest is skipped.
    const std::size_t halfway = probes.n_dims / 2 + 1;
    for (; which; which &= which - 1) {
        const auto probe = static_cast<std::size_t>(std::countr_zero(which));
        const float* point = probes.points + probe * probes.n_dims;
        const __m512 limit = _mm512_set1_ps(probes.limits[probe]);
        const __m512 limits[n_sums] = {limit, limit, limit, limit};
        __m512 sums[n_sums] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        std::uint64_t left = 1;
        for (std::size_t j = 0; j < probes.n_dims && left;) {
            for (const std::size_t stop = j < halfway ? halfway : probes.n_dims; j < stop; ++j) {
                const __m512 centre = _mm512_set1_ps(point[j]);
                const float* column = tile + j * block_size;
                for (std::size_t s = 0; s < n_sums; ++s) {
                    const __m512 difference = _mm512_sub_ps(_mm512_loadu_ps(column + 16 * s), centre);
                    sums[s] = _mm512_fmadd_ps(difference, difference, sums[s]);
                }
            }
            left = bits_within(sums, limits);
        }
        hits[probe] &= left;
    }
}

SHOAL_AVX512 void add_differing_avx512(const std::uint64_t* codes, std::size_t n, std::uint64_t code, double weight,
                                       double* out) {
    add_differing_loop(codes, n, code, weight, out);
}

SHOAL_AVX512 void add_steps_avx512(const double* positions, std::size_t n, double origin, double weight, double* out) {
    add_steps_loop(positions, n, origin, weight, out);
}

SHOAL_AVX512 void minima_avx512(const double* values, std::size_t n_blocks, double* least) {
    minima_loop<avx512_lanes>(values, n_blocks, least);
}

constexpr Loops avx512{"avx512",         scan_avx512,        reach_avx512,    select_avx512, distances_avx512,
                       compare_avx512,   gather_avx512,      products_avx512, turn_avx512,   gaps_avx512,
                       touch_avx512,     touch_codes_avx512, sift_avx512,     screen_avx512, add_differing_avx512,
                       add_steps_avx512, minima_avx512};

#endif

}  // namespace

const Loops* loops(const char* name) {
    const auto wanted = [&](const Loops& candidate) { return !name || !std::strcmp(name, candidate.name); };
#ifdef SHOAL_X86
    if (wanted(avx512) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        return &avx512;
    if (wanted(avx2) && __builtin_cpu_supports("avx2")) return &avx2;
#endif
    return wanted(generic) ? &generic : nullptr;
}

}  // namespace shoal
