// The models that every cell must satisfy, and the search that repairs and improves cells under their veto.
#include "bindings/guarantees.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "guarded/search.hpp"

namespace shoal {
namespace {

using Effort = std::tuple<std::size_t, std::size_t, double, bool>;  // rounds, neighbours, least gain, at any cost

Numbers guarded_search(const Matrix& X, const Labels& start, std::size_t k, const Guarantees& guarantees,
                       const Effort& effort) {
    const auto [rounds, neighbours, least_gain, at_any_cost] = effort;
    const GuardedSearch::Plan plan{rounds, neighbours, least_gain, at_any_cost};
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    Call call(X.shape(0) * rounds);
    call.run([&](Pool& pool) {
        check_matrix(rows(X), pool);
        check_partition(span(start), X.shape(0), 1);
        check_cell_size(k, X.shape(0));
        const std::vector<Guarded> guarded = guarantees.about(X.shape(0));
        GuardedSearch(rows(X), k, guarded, pool, call.loops(), labels, call.poller()).run(plan);
    });
    return as_array(std::move(labels));
}

}  // namespace

void bind_guarantees(nb::module_& module) {
    nb::class_<Guarantees>(module, "Guarantees",
                           "The models that every cell must satisfy, with their codes; each has a veto in a search.")
        .def(nb::init<>())
        .def("ordered_closeness", &Guarantees::ordered_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("nominal_closeness", &Guarantees::nominal_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("distinct", &Guarantees::distinct, "codes"_a, "l"_a)
        .def("entropy", &Guarantees::entropy, "codes"_a, "l"_a)
        .def("recursive", &Guarantees::recursive, "codes"_a, "l"_a, "over"_a, "under"_a)
        .def("delta", &Guarantees::delta, "codes"_a, "counts"_a, "low"_a, "high"_a)
        .def("share_limits", &Guarantees::share_limits, "codes"_a, "over"_a, "under"_a)
        .def("persons_once", &Guarantees::persons_once, "pairs"_a, "values"_a,
             "Count the records of a person with the same value once, for the guarantee added last.")
        .def("part", &Guarantees::part, "records"_a, "Return the same about some of the records.")
        .def("one", &Guarantees::one, "place"_a, "Return only the guarantee at one place.")
        .def("excess", &Guarantees::excess, "labels"_a, "n_cells"_a,
             "Return the total violation of the models by each cell, shape (n_cells,).");
    module.def("guarded_search", &guarded_search, "X"_a, "labels"_a, "k"_a, "guarantees"_a, "effort"_a,
               "Repair cells that violate a model, then lower the loss by steps that violate none (`Effort`); see "
               "`shoal.models`.");
}

}  // namespace shoal
