// The records not yet in a cell, and the queries that MDAV and its kin ask of them, answered exactly.
//
// The outermost records form the rim, where everything is measured; the others the core, where a lattice rules most of
// them out first.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/exact_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/principal_axes.hpp"
#include "numeric/rows.hpp"
#include "numeric/running_sums.hpp"
#include "numeric/selection.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"
#include "search/lattice_screen.hpp"
#include "search/outermost_records.hpp"
#include "search/spatial_order.hpp"

namespace shoal {

class Remaining {
  public:
    Remaining(Rows<const double> X, Pool& pool, const Loops& loops)
        : X_(X),
          scale_(unit_scale(X.flat(), pool)),
          pool_(pool),
          loops_(loops),
          n_dims_(X.dims()),
          size_(X.size()),
          sums_(X.dims()),
          row_(X.dims()),
          centroid_(X.dims()),
          place_(X.size()),
          anchor_(mean_of_all()),
          turn_(X, scale_, anchor_),
          rim_(X.dims()),
          core_(X, scale_, turn_, loops, pool) {
        settle();
    }
    Remaining(const Remaining&) = delete;
    Remaining& operator=(const Remaining&) = delete;

    std::size_t size() const { return size_; }
    double scale() const { return scale_; }
    bool contains(std::uint32_t record) const { return place_[record] != gone; }

    // The centroid, scaled: sums correctly rounded, then divided.
    void centroid(std::span<double> out) {
        settle_sums();
        for (std::size_t j = 0; j < n_dims_; ++j) out[j] = sums_[j] / static_cast<double>(size_);
    }

    // Coordinates of a record, times scale().
    std::span<const double> scaled(std::size_t record, std::span<double> out) const {
        const auto source = X_[record];
        for (std::size_t j = 0; j < n_dims_; ++j) out[j] = source[j] * scale_;
        return out;
    }

    // The block that a record's neighbours are in.
    std::uint32_t home(std::uint32_t record) {
        const std::uint32_t place = place_[record];
        return place & in_rim ? rim_.homes()[place & ~in_rim] : core_.records().block_of(place);
    }

    void remove(std::uint32_t record) {
        leaving_.push_back(record);
        core_.fetch_record(record);
        const std::uint32_t place = place_[record];
        if (place & in_rim)
            rim_.erase(place & ~in_rim);
        else
            core_.records().erase(place);
        place_[record] = gone;
        --size_;
    }

    // The record farthest from the centroid of those that remain.
    std::uint32_t farthest_from_centroid() {
        tidy();
        const double blur = approximate_centroid();
        auto farthest = rim_.farthest(loops_, centroid_, blur);
        if (!is_beyond_core(farthest.distance, blur)) {
            extend_rim();
            farthest = rim_.farthest(loops_, centroid_, blur);
        }
        if (is_clear(farthest, blur) && is_beyond_core(farthest.distance, blur)) return farthest.record;
        centroid(centroid_);
        farthest = rim_.farthest(loops_, centroid_);
        if (is_beyond_core(farthest.distance)) return farthest.record;
        extend_rim();
        return rim_.farthest(loops_, anchor_).record;
    }

    Answer search(const Question& question) {
        Answer answer;
        search({&question, 1}, {&answer, 1});
        return answer;
    }

    // The answers to some questions, found in one pass.
    static constexpr std::size_t most_questions = LatticeScreen::most_questions;
    void search(std::span<const Question> questions, std::span<Answer> answers) {
        const auto measure_rim = [&](std::size_t chunk, std::size_t i, const auto& found) {
            rim_.measure(loops_, questions[i].point, chunk * OutermostRecords::n_at_once, found);
        };
        if (rim_.has_gaps()) close_gaps_of_rim();
        if (core_.records().size() > 0) return core_.search(questions, rim_.n_chunks(), measure_rim, answers);
        for (std::size_t i = 0; i < questions.size(); ++i) answers[i] = search_rim(questions[i]);
    }

    // Number of questions that it pays to ask at once.
    std::size_t n_at_once() const { return core_.records().size() > 0 ? core_.n_at_once() : 1; }

    // About the n records farthest from where the centroid was when the farthest from it was last asked for, the
    // farthest first. Good for guesses only.
    std::span<const Candidate> outermost(std::size_t n) { return rim_.outermost(loops_, centroid_, n); }

    // Closes the gaps that removed records have left, once there are many. Blocks get other numbers.
    void tidy() {
        if (core_.records().size() < core_.records().size_when_laid_out() - core_.records().size_when_laid_out() / 4)
            close_gaps();
    }

    // Says that a record will be asked about soon, or removed.
    void expect(std::uint32_t record) const { __builtin_prefetch(&place_[record]); }
    void expect_removal(std::uint32_t record) const {
        const std::uint32_t place = place_[record];
        if (!(place & in_rim)) core_.records().expect_erasure(place);  // nor gone, which has that bit too
    }

