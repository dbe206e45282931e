// Arrays of Python seen as spans, and arrays for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"

namespace shoal {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Point = Column<double>;
using Labels = Column<std::int64_t>;
using Keys = Column<std::uint64_t>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span(const Column<T>& column) {
    return {column.data(), column.shape(0)};
}
inline Rows<const double> rows(const Matrix& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}

// An array that is returned to Python.
template <class T>
struct Array {
    nb::ndarray<nb::numpy, T, nb::ndim<1>> values;
};
using Numbers = Array<std::int64_t>;
using Vector = Array<double>;
using MatrixOut = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

template <class T>
Array<T> as_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    const nb::capsule owner(kept.release(), [](void* kept) noexcept { delete static_cast<std::vector<T>*>(kept); });
    return {{data, {size}, owner}};
}

template <class T>
Array<T> as_array(std::unique_ptr<T[]> values, std::size_t size) {
    T* data = values.release();
    const nb::capsule owner(data, [](void* kept) noexcept { delete[] static_cast<T*>(kept); });
    return {{data, {size}, owner}};
}

inline MatrixOut as_matrix(std::vector<double> values, std::size_t n_rows, std::size_t n_dims) {
    auto kept = std::make_unique<std::vector<double>>(std::move(values));
    double* data = kept->data();
    const nb::capsule owner(kept.release(),
                            [](void* kept) noexcept { delete static_cast<std::vector<double>*>(kept); });
    return {data, {n_rows, n_dims}, owner};
}

}  // namespace shoal

namespace nanobind::detail {

// numpy calls an integer by the name of its type, nanobind by that of a `long long`, which is as long.
template <class T>
struct type_caster<shoal::Array<T>> {
    static constexpr auto type_name() {
        if constexpr (std::is_same_v<T, double>)
            return const_name("numpy.typing.NDArray[numpy.float64]");
        else if constexpr (std::is_same_v<T, std::int64_t>)
            return const_name("numpy.typing.NDArray[numpy.int64]");
        else if constexpr (std::is_same_v<T, std::uint64_t>)
            return const_name("numpy.typing.NDArray[numpy.uint64]");
        else
            return const_name("numpy.typing.NDArray[numpy.uint8]");
    }
    NB_TYPE_CASTER(shoal::Array<T>, type_name())

    bool from_python(handle, std::uint8_t, cleanup_list*) noexcept { return false; }
    static handle from_cpp(const shoal::Array<T>& array, rv_policy, cleanup_list*) {
        object values = cast(array.values);
        if constexpr (std::is_same_v<T, std::int64_t>) values = values.attr("view")("int64");
        if constexpr (std::is_same_v<T, std::uint64_t>) values = values.attr("view")("uint64");
        return values.release();
    }
};

}  // namespace nanobind::detail
