// The models that every cell must satisfy, as Python hands them to a search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "guarded/model_vetoes.hpp"
#include "partition/cells.hpp"

namespace shoal {

// Guarantees with the codes they are about, one after another.
class Guarantees {
  public:
    Guarantees() = default;

    void ordered_closeness(const Labels& codes, const Labels& counts, std::int64_t over, std::int64_t under) {
        check_counted(codes, counts);
        add(codes, std::make_unique<OrderedCloseness>(span(counts), fraction(over, under)));
    }
    void nominal_closeness(const Labels& codes, const Labels& counts, std::int64_t over, std::int64_t under) {
        check_counted(codes, counts);
        add(codes, std::make_unique<NominalCloseness>(span(counts), fraction(over, under)));
    }
    void distinct(const Labels& codes, std::int64_t l) {
        add(codes, std::make_unique<DistinctDiversity>(at_least_1(l)));
    }
    void entropy(const Labels& codes, std::int64_t l) { add(codes, std::make_unique<EntropyDiversity>(at_least_1(l))); }
    void recursive(const Labels& codes, std::int64_t l, std::int64_t over, std::int64_t under) {
        add(codes, std::make_unique<RecursiveDiversity>(at_least_1(l), fraction(over, under)));
    }
    void delta(const Labels& codes, const Labels& counts, double low, double high) {
        check_counted(codes, counts);
        check(low >= 0 && low <= high, "the bounds of delta-disclosure are no interval");
        add(codes, std::make_unique<DeltaDisclosure>(span(counts), low, high));
    }

    // The largest share of each value, as fractions.
    void share_limits(const Labels& codes, const Labels& over, const Labels& under) {
        check_length(under.shape(0), over.shape(0));
        check_numbers(span(codes), over.shape(0));
        std::vector<Fraction> limits;
        for (std::size_t i = 0; i < over.shape(0); ++i) limits.push_back(fraction(span(over)[i], span(under)[i]));
        add(codes, std::make_unique<ShareLimits>(std::move(limits)));
    }

    // Of the guarantee added last: the records of a person with the same value count once.
    void persons_once(const Labels& pairs, const Labels& values) {
        check(!guarded_.empty(), "there is no guarantee to count persons for");
        Guarded& last = guarded_.back();
        check_length(pairs.shape(0), last.codes.size());
        check_numbers(span(pairs), values.shape(0));
        check_numbers(span(values), last.codes.empty() ? 0 : std::size_t{std::ranges::max(last.codes)} + 1);
        check(std::ranges::is_sorted(span(values)), "pairs are not numbered in the order of their values");
        last.codes.assign(span(pairs).begin(), span(pairs).end());
        last.guarantee = std::make_shared<PersonsOnce>(last.guarantee, span(values));
    }

    // The same about some of the records, without what the table was counted for.
    Guarantees part(const Labels& records) const {
        Guarantees part;
        for (const Guarded& each : guarded_) {
            check_numbers(span(records), each.codes.size());
            std::vector<Code> codes;
            for (const std::int64_t i : span(records)) codes.push_back(each.codes[static_cast<std::size_t>(i)]);
            part.guarded_.push_back({std::move(codes), each.guarantee});
        }
        return part;
    }
    // Only the guarantee at one place.
    Guarantees one(std::size_t place) const {
        Guarantees one;
        one.guarded_.push_back(guarded_.at(place));
        return one;
    }

    // A copy, so that a guarantee added by another thread does not disturb a search among so many records.
    std::vector<Guarded> about(std::size_t n_records) const {
        std::vector<Guarded> all = guarded_;
        for (const Guarded& each : all) check_length(each.codes.size(), n_records);
        return all;
    }

    // The total excess of each cell over all models.
    Vector excess(const Labels& labels, std::size_t n_cells) const {
        check_numbers(span(labels), n_cells);
        const std::vector<Guarded> all = about(labels.shape(0));
        std::vector<double> out(n_cells, 0.0);
        Call::silent().run([&](Pool& pool) {
            const Members members(span(labels), n_cells, pool);
            const double time = 50.0 * static_cast<double>(labels.shape(0)) / static_cast<double>(n_cells + 1);
            pool.split(n_cells, time, [&](std::size_t, std::size_t from, std::size_t to) {
                std::vector<Code> codes;
                for (const Guarded& guarded : all)
                    for (std::size_t c = from; c < to; ++c) {
                        codes.clear();
                        for (const std::size_t i : members[c]) codes.push_back(guarded.codes[i]);
                        std::ranges::sort(codes);
                        out[c] += guarded.guarantee->excess(codes);
                    }
            });
        });
        return as_array(std::move(out));
    }

  private:
    // The codes number the values that were counted; the counts are of the whole table.
    static void check_counted(const Labels& codes, const Labels& counts) {
        check_numbers(span(codes), counts.shape(0));
        check_numbers(span(counts), most_records + 1);
    }
    static Fraction fraction(std::int64_t over, std::int64_t under) {
        check(over >= 0 && under > 0, "a bound is no fraction of whole numbers");
        return {over, under};
    }
    static std::int64_t at_least_1(std::int64_t l) {
        check(l >= 1, "l is below 1");
        return l;
    }

    void add(const Labels& codes, std::unique_ptr<const Guarantee> guarantee) {
        check_numbers(span(codes), most_records);
        guarded_.push_back({{span(codes).begin(), span(codes).end()}, std::move(guarantee)});
    }

    std::vector<Guarded> guarded_;
};

}  // namespace shoal
