// A selection puts the n-th element in its place, and leaves the others in the same order with every C++ library.
#include "numeric/selection.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using Numbers = std::vector<std::uint32_t>;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

Numbers drawn(std::mt19937_64& random, std::size_t n, std::uint32_t n_values) {
    Numbers numbers(n);
    for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(random() % n_values);
    return numbers;
}

// An order in which the median of three is always one of the lowest: all partitions are unequal.
Numbers hard(std::size_t n) {
    Numbers numbers(n);
    for (std::uint32_t i = 0; i < n; ++i)
        numbers[i] = static_cast<std::uint32_t>(i < n / 2 ? i + (i % 2) * n / 2 : 2 * (i - n / 2));
    return numbers;
}

std::uint64_t order_after_selection(Numbers numbers, std::size_t place) {
    Numbers sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    const auto nth = numbers.begin() + static_cast<std::ptrdiff_t>(place);
    shoal::select_nth(numbers.begin(), nth, numbers.end());
    require(*nth == sorted[place], "the n-th element is in its place");
    require(std::all_of(numbers.begin(), nth, [&](std::uint32_t one) { return one <= *nth; }), "lower ones before it");
    require(std::all_of(nth, numbers.end(), [&](std::uint32_t one) { return one >= *nth; }), "the others behind it");
    std::uint64_t hash = 0;
    for (const std::uint32_t number : numbers) hash = (hash ^ number) * 0x100000001b3;
    return hash;
}

}  // namespace

int main() {
    std::mt19937_64 random(1);
    std::uint64_t hash = 0;
    for (std::size_t n = 1; n < 2000; n += 1 + n / 8)
        for (int round = 0; round < 20; ++round) {
            const std::size_t place = random() % n;
            hash = hash * 31 + order_after_selection(drawn(random, n, round % 2 ? 10 : 1u << 31), place);
            hash = hash * 31 + order_after_selection(hard(n), place);
        }
    require(hash == 0xe7acf42f30e9af98, "the order is the one that cells were made with");
}
