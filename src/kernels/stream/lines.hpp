// Lines of text as columns, and columns as lines: NDJSON (one object per line) and CSV (RFC 4180).
//
// A line that cannot be used is reported by its number, a code and its position in the text; never by its content.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numeric/decimal.hpp"

namespace shoal {

// How a column is parsed.
enum class Reads : std::int64_t {
    number = 0,
    text = 1,    // one spelling per value, so that equal values are equal texts
    passed = 2,  // unchanged
    nothing = 3  // skipped
};

enum class LineFault : std::int64_t { malformed = 0, missing_key = 1, unknown_key = 2, not_a_number = 3, not_utf8 = 4 };

// Texts stored one after the other.
struct Texts {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint8_t> there;

    void add(std::string_view text, bool is_there) {
        bytes.insert(bytes.end(), text.begin(), text.end());
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
        there.push_back(is_there);
    }
};

struct BadLine {
    std::int64_t number;  // counted from the first line of the text
    LineFault fault;
    std::int64_t begin;
    std::int64_t end;
};

// Parsed lines, column by column.
struct Parsed {
    std::size_t n_bytes = 0;  // in complete lines
    std::size_t n_lines = 0;
    std::vector<std::int64_t> lines;   // the number of each good line
    std::vector<std::int64_t> begins;  // where each good line begins
    std::vector<std::vector<double>> numbers;
    std::vector<Texts> texts;
    std::vector<BadLine> bad;
};

// The values of one line, column by column; overwritten by the next line.
struct Fields {
    std::vector<double> numbers;
    std::vector<std::string> texts;
    std::vector<std::uint8_t> there;
};

class LineReader {
  public:
    LineReader(std::vector<std::string> names, std::vector<std::int64_t> reads, bool is_csv, char separator)
        : names_(std::move(names)), is_csv_(is_csv), separator_(separator) {
        for (const std::int64_t how : reads) reads_.push_back(static_cast<Reads>(how));
        fields_.numbers.resize(names_.size());
        fields_.texts.resize(names_.size());
        fields_.there.resize(names_.size());
        seen_.resize(names_.size());
    }

    // Parses the complete lines of a text; at the end of the input the last one may lack its line break.
    Parsed read(std::string_view text, bool is_end) {
        Parsed out;
        out.numbers.resize(names_.size());
        out.texts.resize(names_.size());
        std::size_t begin = 0;
        while (begin < text.size()) {
            const std::size_t end = end_of_line(text, begin);
            if (end == text.size() && !is_end && (end == begin || text[end - 1] != '\n' || open_)) break;
            read_line(text.substr(begin, end - begin), begin, out);
            begin = end;
            ++out.n_lines;
        }
        out.n_bytes = begin;
        return out;
    }

