// Column sums without rounding: adding and taking away leave no trace, whatever the order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal {

// One fixed-point number per column, in digits of 32 bits held in 64, for values of magnitude at most 1.
//
// A double is an integer of 53 bits times 2^(position - 1074), so it touches three neighbouring digits; carries are
// only settled when a sum is read. Centroids "by subtraction" therefore never drift, and every sum is the correctly
// rounded one, which is what math.fsum gives.
class ExactSums {
  public:
    explicit ExactSums(std::size_t n_dims) : n_dims_(n_dims), digits_(n_dims * n_digits) {}

    void add(std::span<const double> row) { accumulate<false>(row); }
    void subtract(std::span<const double> row) { accumulate<true>(row); }

    // Adds what others have summed.
    void add(const ExactSums& other) {
        n_added_ += other.n_added_;
        for (std::size_t i = 0; i < digits_.size(); ++i) digits_[i] += other.digits_[i];
        lowest_ = std::min(lowest_, other.lowest_);
        highest_ = std::max(highest_, other.highest_);
        if (n_added_ >= settle_after) settle_all();
    }

    // The sum of a column, rounded once, to nearest and to even.
    double operator[](std::size_t column) const {
        if (highest_ < lowest_) return 0.0;  // nothing but zeros so far
        std::int64_t digit[n_digits];
        std::int64_t carry = settle(column, digit, 1);
        const bool negative = carry < 0;
        if (negative) carry = settle(column, digit, -1);
        std::size_t top = highest_;
        while (top > lowest_ && digit[top] == 0) --top;
        if (digit[top] == 0) return 0.0;
        const double sum = rounded(digit, top);
        return negative ? -sum : sum;
    }

  private:
    // 2^0 stands at bit 1074; room above it for 2^45 records.
    static constexpr std::size_t n_digits = (1074 + 1 + 45 + 31) / 32;
    static constexpr std::int64_t low_bits = 0xffffffff;
    static constexpr std::size_t settle_after = std::size_t{1} << 28;

    template <bool negate>
    void accumulate(std::span<const double> row) {
        if (++n_added_ >= settle_after) settle_all();
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const auto bits = std::bit_cast<std::uint64_t>(row[j]);
            const std::uint64_t exponent = bits >> 52 & 0x7ff;
            const std::uint64_t fraction = bits & 0xfffffffffffff;
            const std::uint64_t mantissa = exponent ? fraction | std::uint64_t{1} << 52 : fraction;
            if (mantissa == 0) continue;
            const std::uint64_t position = exponent ? exponent - 1 : 0;
            const std::size_t first = position / 32;
            const unsigned shift = position % 32;
            const std::uint64_t low = (mantissa & low_bits) << shift;
            const std::uint64_t high = (mantissa >> 32) << shift;
            // Branch-free sign: x ^ -1 - -1 is -x.
            const std::int64_t sign = -static_cast<std::int64_t>((bits >> 63) ^ negate);
            std::int64_t* digit = &digits_[j * n_digits + first];
            digit[0] += (static_cast<std::int64_t>(low & low_bits) ^ sign) - sign;
            digit[1] += (static_cast<std::int64_t>((low >> 32) + (high & low_bits)) ^ sign) - sign;
            digit[2] += (static_cast<std::int64_t>(high >> 32) ^ sign) - sign;
            lowest_ = std::min(lowest_, first);
            highest_ = std::max(highest_, std::min(first + 4, n_digits - 1));
        }
    }

    // Writes the column's digits, each in [0, 2^32), and returns the carry out of the top one (-1 if negative).
    std::int64_t settle(std::size_t column, std::int64_t* digit, std::int64_t sign) const {
        std::int64_t carry = 0;
        for (std::size_t d = lowest_; d <= highest_; ++d) {
            const std::int64_t value = sign * digits_[column * n_digits + d] + carry;
            digit[d] = value & low_bits;
            carry = value >> 32;
        }
        return carry;
    }

    void settle_all() {
        n_added_ = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            std::int64_t* digit = &digits_[j * n_digits];
            for (std::size_t d = lowest_; d < n_digits - 1; ++d) {
                digit[d + 1] += digit[d] >> 32;
                digit[d] &= low_bits;
            }
        }
        highest_ = n_digits - 1;
    }

    double rounded(const std::int64_t* digit, std::size_t top) const {
        const auto at = [&](std::size_t back) {
            return back <= top - lowest_ ? static_cast<std::uint64_t>(digit[top - back]) : 0;
        };
        const int zeros = std::countl_zero(static_cast<std::uint32_t>(at(0)));
        // The 64 leading bits, the last one also standing for everything below.
        std::uint64_t leading = (at(0) << 32 | at(1)) << zeros;
        std::uint64_t below = at(2) << zeros;
        leading |= below >> 32;
        below &= low_bits;
        for (std::size_t back = 3; back <= top - lowest_ && below == 0; ++back) below = at(back);
        leading |= below != 0;
        std::uint64_t kept = leading >> 11;
        const std::uint64_t rest = leading & 0x7ff;
        if (rest > 0x400 || (rest == 0x400 && (kept & 1))) ++kept;
        // Sums are multiples of 2^-1074: where the result is subnormal, nothing was cut off and ldexp is exact.
        const int exponent = static_cast<int>(top) * 32 - 1074 - 32 - zeros + 11;
        return std::ldexp(static_cast<double>(kept), exponent);
    }

    std::size_t n_dims_;
    std::vector<std::int64_t> digits_;
    std::size_t lowest_ = n_digits - 1;
    std::size_t highest_ = 0;
    std::size_t n_added_ = 0;
};

}  // namespace shoal
