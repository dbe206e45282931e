// Lines of text as columns, and back.
#include "stream/lines.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"

namespace shoal {
namespace {

// One byte that can stand between fields.
char separator_of(const std::string& separator) {
    check(separator.size() == 1 && std::string("\"\r\n").find(separator) == std::string::npos,
          "the separator is not one byte other than a quote or a line break");
    return separator[0];
}

// Lines of text as columns: numbers as arrays, texts as offsets, bytes and whether they are there.
class TextReader : OneAtATime {
  public:
    TextReader(std::vector<std::string> names, std::vector<std::int64_t> reads, bool is_csv,
               const std::string& separator)
        : reads_(checked(reads, names.size())),
          reader_(std::move(names), std::move(reads), is_csv, separator_of(separator)) {}

    nb::tuple read(nb::bytes text, bool is_end) {
        const std::string_view content(text.c_str(), text.size());
        Parsed parsed = alone([&] { return reader_.read(content, is_end); });
        nb::list columns;
        for (std::size_t j = 0; j < reads_.size(); ++j) {
            if (reads_[j] == 0)
                columns.append(as_array(std::move(parsed.numbers[j])));
            else
                columns.append(nb::make_tuple(as_array(std::move(parsed.texts[j].offsets)),
                                              as_array(std::move(parsed.texts[j].bytes)),
                                              as_array(std::move(parsed.texts[j].there))));
        }
        nb::list bad;
        for (const BadLine& line : parsed.bad)
            bad.append(nb::make_tuple(line.number, static_cast<std::int64_t>(line.fault), line.begin, line.end));
        return nb::make_tuple(parsed.n_bytes, parsed.n_lines, as_array(std::move(parsed.lines)), columns, bad,
                              as_array(std::move(parsed.begins)));
    }

  private:
    static std::vector<std::int64_t> checked(const std::vector<std::int64_t>& reads, std::size_t n_names) {
        check_length(reads.size(), n_names);
        check_numbers(reads, 4);
        return reads;
    }

    std::vector<std::int64_t> reads_;
    LineReader reader_;
};

// Columns as lines of text.
class TextWriter {
  public:
    TextWriter(const std::vector<std::string>& names, bool is_csv, const std::string& separator)
        : n_names_(names.size()), writer_(names, is_csv, separator_of(separator)) {}

    nb::bytes write(const nb::list& columns, std::size_t n_rows) {
        check_length(columns.size(), n_names_);
        std::vector<ColumnIn> kept;
        for (const nb::handle column : columns) kept.emplace_back(column, n_rows);
        std::vector<Written> written;
        for (const ColumnIn& column : kept) written.push_back(column.written());
        std::string out;
        {
            nb::gil_scoped_release released;
            out = writer_.write(written, n_rows);
        }
        return nb::bytes(out.data(), out.size());
    }

  private:
    // Numbers, or texts with offsets and whether they are there. Holds the arrays: a conversion may have made them.
    struct ColumnIn {
        ColumnIn(nb::handle column, std::size_t n_rows) {
            if (!nb::isinstance<nb::tuple>(column)) {
                numbers = nb::cast<Point>(column);
                check_length(numbers.shape(0), n_rows);
                return;
            }
            const auto parts = nb::cast<nb::tuple>(column);
            check(parts.size() == 3, "a column of texts has offsets, bytes and whether they are there");
            offsets = nb::cast<Labels>(parts[0]);
            bytes = nb::cast<Column<std::uint8_t>>(parts[1]);
            there = nb::cast<Column<std::uint8_t>>(parts[2]);
            check_length(offsets.shape(0), n_rows + 1);
            check_length(there.shape(0), n_rows);
            check_offsets(span(offsets), bytes.shape(0));
        }

        Written written() const {
            if (numbers.is_valid()) return {numbers.data()};
            return {nullptr, offsets.data(), bytes.data(), there.data()};
        }

        Point numbers;
        Labels offsets;
        Column<std::uint8_t> bytes;
        Column<std::uint8_t> there;
    };

    std::size_t n_names_;
    LineWriter writer_;
};

}  // namespace

void bind_lines(nb::module_& module) {
    nb::class_<TextReader>(module, "TextReader", "Lines of text as columns.")
        .def(nb::init<std::vector<std::string>, std::vector<std::int64_t>, bool, const std::string&>(), "names"_a,
             "reads"_a, "is_csv"_a, "separator"_a)
        .def("read", &TextReader::read, "text"_a, "is_end"_a,
             nb::sig("def read(self, text: bytes, is_end: bool) -> tuple[int, int, object, list[object], "
                     "list[tuple[int, int, int, int]], object]"),
             "Return the bytes used, lines read, numbers of the good ones, their columns, the bad ones, and where the "
             "good ones begin.");
    nb::class_<TextWriter>(module, "TextWriter", "Columns as lines of text.")
        .def(nb::init<const std::vector<std::string>&, bool, const std::string&>(), "names"_a, "is_csv"_a,
             "separator"_a)
        .def("write", &TextWriter::write, "columns"_a, "n_rows"_a,
             nb::sig("def write(self, columns: list[object], n_rows: int) -> bytes"), "Return the lines, as bytes.");
}

}  // namespace shoal
