// Classes of records that agree in all columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/keys.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// The classes met so far, by the words of their records: one word for each column.
class AgreeingRecords {
  public:
    explicit AgreeingRecords(std::size_t n_words) : n_words_(n_words) {}

    // The hash of a record is made of those of its words, one after the other.
    static std::uint64_t joined(std::uint64_t hash, std::int64_t word) {
        hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
        return hash ^ (hash >> 32);
    }

    // Makes room for some more classes.
    void prepare(std::size_t n_more) {
        if (2 * (hashes_.size() + n_more) < places_.size()) return;
        places_.assign(std::max<std::size_t>(4096, 4 * places_.size()), {0, 0});
        for (std::size_t c = 0; c < hashes_.size(); ++c) {
            std::size_t at = start(hashes_[c]);
            while (places_[at].number != 0) at = next(at);
            places_[at] = {tag_of(hashes_[c]), static_cast<std::uint32_t>(c) + 1};
        }
    }

    void fetch_place(std::uint64_t hash) const { __builtin_prefetch(&places_[start(hash)]); }
    void fetch_words(std::uint64_t hash) const {
        const Place& place = places_[start(hash)];
        if (place.number == 0 || place.tag != tag_of(hash)) return;
        for (std::size_t j = 0; j < n_words_ && j < 32; j += 8) __builtin_prefetch(words_of(place) + j);
    }

    // The class of a record, which is a new one if no record before agrees with it.
    std::int64_t number(std::uint64_t hash, const std::int64_t* words) {
        std::size_t at = start(hash);
        for (; places_[at].number != 0; at = next(at))
            if (places_[at].tag == tag_of(hash) && std::equal(words, words + n_words_, words_of(places_[at])))
                return places_[at].number - 1;
        words_.insert(words_.end(), words, words + n_words_);
        hashes_.push_back(hash);
        places_[at] = {tag_of(hash), static_cast<std::uint32_t>(hashes_.size())};
        return static_cast<std::int64_t>(hashes_.size()) - 1;
    }

  private:
    struct Place {
        std::uint32_t tag, number;  // the number of a class, from 1
    };

    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    std::size_t start(std::uint64_t hash) const { return hash & (places_.size() - 1); }
    std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
    const std::int64_t* words_of(const Place& place) const { return &words_[(place.number - 1) * n_words_]; }

    std::size_t n_words_;
    std::vector<std::int64_t> words_;    // of each class
    std::vector<std::uint64_t> hashes_;  // of each class
    std::vector<Place> places_;          // a hash table with open addressing, at most half full
};

// Writes classes of records that agree in all columns, numbered in the order of their first records.
inline void agreeing_records(std::span<const std::int64_t* const> columns, std::span<std::int64_t> classes,
                             Poller& poller) {
    constexpr std::size_t n_ahead = 64;  // records whose places are on their way from memory
    const std::size_t m = columns.size();
    std::array<std::uint64_t, n_ahead> hashes;
    std::vector<std::int64_t> words(n_ahead * m);
    AgreeingRecords found(m);
    for (std::size_t begin = 0; begin < classes.size(); begin += n_ahead) {
        if (begin % (n_ahead << 10) == 0) poller.tick(begin);
        const std::size_t n = std::min(n_ahead, classes.size() - begin);
        found.prepare(n);
        hashes.fill(0);
        for (std::size_t j = 0; j < m; ++j)
            for (std::size_t i = 0; i < n; ++i) {
                const std::int64_t word = columns[j][begin + i];
                words[i * m + j] = word;
                hashes[i] = AgreeingRecords::joined(hashes[i], word);
            }
        for (std::size_t i = 0; i < n; ++i) {
            hashes[i] = mixed(hashes[i]);
            found.fetch_place(hashes[i]);
        }
        for (std::size_t i = 0; i < n; ++i) found.fetch_words(hashes[i]);
        for (std::size_t i = 0; i < n; ++i) classes[begin + i] = found.number(hashes[i], &words[i * m]);
    }
}

}  // namespace shoal
