// The records that are screened, in blocks of 64 places, with their turned coordinates beside each other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/large_array.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"

namespace shoal {

class ScreenedRecords {
  public:
    // `width` floats for each record.
    ScreenedRecords(std::size_t width, Pool& pool) : width_(width), pool_(pool) {}

    std::size_t size() const { return size_; }
    std::size_t size_when_laid_out() const { return size_laid_out_; }
    std::size_t width() const { return width_; }
    std::size_t n_blocks() const { return living_.size(); }
    std::size_t n_places() const { return n_blocks() * block_size; }
    static std::uint32_t block_of(std::size_t place) { return static_cast<std::uint32_t>(place / block_size); }
    std::uint32_t record(std::size_t place) const { return records_[place]; }
    const float* turned(std::size_t place) const { return &turned_[place * width_]; }

    // The places of a block whose records are still there, a bit for each.
    std::uint64_t living(std::size_t block) const { return living_[block]; }
    bool holds(std::size_t place) const { return living_[block_of(place)] >> place % block_size & 1; }
    std::uint32_t n_living(std::size_t block) const {
        return static_cast<std::uint32_t>(std::popcount(living_[block]));
    }
    template <class Visit>
    void for_each_living(std::size_t block, const Visit& visit) const {
        for (std::uint64_t left = living_[block]; left; left &= left - 1)
            visit(block * block_size + static_cast<std::size_t>(std::countr_zero(left)));
    }

    // Room for some records in spatial order. Threads put them there with their turned coordinates, the surplus ones
    // zero; then they are all there.
    void make_room(std::size_t n) {
        size_ = n;
        turned_ = large_array<float>(whole_blocks(n) * width_);
        records_ = large_array<std::uint32_t>(whole_blocks(n));
    }
    void put(std::size_t place, std::uint32_t record, const float* turned) {
        records_[place] = record;
        std::copy_n(turned, width_, &turned_[place * width_]);
    }
    void fill() {
        size_laid_out_ = size_;
        living_.assign(whole_blocks(size_) / block_size, ~std::uint64_t{0});
        if (size_ % block_size) living_.back() = (std::uint64_t{1} << size_ % block_size) - 1;
    }

    // Closes the gaps. Returns for each block the place its records now begin at.
    std::vector<std::uint32_t> close_gaps() {
        leaving_.clear();
        std::vector<std::uint32_t> begins(n_blocks(), 0);
        for (std::size_t b = 1; b < n_blocks(); ++b) begins[b] = begins[b - 1] + n_living(b - 1);
        // Both are kept: new ones would have to be mapped by the system page by page.
        if (!records_before_) {
            turned_before_ = large_array<float>(whole_blocks(size_) * width_);
            records_before_ = large_array<std::uint32_t>(whole_blocks(size_));
        }
        turned_before_.swap(turned_);
        records_before_.swap(records_);
        pool_.split(n_blocks(), static_cast<double>(block_size * width_),
                    [&](std::size_t, std::size_t from, std::size_t to) {
                        for (std::size_t b = from; b < to; ++b) {
                            std::size_t target = begins[b];
                            for_each_living(b, [&](std::size_t place) {
                                std::copy_n(&turned_before_[place * width_], width_, &turned_[target * width_]);
                                records_[target++] = records_before_[place];
                            });
                        }
                    });
        fill();
        return begins;
    }

    // The record at the place is no longer there; it is one of those that leave.
    void erase(std::size_t place) {
        living_[block_of(place)] &= ~(std::uint64_t{1} << place % block_size);
        leaving_.push_back(static_cast<std::uint32_t>(place));
        --size_;
    }
    void expect_erasure(std::size_t place) const { __builtin_prefetch(&living_[block_of(place)], 1); }
    // Places of the records that have left since this was last cleared.
    const std::vector<std::uint32_t>& leaving() const { return leaving_; }
    void clear_leaving() { leaving_.clear(); }

    // Says that the turned coordinates of a block, or of a record, will be read soon.
    void fetch_turned_block(std::size_t block) const {
        const float* rows = turned(block * block_size);
        for (std::size_t i = 0; i < block_size * width_; i += 16) __builtin_prefetch(rows + i);
    }
    void fetch_turned(std::size_t place) const {
        for (std::size_t j = 0; j < width_; j += 16) __builtin_prefetch(turned(place) + j);
    }

  private:
    static std::size_t whole_blocks(std::size_t n) { return (n + block_size - 1) / block_size * block_size; }

    std::size_t width_;
    Pool& pool_;
    std::size_t size_ = 0;
    std::size_t size_laid_out_ = 0;
    LargeArray<float> turned_, turned_before_;  // before gaps were closed
    LargeArray<std::uint32_t> records_, records_before_;
    std::vector<std::uint64_t> living_;
    std::vector<std::uint32_t> leaving_;
};

}  // namespace shoal
