// Numbers as text and back, the same on every machine, without a look at the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>
#include <system_error>

#include "vendored/fast_float.h"

namespace shoal {

// Parses a whole text as a number, correctly rounded; returns whether it is one.
//
// A number is an optional sign, digits with or without a point among them, and an optional exponent (-1, +.5, 5., 01,
// 2e-3); or NaN, nan, Infinity or inf with an optional sign. What exceeds every double is infinite.
inline bool read_number(std::string_view text, double& value) {
    const char* end = text.data() + text.size();
    const bool negative = text.starts_with('-');
    const char* begin = text.data() + (negative || text.starts_with('+'));
    if (begin == end) return false;
    if ((*begin >= '0' && *begin <= '9') || *begin == '.') {
        const auto read = fast_float::from_chars(begin, end, value);
        if (negative) value = -value;
        return read.ptr == end && read.ec != std::errc::invalid_argument;
    }
    const std::string_view word(begin, static_cast<std::size_t>(end - begin));
    if (word == "NaN" || word == "nan")
        value = std::numeric_limits<double>::quiet_NaN();
    else if (word == "Infinity" || word == "inf")
        value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    else
        return false;
    return true;
}

// Writes a number so that it can be read back without loss.
inline std::string_view write_number(double value, char (&room)[40]) {
#if defined(__cpp_lib_to_chars)
    const auto written = std::to_chars(room, room + sizeof room, value);
    return {room, static_cast<std::size_t>(written.ptr - room)};
#else
    std::string_view text;
    for (int digits = 15; digits <= 17; ++digits) {
        const int size = std::snprintf(room, sizeof room, "%.*g", digits, value);
        text = {room, static_cast<std::size_t>(size)};
        // The locale may have another sign in the place of the point.
        const std::size_t mark = text.find_first_not_of("-+0123456789e");
        if (mark != std::string_view::npos) room[mark] = '.';
        if (double again = 0; read_number(text, again) && again == value) break;
    }
    return text;
#endif
}

}  // namespace shoal
