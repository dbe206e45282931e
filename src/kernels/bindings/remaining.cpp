// The records not yet in a cell, as an object.
#include "search/remaining.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "search/cell_around_record.hpp"

namespace shoal {
namespace {

// Remaining, with what it needs to live: the matrix, the threads, and room for points.
class RemainingRecords : OneAtATime {
  public:
    explicit RemainingRecords(Matrix X) : RemainingRecords(std::move(X), Call::silent()) {}

    std::size_t size() const {
        return alone([&] { return remaining_.size(); });
    }
    bool contains(std::int64_t record) const {
        return alone([&] { return remains(record); });
    }

    Vector centroid() {
        return as_array(alone([&] {
            check(remaining_.size() > 0, "no record remains");
            std::vector<double> out(X_.shape(1));
            remaining_.centroid(out);
            for (double& value : out) value /= remaining_.scale();
            return out;
        }));
    }

    std::pair<Numbers, Vector> nearest(const Point& point, std::size_t k) {
        std::vector<std::int64_t> records;
        std::vector<double> squared;
        alone([&] {
            check(k <= remaining_.size(), "fewer than k records remain");
            const auto found = search(point, k, false).nearest;
            // The next question is often about a point nearby.
            if (!found.empty()) home_ = remaining_.home(found.front().record);
            for (const Candidate& candidate : found) {
                records.push_back(candidate.record);
                squared.push_back(unscaled(candidate.distance));
            }
        });
        return {as_array(std::move(records)), as_array(std::move(squared))};
    }

    std::int64_t farthest(const Point& point) {
        return alone([&]() -> std::int64_t {
            check(remaining_.size() > 0, "no record remains");
            return search(point, 0, true).farthest.front().record;
        });
    }
    std::int64_t farthest_from_centroid() {
        return alone([&]() -> std::int64_t {
            check(remaining_.size() > 0, "no record remains");
            return remaining_.farthest_from_centroid();
        });
    }

    void remove(const Labels& records) {
        alone([&] {
            for (const std::int64_t record : span(records)) {
                check(remains(record), "a record to take out does not remain");
                remaining_.remove(static_cast<std::uint32_t>(record));
            }
            remaining_.tidy();
        });
    }

    Numbers gather(std::int64_t record, std::size_t k) {
        return as_array(alone([&] {
            check_around(record, k);
            return shoal::gather(remaining_, static_cast<std::uint32_t>(record), k, point_);
        }));
    }

    Numbers grow(std::int64_t record, std::size_t k) {
        Call call = Call::silent();
        return as_array(alone([&] {
            check_around(record, k);
            return shoal::grow(remaining_, static_cast<std::uint32_t>(record), k, point_, call.poller());
        }));
    }

  private:
    RemainingRecords(Matrix X, const Call& call)
        : X_(checked(std::move(X))),
          pool_(call.n_threads()),
          remaining_(rows(X_), pool_, call.loops()),
          point_(X_.shape(1)) {}

    static Matrix checked(Matrix X) {
        check_matrix(rows(X));
        return X;
    }
    bool remains(std::int64_t record) const {
        return record >= 0 && static_cast<std::size_t>(record) < X_.shape(0) &&
               remaining_.contains(static_cast<std::uint32_t>(record));
    }
    void check_around(std::int64_t record, std::size_t k) const {
        check(remains(record), "the record does not remain");
        check_cell_size(k, remaining_.size());
    }
    Answer search(const Point& point, std::size_t k, bool wants_farthest) {
        check_length(point.shape(0), point_.size());
        check_finite(span(point));
        for (std::size_t j = 0; j < point_.size(); ++j) point_[j] = point.data()[j] * remaining_.scale();
        return remaining_.search({point_, k, wants_farthest, home_});
    }
    double unscaled(double squared) const { return squared / remaining_.scale() / remaining_.scale(); }

    Matrix X_;
    Pool pool_;
    Remaining remaining_;
    std::vector<double> point_;
    std::uint32_t home_ = 0;
};

}  // namespace

void bind_remaining(nb::module_& module) {
    nb::class_<RemainingRecords>(module, "Remaining",
                                 "The records not yet in a cell, with exact nearest and farthest searches.\n\n"
                                 "Parameters\n----------\nX : ndarray of shape (n_records, n_dims)\n"
                                 "    All records; it must not change while this object lives.")
        .def(nb::init<Matrix>(), "X"_a)
        .def("__len__", &RemainingRecords::size)
        .def("__contains__", &RemainingRecords::contains, "record"_a)
        .def("centroid", &RemainingRecords::centroid,
             "Return the mean of the remaining records: correctly rounded sums divided by their number; shape "
             "(n_dims,).")
        .def("nearest", &RemainingRecords::nearest, "point"_a, "k"_a,
             "Return the k records nearest to a point, nearest first, ties by index, and their squared distances.")
        .def("farthest", &RemainingRecords::farthest, "point"_a,
             "Return the record farthest from a point; ties go to the lowest index.")
        .def("farthest_from_centroid", &RemainingRecords::farthest_from_centroid,
             "Return the record farthest from the centroid, much faster than `farthest`.")
        .def("gather", &RemainingRecords::gather, "record"_a, "k"_a,
             "Remove a record and its k - 1 nearest, ties by index; return them, the record first.")
        .def("grow", &RemainingRecords::grow, "record"_a, "k"_a,
             "Remove a record and, k - 1 times, the one nearest to the mean of those removed; return them in order.")
        .def("remove", &RemainingRecords::remove, "records"_a, "Remove records; each must still remain.");
}

}  // namespace shoal
