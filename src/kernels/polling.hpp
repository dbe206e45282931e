// Looks up from the work now and then: reports progress, and lets the caller stop it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace shoal {

class Watch {
  public:
    // `look` is called with the number of records done; what it throws ends the work.
    explicit Watch(std::function<void(std::size_t)> look) : look_(std::move(look)) {}

    void tick(std::size_t done) {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        look_(done);
    }

    void finish(std::size_t done) { look_(done); }

  private:
    std::function<void(std::size_t)> look_;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

}  // namespace shoal
