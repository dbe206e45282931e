// What the bindings share: arrays of Python seen as spans, and the poller that reports to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"

namespace shoal {

namespace nb = nanobind;

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Point = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Changing = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using MatrixOut = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

inline Rows<const double> rows(const Matrix& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}
inline std::span<const double> span(const Point& point) {
    return {point.data(), point.shape(0)};
}
inline std::span<const std::int64_t> span(const Labels& labels) {
    return {labels.data(), labels.shape(0)};
}
inline std::span<std::int64_t> span(const Changing& labels) {
    return {labels.data(), labels.shape(0)};
}

template <class T>
nb::capsule owner_of(std::unique_ptr<std::vector<T>> values) {
    return nb::capsule(values.release(), [](void* kept) noexcept { delete static_cast<std::vector<T>*>(kept); });
}

template <class T>
Vector<T> as_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    return Vector<T>(data, {size}, owner_of(std::move(kept)));
}

inline const Loops& chosen_loops(const std::string& name) {
    const Loops* chosen = loops(name.empty() ? nullptr : name.c_str());
    if (!chosen) throw nb::value_error("this machine cannot run the loops asked for");
    return *chosen;
}

// Checks for Ctrl-C and reports progress to Python, holding the GIL only meanwhile.
inline Poller python_poller(nb::object progress, std::size_t n_records) {
    return Poller([progress = std::move(progress), n_records](std::size_t done) {
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done, n_records);
    });
}

}  // namespace shoal
