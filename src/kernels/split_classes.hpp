// Classes of records that agree, split by another column.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "keys.hpp"

namespace shoal {

// The classes met so far, by the class that they were split from and the word that their records have.
class SplitClasses {
  public:
    explicit SplitClasses(std::size_t n_records) { classes_.reserve(n_records); }

    static std::uint64_t hash(std::int64_t before, std::int64_t word) {
        return mixed(static_cast<std::uint64_t>(before) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(word));
    }

    // Makes room for some more classes.
    void prepare(std::size_t n_more) {
        if (2 * (classes_.size() + n_more) < places_.size()) return;
        places_.assign(std::max<std::size_t>(4096, 4 * places_.size()), {0, 0});
        for (std::size_t c = 0; c < classes_.size(); ++c)
            *free_place(hash(classes_[c].before, classes_[c].word)) = place_of(c, classes_[c]);
    }

    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&places_[start(hash)]); }

    std::int64_t number(std::uint64_t hash, std::int64_t before, std::int64_t word) {
        const auto tag = static_cast<std::uint32_t>(hash >> 32);
        std::size_t at = start(hash);
        for (; places_[at].number != 0; at = next(at)) {
            if (places_[at].tag != tag) continue;
            const Class& found = classes_[places_[at].number - 1];
            if (found.word == word && found.before == before) return places_[at].number - 1;
        }
        classes_.push_back({before, word});
        places_[at] = {tag, static_cast<std::uint32_t>(classes_.size())};
        return static_cast<std::int64_t>(classes_.size()) - 1;
    }

  private:
    struct Class {
        std::int64_t before, word;
    };
    struct Place {
        std::uint32_t tag, number;  // the number of a class, from 1
    };

    std::size_t start(std::uint64_t hash) const { return hash & (places_.size() - 1); }
    std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
    Place place_of(std::size_t c, const Class& of) const {
        return {static_cast<std::uint32_t>(hash(of.before, of.word) >> 32), static_cast<std::uint32_t>(c) + 1};
    }
    Place* free_place(std::uint64_t hash) {
        std::size_t at = start(hash);
        while (places_[at].number != 0) at = next(at);
        return &places_[at];
    }

    std::vector<Class> classes_;
    std::vector<Place> places_;  // a hash table with open addressing, at most half full
};

// Writes classes of records that agree in their class and in their word, numbered in the order of their first records.
inline void split_classes(std::span<const std::int64_t> classes, std::span<const std::int64_t> words,
                          std::span<std::int64_t> split) {
    constexpr std::size_t n_ahead = 64;  // records whose places are on their way from memory
    std::array<std::uint64_t, n_ahead> hashes;
    SplitClasses found(words.size());
    for (std::size_t begin = 0; begin < words.size(); begin += n_ahead) {
        const std::size_t n = std::min(n_ahead, words.size() - begin);
        found.prepare(n);
        for (std::size_t i = 0; i < n; ++i) {
            hashes[i] = SplitClasses::hash(classes[begin + i], words[begin + i]);
            found.prefetch(hashes[i]);
        }
        for (std::size_t i = 0; i < n; ++i)
            split[begin + i] = found.number(hashes[i], classes[begin + i], words[begin + i]);
    }
}

}  // namespace shoal
