// Selection: the n-th of some elements in its place, lower ones before it and the others behind.
//
// The order that is left among those before and behind differs between the C++ libraries. Some kernels read it: they
// take a sample of a half, or add up floats. So the steps are fixed here, and cells are the same with every library.
// They are Hoare's partitions around the median of three, and after too many of these a heap, as in libstdc++.
#pragma once

#include <bit>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

namespace shoal {

template <class Iterator, class Less>
class Selection {
  public:
    Selection(Iterator first, Iterator last, const Less& less) : first_(first), last_(last), less_(less) {}

    void put(Iterator nth) {
        if (first_ == last_ || nth == last_) return;
        const auto size = static_cast<std::size_t>(last_ - first_);
        // Partitions are about equal, unless the order of the elements is made to prevent it.
        for (int n_left = 2 * (std::bit_width(size) - 1); last_ - first_ > 3; --n_left) {
            if (n_left == 0) return put_by_heap(nth);
            const Iterator cut = partition();
            (cut <= nth ? first_ : last_) = cut;
        }
        sort_by_insertion();
    }

  private:
    using Offset = typename std::iterator_traits<Iterator>::difference_type;
    using Value = typename std::iterator_traits<Iterator>::value_type;

    bool is_less(Iterator a, Iterator b) const { return less_(*a, *b); }

    // Where the second part begins: none of it is less than one of the first part.
    Iterator partition() const {
        std::iter_swap(first_, median(first_ + 1, first_ + (last_ - first_) / 2, last_ - 1));
        Iterator low = first_ + 1;
        for (Iterator high = last_;; ++low) {
            while (is_less(low, first_)) ++low;
            do --high;
            while (is_less(first_, high));
            if (!(low < high)) return low;
            std::iter_swap(low, high);
        }
    }
    Iterator median(Iterator a, Iterator b, Iterator c) const {
        if (is_less(a, b)) return is_less(b, c) ? b : is_less(a, c) ? c : a;
        return is_less(a, c) ? a : is_less(b, c) ? c : b;
    }

    void sort_by_insertion() const {
        for (Iterator next = first_ + 1; next < last_; ++next)
            for (Iterator i = next; i > first_ && is_less(i, i - 1); --i) std::iter_swap(i, i - 1);
    }

    // The lowest ones form a heap that the n-th is on top of.
    void put_by_heap(Iterator nth) const {
        const Offset size = nth + 1 - first_;
        for (Offset top = size / 2; top-- > 0;) sink(top, size, std::move(first_[top]));
        for (Iterator i = nth + 1; i < last_; ++i)
            if (is_less(i, first_)) {
                Value value = std::move(*i);
                *i = std::move(*first_);
                sink(0, size, std::move(value));
            }
        std::iter_swap(first_, nth);
    }
    // Puts a value in its place below `top`: larger children rise all the way, then the value does.
    void sink(Offset top, Offset size, Value value) const {
        Offset hole = top;
        while (2 * hole + 1 < size) {
            Offset child = 2 * hole + 2;
            if (child == size || is_less(first_ + child, first_ + (child - 1))) --child;
            first_[hole] = std::move(first_[child]);
            hole = child;
        }
        for (; hole > top && less_(first_[(hole - 1) / 2], value); hole = (hole - 1) / 2)
            first_[hole] = std::move(first_[(hole - 1) / 2]);
        first_[hole] = std::move(value);
    }

    Iterator first_, last_;
    const Less& less_;
};

// Instead of std::nth_element, with its meaning.
template <class Iterator, class Less = std::less<>>
void select_nth(Iterator first, Iterator nth, Iterator last, const Less& less = {}) {
    Selection<Iterator, Less>(first, last, less).put(nth);
}

}  // namespace shoal
