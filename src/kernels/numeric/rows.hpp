// Non-owning views on arrays.
#pragma once

#include <cstddef>
#include <span>

namespace shoal {

// A matrix of n_rows records, one after the other, seen row by row.
template <class T>
class Rows {
  public:
    Rows(T* data, std::size_t n_rows, std::size_t n_dims) : data_(data), n_rows_(n_rows), n_dims_(n_dims) {}

    std::size_t size() const { return n_rows_; }
    std::size_t dims() const { return n_dims_; }
    std::span<T> operator[](std::size_t row) const { return {data_ + row * n_dims_, n_dims_}; }
    std::span<T> flat() const { return {data_, n_rows_ * n_dims_}; }

  private:
    T* data_;
    std::size_t n_rows_;
    std::size_t n_dims_;
};

}  // namespace shoal