  private:
    static constexpr std::uint32_t gone = 0xffffffff;
    static constexpr std::uint32_t in_rim = 0x80000000;
    // Number of records that are fetched ahead.
    static constexpr std::size_t n_ahead = 8;
    // Number of records laid out at a time.
    static constexpr std::size_t piece_size = 1024;

    // The answer if all records are in the rim.
    Answer search_rim(const Question& question) {
        Nearest nearest(question.k);
        Farthest farthest;
        for (std::size_t chunk = 0; chunk < rim_.n_chunks(); ++chunk)
            rim_.measure(loops_, question.point, chunk * OutermostRecords::n_at_once, [&](const Candidate& candidate) {
                nearest.offer(candidate);
                farthest.offer(candidate);
            });
        return {nearest.sorted(), {{farthest.distance, farthest.record}}};
    }

    std::vector<double> mean_of_all() {
        std::vector<ExactSums> parts(pool_.size(), ExactSums(n_dims_));
        pool_.split(X_.size(), 5.0 * static_cast<double>(n_dims_),
                    [&](std::size_t thread, std::size_t from, std::size_t to) {
                        std::vector<double> row(n_dims_);
                        ExactSums part(n_dims_);  // of its own, since lines of cache hold parts of two threads
                        for (std::size_t i = from; i < to; ++i) part.add(scaled(i, row));
                        parts[thread].add(part);
                    });
        for (const ExactSums& part : parts) sums_.add(part);
        std::vector<double> mean(n_dims_);
        centroid(mean);
        return mean;
    }

    // Takes the records that have left out of the sums.
    void settle_sums() {
        for (const std::uint32_t record : leaving_) sums_.subtract(scaled(record, row_));
        leaving_.clear();
        n_left_ = 0;
        running_sums_.restart(sums_, n_dims_, size_);
    }

    // Writes a point near the centroid into centroid_; returns a bound on the distance between the two.
    double approximate_centroid() {
        for (; n_left_ < leaving_.size(); ++n_left_) running_sums_.subtract(X_[leaving_[n_left_]], scale_);
        for (std::size_t j = 0; j < n_dims_; ++j) centroid_[j] = running_sums_[j] / static_cast<double>(size_);
        const double error = running_sums_.error() / static_cast<double>(size_) + 0x1p-52;
        return error * std::sqrt(static_cast<double>(n_dims_)) * (1 + slack);
    }

    // Whether the farthest of the rim from centroid_ is the farthest of it from any point within `blur` of there.
    static bool is_clear(const OutermostRecords::FarthestTwo& farthest, double blur) {
        const double first = std::sqrt(farthest.distance);
        return first > 1e-140 && first * (1 - slack) > std::sqrt(std::max(farthest.second, 0.0)) + 2 * blur;
    }

    // Whether a record at this squared distance from centroid_ is farther than all of the core from any point within
    // `blur` of there: these are within core_radius_ of the anchor.
    bool is_beyond_core(double distance, double blur = 0) const {
        const double reach = std::sqrt(squared_distance(centroid_, anchor_)) + core_radius_ + 2 * blur;
        return core_.records().size() == 0 || distance > reach * reach * (1 + slack) + vanishing;
    }

    std::size_t rim_target() const { return std::clamp<std::size_t>(size_ / 256, 64, 2048); }

    // Makes the outermost records the rim, and lays out the others in spatial order.
    void settle() {
        const std::size_t width = core_.records().width();
        const auto turned = large_array<float>(size_ * width);
        const auto radius2 = large_array<double>(size_);
        const auto hidden2 = large_array<double>(size_);
        pool_.split(size_, 10.0 * static_cast<double>(n_dims_), [&](std::size_t, std::size_t from, std::size_t to) {
            std::vector<double> row(n_dims_);
            std::vector<double> coordinates(width, 0.0);
            for (std::size_t i = from; i < to; ++i) {
                radius2[i] = squared_distance(scaled(i, row), anchor_);
                hidden2[i] = turn_.apply(row, coordinates);
                std::copy_n(coordinates.begin(), width, &turned[i * width]);
            }
        });
        const SpatialOrder order({turned.get(), size_, width}, block_size, pool_);
        const double limit = rim_radius2({radius2.get(), radius2.get() + size_});

        // Pieces of the order go to the core side by side, so the number of core records before each has to be known.
        const std::size_t n_pieces = (size_ + piece_size - 1) / piece_size;
        const auto in_piece = [&](std::size_t piece, const auto& visit) {
            for (std::size_t i = piece * piece_size; i < std::min((piece + 1) * piece_size, size_); ++i)
                visit(order[i]);
        };
        const double time = 10.0 * piece_size;
        std::vector<std::size_t> begins(n_pieces + 1, 0);
        pool_.split(n_pieces, time, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t piece = from; piece < to; ++piece) {
                std::size_t n_inside = 0;
                in_piece(piece, [&](std::uint32_t record) { n_inside += radius2[record] <= limit; });
                begins[piece + 1] = n_inside;
            }
        });
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        core_.records().make_room(begins.back());

