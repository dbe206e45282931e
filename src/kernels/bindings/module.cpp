// The compiled module. `shoal.kernels` is its door to the rest of shoal, and takes over all names.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/bindings.hpp"
#include "numeric/simd.hpp"
#include "parallel/pace.hpp"

NB_MODULE(_kernels, module) {
    // An interpreter that ends while somebody still holds an object is no leak of ours, and pages of lines help nobody.
    nanobind::set_leak_warnings(false);
    module.doc() = "The compiled loops of shoal. What does not fit together is a ValueError.";
    module.def(
        "simd", [] { return std::string(shoal::loops()->name); },
        "Return the instruction set used on this machine: generic, avx2 or avx512.");
    module.def(
        "share_from", [](double work) { return shoal::Pace::least_share.exchange(work); }, nanobind::arg("work"),
        "Call threads for work of at least this much, for tests; return what it was before.");
    shoal::bind_partition(module);
    shoal::bind_remaining(module);
    shoal::bind_measures(module);
    shoal::bind_guarantees(module);
    shoal::bind_ncp(module);
    shoal::bind_stream(module);
    shoal::bind_lines(module);
}
