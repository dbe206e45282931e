// Arrays of many megabytes, which the threads that fill them are the first to touch.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace shoal {

struct FreeArray {
    void operator()(void* array) const { std::free(array); }
};
template <class T>
using LargeArray = std::unique_ptr<T[], FreeArray>;

// An array whose numbers are not set. Where the system offers pages of two megabytes, it is asked for them: 512 times
// fewer pages have to be brought in, and to be looked up where places are far apart.
template <class T>
LargeArray<T> large_array(std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    constexpr std::size_t page = std::size_t{1} << 21;
    constexpr std::size_t line = 64;
    static_assert(alignof(T) <= line);
    const std::size_t n_bytes = n * sizeof(T);
    const bool is_large = n_bytes >= 2 * page;
    const std::size_t alignment = is_large ? page : line;
    void* array = std::aligned_alloc(alignment, (n_bytes / alignment + 1) * alignment);
    if (!array) throw std::bad_alloc();
#if defined(__linux__)
    if (is_large) madvise(array, n_bytes, MADV_HUGEPAGE);
#endif
    return LargeArray<T>(static_cast<T*>(array));
}

}  // namespace shoal