  private:
    // One past the line break that ends the line, or the size of the text. A break within quotes does not end a line.
    std::size_t end_of_line(std::string_view text, std::size_t begin) {
        open_ = false;
        std::size_t at = begin;
        while (true) {
            const void* found = std::memchr(text.data() + at, '\n', text.size() - at);
            const std::size_t end =
                found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1 : text.size();
            if (is_csv_)
                for (const char* c = text.data() + at; (c = next_quote(c, text.data() + end)) != nullptr; ++c)
                    open_ = !open_;
            if (!open_ || end == text.size()) return end;
            at = end;
        }
    }
    static const char* next_quote(const char* from, const char* to) {
        return static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(to - from)));
    }

    void read_line(std::string_view line, std::size_t begin, Parsed& out) {
        while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
        if (is_blank(line)) return;
        std::fill(seen_.begin(), seen_.end(), 0);
        fault_ = LineFault::malformed;
        const bool good = is_utf8(line) ? (is_csv_ ? read_csv(line) : read_json(line)) : fail(LineFault::not_utf8);
        const auto number = static_cast<std::int64_t>(out.n_lines);
        if (!good) {
            const auto start = static_cast<std::int64_t>(begin);
            out.bad.push_back({number, fault_, start, start + static_cast<std::int64_t>(line.size())});
            return;
        }
        out.lines.push_back(number);
        out.begins.push_back(static_cast<std::int64_t>(begin));
        for (std::size_t j = 0; j < names_.size(); ++j) {
            if (reads_[j] == Reads::number)
                out.numbers[j].push_back(fields_.numbers[j]);
            else if (reads_[j] != Reads::nothing)
                out.texts[j].add(fields_.texts[j], fields_.there[j]);
        }
    }

    bool fail(LineFault fault) {
        fault_ = fault;
        return false;
    }

    // A separator is not white space: a record whose fields are all empty is a record.
    bool is_blank(std::string_view line) const {
        return std::ranges::all_of(line, [&](char c) { return is_space(c) && !(is_csv_ && c == separator_); });
    }

    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
    static std::string_view trimmed(std::string_view text) {
        while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
        while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
        return text;
    }

    bool set_number(std::size_t j, std::string_view text, bool is_there) {
        if (is_there) return read_number(text, fields_.numbers[j]) || fail(LineFault::not_a_number);
        fields_.numbers[j] = std::numeric_limits<double>::quiet_NaN();
        return true;
    }
    void set_text(std::size_t j, std::string_view text, bool is_there) {
        fields_.texts[j].assign(text);
        fields_.there[j] = is_there;
    }

    // CSV: as many fields as columns, in their order.

    bool read_csv(std::string_view line) {
        std::size_t at = 0;
        for (std::size_t j = 0; j < names_.size(); ++j) {
            std::string_view field;
            if (!next_field(line, at, field)) return false;
            const bool is_last = at == line.size() + 1;
            if (is_last != (j + 1 == names_.size())) return false;
            if (reads_[j] == Reads::number) {
                field = trimmed(field);
                if (!set_number(j, field, !field.empty())) return false;
            } else if (reads_[j] != Reads::nothing) {
                set_text(j, field, !field.empty());
            }
        }
        return true;
    }

    // Parses the field at `at`, and moves `at` behind the separator; behind the end after the last field.
    bool next_field(std::string_view line, std::size_t& at, std::string_view& field) {
        if (at > line.size()) return false;
        if (at < line.size() && line[at] == '"') {
            unquoted_.clear();
            for (++at; at < line.size(); ++at) {
                if (line[at] != '"') {
                    unquoted_ += line[at];
                } else if (at + 1 < line.size() && line[at + 1] == '"') {
                    unquoted_ += line[at++];
                } else {
                    break;
                }
            }
            if (at == line.size()) return false;
            ++at;
            if (at < line.size() && line[at] != separator_) return false;
            ++at;
            field = unquoted_;
            return true;
        }
        const std::size_t end = std::min(line.find(separator_, at), line.size());
        field = line.substr(at, end - at);
        at = end + 1;
        return field.find('"') == std::string_view::npos;
    }

    // JSON: one object, every column once, no other key.

    bool read_json(std::string_view line) {
        const char* at = line.data();
        const char* end = at + line.size();
        skip_space(at, end);
        if (at == end || *at++ != '{') return false;
        skip_space(at, end);
        std::size_t n_seen = 0;
        if (at != end && *at == '}') {
            ++at;
        } else {
            for (std::size_t expected = 0;; ++expected) {
                std::string_view key;
                if (!take_string(at, end, key)) return false;
                std::size_t j = 0;
                if (!find_column(key, expected, j)) return fail(LineFault::unknown_key);
                if (seen_[j]++) return false;
                ++n_seen;
                skip_space(at, end);
                if (at == end || *at++ != ':') return false;
                skip_space(at, end);
                const char* begin = at;
                if (!skip_value(at, end, 0)) return false;
                if (!set_json(j, {begin, static_cast<std::size_t>(at - begin)})) return false;
                skip_space(at, end);
                if (at == end) return false;
                const char c = *at++;
                if (c == '}') break;
                if (c != ',') return false;
                skip_space(at, end);
            }
        }
        skip_space(at, end);
        if (at != end) return false;
        return n_seen == names_.size() || fail(LineFault::missing_key);
    }

    // Keys are mostly in the same order as on the line before.
    bool find_column(std::string_view key, std::size_t expected, std::size_t& j) {
        std::string decoded;
        if (key.find('\\') != std::string_view::npos) {
            decode(key, decoded);
            key = decoded;
        }
        if (order_.size() <= expected) order_.resize(expected + 1, 0);
        j = order_[expected];
        if (j < names_.size() && names_[j] == key) return true;
        const auto found = std::find(names_.begin(), names_.end(), key);
        if (found == names_.end()) return false;
        j = order_[expected] = static_cast<std::size_t>(found - names_.begin());
        return true;
    }

    bool set_json(std::size_t j, std::string_view raw) {
        const bool is_there = raw != "null";
        switch (reads_[j]) {
            case Reads::number:
                if (is_there && !is_number_) return fail(LineFault::not_a_number);
                fields_.numbers[j] = is_there ? number_ : std::numeric_limits<double>::quiet_NaN();
                return true;
            case Reads::text:
                set_text(j, one_spelling(raw), is_there);
                return true;
            case Reads::passed:
                set_text(j, on_one_line(raw), true);
                return true;
            case Reads::nothing:
                return true;
        }
        return false;
    }

    // JSON allows carriage returns between the parts of a nested value, and some readers treat them as line breaks.
    std::string_view on_one_line(std::string_view raw) {
        if (raw.find('\r') == std::string_view::npos) return raw;
        spelled_.assign(raw);
        std::replace(spelled_.begin(), spelled_.end(), '\r', ' ');
        return spelled_;
    }

    // Escapes and numbers have several spellings.
    std::string_view one_spelling(std::string_view raw) {
        if (raw.front() == '"') {
            if (raw.find('\\') == std::string_view::npos) return raw;
            std::string decoded;
            decode(raw.substr(1, raw.size() - 2), decoded);
            spelled_.clear();
            write_json_string(decoded, spelled_);
            return spelled_;
        }
        if (is_number_ && std::abs(number_) < 9e15) {
            char room[40];
            spelled_ = write_number(number_ + 0.0, room);
            return spelled_;
        }
        return raw;
    }

    static void skip_space(const char*& at, const char* end) {
        while (at != end && is_space(*at)) ++at;
    }

    // Parses a string; `content` is the text between the quotes.
    static bool take_string(const char*& at, const char* end, std::string_view& content) {
        if (at == end || *at != '"') return false;
        const char* begin = ++at;
        for (; at != end; ++at) {
            if (*at == '"') {
                content = {begin, static_cast<std::size_t>(at - begin)};
                ++at;
                return true;
            }
            if (static_cast<unsigned char>(*at) < 0x20) return false;
            if (*at == '\\') {
                static constexpr std::string_view escaped = "\"\\/bfnrtu";
                if (++at == end || escaped.find(*at) == std::string_view::npos) return false;
                if (*at == 'u' && !take_escape(at, end)) return false;
            }
        }
        return false;
    }

    // Parses the digits after \u, up to the last one; a surrogate is accepted only as part of a pair.
    static bool take_escape(const char*& at, const char* end) {
        const int first = take_hex(at, end);
        if (first < 0 || (first >= 0xdc00 && first < 0xe000)) return false;
        if (first < 0xd800 || first >= 0xe000) return true;
        if (end - at < 3 || at[1] != '\\' || at[2] != 'u') return false;
        at += 2;
        const int second = take_hex(at, end);
        return second >= 0xdc00 && second < 0xe000;
    }
    static int take_hex(const char*& at, const char* end) {
        int code = 0;
        for (int i = 0; i < 4; ++i) {
            if (++at == end || !is_hex(*at)) return -1;
            code = code * 16 + (*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
        }
        return code;
    }
    static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

    // RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
    static bool is_utf8(std::string_view text) {
        const auto* at = reinterpret_cast<const unsigned char*>(text.data());
        const auto* end = at + text.size();
        while (at != end) {
            std::uint64_t eight;
            if (end - at >= 8 && (std::memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) {
                at += 8;
                continue;
            }
            const unsigned char c = *at++;
            if (c < 0x80) continue;
            const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
            if (c < 0xc2 || c > 0xf4 || end - at < more) return false;
            if ((c == 0xe0 && *at < 0xa0) || (c == 0xed && *at > 0x9f) || (c == 0xf0 && *at < 0x90) ||
                (c == 0xf4 && *at > 0x8f))
                return false;
            for (int i = 0; i < more; ++i)
                if ((*at++ & 0xc0) != 0x80) return false;
        }
        return true;
    }

    // Also stores whether the last value was a number, and its value.
    bool skip_value(const char*& at, const char* end, int depth) {
        is_number_ = false;
        if (at == end || depth > 64) return false;
        if (*at == '"') {
            std::string_view content;
            return take_string(at, end, content);
        }
        if (*at == '{' || *at == '[') return skip_nested(at, end, depth);
        const char* begin = at;
        while (at != end && *at != ',' && *at != '}' && *at != ']' && !is_space(*at)) ++at;
        const std::string_view word(begin, static_cast<std::size_t>(at - begin));
        const bool is_valid = is_json_number(word);
        is_number_ = is_valid && read_number(word, number_);
        return is_valid || word == "true" || word == "false" || word == "null";
    }

    // RFC 8259, section 6: no plus sign, no leading zero, digits on both sides of a point, no NaN and no Infinity.
    static bool is_json_number(std::string_view word) {
        std::size_t at = !word.empty() && word[0] == '-';
        const auto digits = [&] {
            const std::size_t first = at;
            while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
            return at - first;
        };
        const std::size_t first = at;
        const std::size_t n_whole = digits();
        if (n_whole == 0 || (n_whole > 1 && word[first] == '0')) return false;
        if (at < word.size() && word[at] == '.' && (++at, digits() == 0)) return false;
        if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
            ++at;
            if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
            if (digits() == 0) return false;
        }
        return at == word.size();
    }

    bool skip_nested(const char*& at, const char* end, int depth) {
        const char close = *at == '{' ? '}' : ']';
        const bool is_object = *at++ == '{';
        skip_space(at, end);
        if (at != end && *at == close) return ++at, true;
        while (true) {
            std::string_view key;
            skip_space(at, end);
            if (is_object) {
                if (!take_string(at, end, key)) return false;
                skip_space(at, end);
                if (at == end || *at++ != ':') return false;
                skip_space(at, end);
            }
            if (!skip_value(at, end, depth + 1)) return false;
            skip_space(at, end);
            if (at == end) return false;
            const char c = *at++;
            if (c == close) {
                is_number_ = false;
                return true;
            }
            if (c != ',') return false;
        }
    }

    static void decode(std::string_view content, std::string& out) {
        for (std::size_t i = 0; i < content.size(); ++i) {
            if (content[i] != '\\') {
                out += content[i];
                continue;
            }
            const char c = content[++i];
            static constexpr std::string_view letters = "bfnrt";
            static constexpr std::string_view meant = "\b\f\n\r\t";
            if (c == 'u') {
                std::uint32_t code = hex(content, i + 1);
                i += 4;
                const bool high = code >= 0xd800 && code < 0xdc00 && i + 6 < content.size() && content[i + 1] == '\\' &&
                                  content[i + 2] == 'u';
                const std::uint32_t low = high ? hex(content, i + 3) : 0;
                if (low >= 0xdc00 && low < 0xe000) {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    i += 6;
                }
                add_utf8(code, out);
            } else {
                const std::size_t which = letters.find(c);
                out += which == std::string_view::npos ? c : meant[which];
            }
        }
    }
    static std::uint32_t hex(std::string_view content, std::size_t at) {
        std::uint32_t code = 0;
        std::from_chars(content.data() + at, content.data() + at + 4, code, 16);
        return code;
    }
    static void add_utf8(std::uint32_t code, std::string& out) {
        const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
        if (code < 0x80) {
            add(code);
        } else if (code < 0x800) {
            add(0xc0 | code >> 6);
            add(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            add(0xe0 | code >> 12);
            add(0x80 | (code >> 6 & 0x3f));
            add(0x80 | (code & 0x3f));
        } else {
            add(0xf0 | (code >> 18 & 7));
            add(0x80 | (code >> 12 & 0x3f));
            add(0x80 | (code >> 6 & 0x3f));
            add(0x80 | (code & 0x3f));
        }
    }

  public:
    static void write_json_string(std::string_view text, std::string& out) {
        static constexpr char digits[] = "0123456789abcdef";
        out += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                out += '\\';
                out += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                out += "\\u00";
                out += digits[static_cast<unsigned char>(c) >> 4];
                out += digits[c & 15];
            } else {
                out += c;
            }
        }
        out += '"';
    }

  private:
    std::vector<std::string> names_;
    std::vector<Reads> reads_;
    bool is_csv_;
    char separator_;
    bool open_ = false;  // whether the last line examined ends within quotes
    LineFault fault_ = LineFault::malformed;
    bool is_number_ = false;  // the last JSON value
    double number_ = 0;
    Fields fields_;
    std::vector<int> seen_;
    std::vector<std::size_t> order_;
    std::string unquoted_;
    std::string spelled_;
};

