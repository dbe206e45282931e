// Looks up from the work now and then: reports progress, and lets the caller stop it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace shoal {

class Poller {
  public:
    // `look` is called with the number of records done; what it throws ends the work.
    explicit Poller(std::function<void(std::size_t)> look) : look_(std::move(look)) {}

    void tick(std::size_t done) {
        done_ = done;
        tick();
    }
    // The same where no more records are done than before.
    void tick() {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        look_(done_);
    }

    void finish(std::size_t done) { look_(done); }
    std::size_t done() const { return done_; }

  private:
    std::function<void(std::size_t)> look_;
    std::size_t done_ = 0;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

// The same for the threads of a pool: the first one asks the poller, the others learn from it that the work has ended.
class SharedPoller {
  public:
    // The first thread asks every so many times, so that a short task costs more than the question.
    explicit SharedPoller(Poller& poller, std::size_t every = 1) : poller_(poller), every_(every) {}

    // Says whether a thread is to go on. What ends the work is thrown on the first one.
    bool goes_on(std::size_t thread) { return thread == 0 ? ask(poller_.done()) : !ended_; }
    bool goes_on(std::size_t thread, std::size_t done) { return thread == 0 ? ask(done) : !ended_; }

  private:
    bool ask(std::size_t done) {
        if (++n_asked_ % every_ != 0) return true;
        try {
            poller_.tick(done);
        } catch (...) {
            ended_ = true;
            throw;
        }
        return true;
    }

    Poller& poller_;
    std::size_t every_;
    std::size_t n_asked_ = 0;
    std::atomic<bool> ended_ = false;
};

}  // namespace shoal
