// Numbers as text and back, the same on every machine, without a look at the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

namespace shoal {

// Reads a whole text as a number, correctly rounded; says whether it is one.
inline bool read_number(std::string_view text, double& value) {
    const char* at = text.data();
    const char* end = at + text.size();
    if (at == end) return false;
    const bool negative = *at == '-';
    if (negative || *at == '+') ++at;
    std::uint64_t mantissa = 0;
    int n_digits = 0;
    int exponent = 0;
    const char* digits = at;
    const auto take = [&](bool after_point) {
        for (; at != end && *at >= '0' && *at <= '9'; ++at) {
            mantissa = mantissa * 10 + static_cast<std::uint64_t>(*at - '0');
            n_digits += n_digits > 0 || *at != '0';
            exponent -= after_point;
        }
    };
    take(false);
    bool any = at != digits;
    if (at != end && *at == '.') {
        const char* point = ++at;
        take(true);
        any = any || at != point;
    }
    if (!any) {
        const std::string_view word(digits, static_cast<std::size_t>(end - digits));
        if (word == "NaN" || word == "nan")
            value = std::numeric_limits<double>::quiet_NaN();
        else if (word == "Infinity" || word == "inf")
            value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
        else
            return false;
        return true;
    }
    if (at != end && (*at == 'e' || *at == 'E')) {
        if (++at == end) return false;
        const bool down = *at == '-';
        if (down || *at == '+') ++at;
        if (at == end) return false;
        int written = 0;
        for (; at != end && *at >= '0' && *at <= '9'; ++at)
            if (written < 100000) written = written * 10 + (*at - '0');
        exponent += down ? -written : written;
    }
    if (at != end) return false;
    // Up to 2^53 and 10^22 both are exact, and one operation rounds once.
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n_digits <= 15 && exponent >= -22 && exponent <= 22) {
        const auto whole = static_cast<double>(mantissa);
        value = exponent < 0 ? whole / powers[-exponent] : whole * powers[exponent];
        if (negative) value = -value;
    } else {
        value = std::strtod(std::string(text).c_str(), nullptr);
    }
    return true;
}

// Writes a number so that it can be read back without loss.
inline std::string_view write_number(double value, char (&room)[40]) {
#if defined(__cpp_lib_to_chars)
    const auto written = std::to_chars(room, room + sizeof room, value);
    return {room, static_cast<std::size_t>(written.ptr - room)};
#else
    int size = 0;
    for (int digits = 15; digits <= 17; ++digits) {
        size = std::snprintf(room, sizeof room, "%.*g", digits, value);
        if (std::strtod(room, nullptr) == value) break;
    }
    return {room, static_cast<std::size_t>(size)};
#endif
}

}  // namespace shoal
