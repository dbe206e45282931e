#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "mdav.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace shoal;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using LabelsOut = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

Rows<const double> rows(const Matrix& X) { return {X.data(), X.shape(0), X.shape(1)}; }

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> vector_out(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept->data(), {kept->size()}, owner};
}

// Looks for Ctrl-C and tells Python how far the work is, with the GIL for that moment only.
Watch python_watch(nb::object progress, std::size_t n_records) {
    return Watch([progress = std::move(progress), n_records](std::size_t done) {
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done, n_records);
    });
}

LabelsOut mdav(const Matrix& X, std::size_t k, std::size_t threads, nb::object progress, const std::string& simd) {
    std::vector<std::int64_t> labels(X.shape(0));
    const Loops* chosen = loops(simd.empty() ? nullptr : simd.c_str());
    if (!chosen) throw nb::value_error("this machine cannot run the loops asked for");
    Watch watch = python_watch(progress, X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Mdav(rows(X), k, pool, *chosen, labels).run(watch);
    }
    return vector_out(std::move(labels));
}

}  // namespace

NB_MODULE(_kernels, module) {
    module.doc() = "The compiled loops of shoal. Callers have checked everything.";
    module.def("mdav", &mdav, "X"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Partition by MDAV: labels of shape (n_records,).");
}
