// What is known of records that will probably start a cell soon.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "search/lattice_screen.hpp"
#include "search/remaining.hpp"

namespace shoal {

// Answers that were found ahead, and how many it pays to ask for: fewer if too many of them are never needed, as with
// equal records, which leave together. All of this changes the time and never the result.
class NextStarts {
  public:
    NextStarts(const Remaining& remaining, std::size_t k) : remaining_(remaining), k_(k) {}

    // Number of questions to ask in one pass.
    std::size_t n_at_once() const { return std::min(most_, remaining_.n_at_once()); }

    // The answer about a record, if it is known and enough of the nearest it names are still there. Null otherwise.
    const Answer* find(std::uint32_t record, bool with_farthest) const {
        const auto found = find_entry(record, with_farthest);
        return found == entries_.end() ? nullptr : &found->answer;
    }

    // The same for a record that starts a cell now. What is known of records that have left is forgotten.
    std::optional<Answer> take(std::uint32_t record, bool with_farthest) {
        const std::size_t n_before = entries_.size();
        std::erase_if(entries_, [&](const Entry& entry) { return !remaining_.contains(entry.record); });
        n_in_vain_ += n_before - entries_.size();
        n_done_ += n_before - entries_.size();
        const auto found = find_entry(record, with_farthest);
        std::optional<Answer> answer;
        if (found != entries_.end()) {
            answer = std::move(entries_[static_cast<std::size_t>(found - entries_.begin())].answer);
            entries_.erase(found);
            ++n_done_;
        }
        judge();
        return answer;
    }

    void keep(std::uint32_t record, bool with_farthest, Answer answer) {
        entries_.push_back({record, with_farthest, std::move(answer)});
    }

  private:
    struct Entry {
        std::uint32_t record;
        bool with_farthest;
        Answer answer;
    };
    // Answers to judge by, and cells after which one more question is tried again.
    static constexpr std::size_t n_judged = 32;
    static constexpr std::size_t n_cells_alone = 1024;

    std::vector<Entry>::const_iterator find_entry(std::uint32_t record, bool with_farthest) const {
        const auto is_there = [&](const Candidate& other) {
            return other.record != record && remaining_.contains(other.record);
        };
        return std::ranges::find_if(entries_, [&](const Entry& entry) {
            return entry.record == record && entry.with_farthest >= with_farthest &&
                   std::ranges::count_if(entry.answer.nearest, is_there) >= static_cast<std::ptrdiff_t>(k_ - 1);
        });
    }

    void judge() {
        if (most_ == 1 && ++n_alone_ == n_cells_alone) {
            most_ = 2;
            n_alone_ = 0;
        }
        if (n_done_ < n_judged) return;
        if (4 * n_in_vain_ > n_done_) most_ = std::max<std::size_t>(most_ / 2, 1);
        if (8 * n_in_vain_ < n_done_) most_ = std::min(2 * most_, Remaining::most_questions);
        n_done_ = n_in_vain_ = 0;
    }

    const Remaining& remaining_;
    std::size_t k_;
    std::vector<Entry> entries_;
    std::size_t most_ = Remaining::most_questions;
    std::size_t n_done_ = 0;  // answers that were needed or forgotten since the last judgement
    std::size_t n_in_vain_ = 0;
    std::size_t n_alone_ = 0;  // cells for which nothing was asked ahead
};

}  // namespace shoal