        struct Outer {
            std::uint32_t record, home;
        };
        std::vector<std::vector<Outer>> outer(n_pieces);
        std::vector<double> largest_hidden2(n_pieces, 0.0);
        pool_.split(n_pieces, 2 * time, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t piece = from; piece < to; ++piece) {
                std::size_t place = begins[piece];
                in_piece(piece, [&](std::uint32_t record) {
                    if (radius2[record] > limit)
                        return outer[piece].push_back({record, core_.records().block_of(place)});
                    core_.records().put(place, record, &turned[record * width]);
                    largest_hidden2[piece] = std::max(largest_hidden2[piece], hidden2[record]);
                    place_[record] = static_cast<std::uint32_t>(place++);
                });
            }
        });
        for (const auto& some : outer)
            for (const auto [record, home] : some) {
                place_[record] = static_cast<std::uint32_t>(rim_.n_slots()) | in_rim;
                rim_.insert(record, scaled(record, row_), home);
            }
        core_.lay_out(std::sqrt(*std::ranges::max_element(largest_hidden2)));
    }

    // The squared radius that about rim_target() records exceed; where the outermost all tie, they all do.
    double rim_radius2(std::vector<double> radius2) {
        const auto last = radius2.begin() + static_cast<std::ptrdiff_t>(std::min(rim_target(), size_ - 1));
        select_nth(radius2.begin(), last, radius2.end(), std::greater<>());
        core_radius_ = std::sqrt(*last) * (1 + slack);
        return *std::max_element(radius2.begin(), last + 1) == *last ? std::nextafter(*last, -1.0) : *last;
    }

    void close_gaps() {
        const std::vector<std::uint32_t> begins = core_.close_gaps();
        pool_.split(core_.records().size(), 3.0, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t place = from; place < to; ++place)
                place_[core_.records().record(place)] = static_cast<std::uint32_t>(place);
        });
        for (std::uint32_t& home : rim_.homes())
            home =
                begins.empty() ? 0 : core_.records().block_of(begins[std::min<std::size_t>(home, begins.size() - 1)]);
    }

    void close_gaps_of_rim() {
        rim_.close_gaps();
        for (std::uint32_t slot = 0; slot < rim_.n_slots(); ++slot) place_[rim_.records()[slot]] = slot | in_rim;
    }

    // Moves the records that are now the outermost of the core into the rim, about rim_target() of them.
    void extend_rim() {
        anchor_ = centroid_;
        const double radius2 = outer_radius2();
        const std::vector<std::uint32_t> places = core_.beyond(anchor_, radius2);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (i + n_ahead < places.size()) core_.fetch_record(core_.records().record(places[i + n_ahead]));
            const std::uint32_t place = places[i];
            const std::uint32_t record = core_.records().record(place);
            place_[record] = static_cast<std::uint32_t>(rim_.n_slots()) | in_rim;
            rim_.insert(record, scaled(record, row_), core_.records().block_of(place));
            core_.records().erase(place);
        }
        core_radius_ = std::sqrt(radius2) * (1 + slack);
    }

    // A squared radius around the anchor that about rim_target() core records exceed or meet, and at least one does.
    double outer_radius2() {
        constexpr std::size_t n_samples = 1024;
        std::vector<double> sample;
        for (std::size_t every = std::max<std::size_t>(core_.records().n_places() / n_samples, 1); sample.empty();
             every = 1)
            for (std::size_t place = every / 2; place < core_.records().n_places(); place += every) {
                const std::size_t ahead = place + n_ahead * every;
                if (ahead < core_.records().n_places() && core_.records().holds(ahead))
                    core_.fetch_record(core_.records().record(ahead));
                if (core_.records().holds(place))
                    sample.push_back(core_.measure(core_.records().record(place), anchor_));
            }
        const std::size_t rank = std::min(sample.size() * rim_target() / core_.records().size(), sample.size() - 1);
        const auto ranked = sample.begin() + static_cast<std::ptrdiff_t>(rank);
        select_nth(sample.begin(), ranked, sample.end(), std::greater<>());
        return *ranked;
    }

    Rows<const double> X_;
    double scale_;
    Pool& pool_;
    const Loops& loops_;
    std::size_t n_dims_;
    std::size_t size_;
    ExactSums sums_;
    std::vector<std::uint32_t> leaving_;  // records that are gone, but still in the exact sums
    RunningSums running_sums_;            // without the first n_left_ of these
    std::size_t n_left_ = 0;
    std::vector<double> row_;
    std::vector<double> centroid_;      // when the farthest from it was last asked for
    std::vector<std::uint32_t> place_;  // of each record: in the core, in the rim, or gone
    std::vector<double> anchor_;        // every core record is within core_radius_ of it
    double core_radius_ = 0;
    PrincipalAxes turn_;
    OutermostRecords rim_;
    LatticeScreen core_;
};

}  // namespace shoal
