// Fuzzes the reader and the writer of lines (src/kernels/stream/lines.hpp) with libFuzzer; tests/fuzz/fuzz.py builds and runs
// it.
//
// The first byte chooses the form and the separator, the second where the text is cut; the rest is the text. What is
// checked is written down once more in tests/fuzz/targets.py, which needs no clang.
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "numeric/decimal.hpp"
#include "stream/lines.hpp"

namespace {

using namespace shoal;

const std::vector<std::string> names{"a", "b", "c", "d"};
const std::vector<std::int64_t> reads{0, 1, 2, 3};

void require(bool holds) {
    if (!holds) std::abort();
}

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

void require_same(const Texts& a, const Texts& b) {
    require(a.offsets == b.offsets && a.bytes == b.bytes && a.there == b.there);
}

void append(Texts& all, const Texts& more) {
    for (std::size_t i = 0; i < more.there.size(); ++i) {
        const auto from = static_cast<std::size_t>(more.offsets[i]);
        const auto to = static_cast<std::size_t>(more.offsets[i + 1]);
        all.add({reinterpret_cast<const char*>(more.bytes.data()) + from, to - from}, more.there[i]);
    }
}

// Lines in two pieces are the lines in one.
void check_pieces(const Parsed& whole, std::string_view text, std::size_t cut, bool is_csv, char separator) {
    LineReader reader(names, reads, is_csv, separator);
    Parsed first = reader.read(text.substr(0, cut), false);
    require(first.n_bytes <= cut);
    const Parsed second = reader.read(text.substr(first.n_bytes), true);
    require(first.n_lines + second.n_lines == whole.n_lines);
    require(first.bad.size() + second.bad.size() == whole.bad.size());
    first.numbers[0].insert(first.numbers[0].end(), second.numbers[0].begin(), second.numbers[0].end());
    require(first.numbers[0].size() == whole.numbers[0].size());
    for (std::size_t i = 0; i < whole.numbers[0].size(); ++i) require(same(first.numbers[0][i], whole.numbers[0][i]));
    for (const std::size_t j : {1, 2}) {
        append(first.texts[j], second.texts[j]);
        require_same(first.texts[j], whole.texts[j]);
    }
}

// What was read, written and read again is what was read; what is not finite is written as missing.
void check_round_trip(const Parsed& whole, bool is_csv, char separator) {
    const std::vector<std::string> kept(names.begin(), names.end() - 1);
    std::vector<Written> columns{{whole.numbers[0].data()}};
    for (const std::size_t j : {1, 2}) {
        const Texts& texts = whole.texts[j];
        columns.push_back({nullptr, texts.offsets.data(), texts.bytes.data(), texts.there.data()});
    }
    const std::string out = LineWriter(kept, is_csv, separator).write(columns, whole.lines.size());
    const Parsed again = LineReader(kept, {0, 1, 2}, is_csv, separator).read(out, true);
    require(again.bad.empty() && again.lines.size() == whole.lines.size());
    for (std::size_t i = 0; i < whole.lines.size(); ++i) {
        const double value = whole.numbers[0][i];
        require(same(again.numbers[0][i], std::isfinite(value) ? value : NAN));
    }
    for (const std::size_t j : {1, 2}) require_same(again.texts[j], whole.texts[j]);
}

// Where both take a text as a finite decimal number, they agree on its value.
void check_number(std::string_view text) {
    double value = 0;
    if (!read_number(text, value) || std::isnan(value)) return;
    const std::string copy(text);
    require(same(value, std::strtod(copy.c_str(), nullptr)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const bool is_csv = data[0] & 1;
    const char separator = ",;\t "[data[0] >> 1 & 3];
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const Parsed whole = LineReader(names, reads, is_csv, separator).read(text, true);
    require(whole.n_bytes == text.size());
    for (const BadLine& bad : whole.bad) require(bad.begin <= bad.end && bad.end <= std::ssize(text));
    check_pieces(whole, text, text.size() * data[1] / 255, is_csv, separator);
    check_round_trip(whole, is_csv, separator);
    check_number(text);
    return 0;
}
