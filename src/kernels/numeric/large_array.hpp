// Arrays of many megabytes, which the threads that fill them are the first to touch.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace shoal {

struct FreeArray {
    std::align_val_t alignment{1};
    void operator()(void* array) const { ::operator delete(array, alignment); }
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
    void* array = ::operator new((n_bytes / alignment + 1) * alignment, std::align_val_t{alignment});
#if defined(__linux__)
    if (is_large) madvise(array, n_bytes, MADV_HUGEPAGE);
#endif
    return LargeArray<T>(static_cast<T*>(array), FreeArray{std::align_val_t{alignment}});
}

}  // namespace shoal