// A column to be written: numbers, or texts with a validity byte each.
struct Written {
    const double* numbers = nullptr;
    const std::int64_t* offsets = nullptr;
    const std::uint8_t* bytes = nullptr;
    const std::uint8_t* there = nullptr;
};

class LineWriter {
  public:
    LineWriter(const std::vector<std::string>& names, bool is_csv, char separator)
        : is_csv_(is_csv), separator_(separator) {
        for (std::size_t j = 0; j < names.size(); ++j) {
            std::string before(1, is_csv ? separator : j ? ',' : '{');
            if (is_csv && j == 0) before.clear();
            if (!is_csv) {
                LineReader::write_json_string(names[j], before);
                before += ':';
            }
            before_.push_back(before);
        }
    }

    std::string write(const std::vector<Written>& columns, std::size_t n_rows) {
        std::string out;
        out.reserve(n_rows * columns.size() * 12);
        std::vector<std::string> last(columns.size());
        std::vector<double> value(columns.size(), std::numeric_limits<double>::quiet_NaN());
        for (std::size_t i = 0; i < n_rows; ++i) {
            for (std::size_t j = 0; j < columns.size(); ++j) {
                out += before_[j];
                if (columns[j].numbers) {
                    // All members of a cell have the same published values.
                    if (columns[j].numbers[i] != value[j]) {
                        value[j] = columns[j].numbers[i];
                        last[j] = number(value[j]);
                    }
                    out += last[j];
                } else {
                    add_text(columns[j], i, out);
                }
            }
            out += is_csv_ ? "\n" : "}\n";
        }
        return out;
    }

  private:
    std::string number(double value) const {
        char room[40];
        if (std::isfinite(value)) return std::string(write_number(value, room));
        return is_csv_ ? "" : "null";
    }

    void add_text(const Written& column, std::size_t i, std::string& out) const {
        const char* begin = reinterpret_cast<const char*>(column.bytes) + column.offsets[i];
        const std::string_view text(begin, static_cast<std::size_t>(column.offsets[i + 1] - column.offsets[i]));
        if (!column.there[i]) {
            if (!is_csv_) out += "null";
        } else if (!is_csv_ || !needs_quotes(text)) {
            out += text;
        } else {
            out += '"';
            for (const char c : text) {
                if (c == '"') out += '"';
                out += c;
            }
            out += '"';
        }
    }

    bool needs_quotes(std::string_view text) const {
        return std::any_of(text.begin(), text.end(),
                           [&](char c) { return c == '"' || c == separator_ || c == '\n' || c == '\r'; });
    }

    bool is_csv_;
    char separator_;
    std::vector<std::string> before_;
};

}  // namespace shoal
