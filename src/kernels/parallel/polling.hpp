// Polls the caller every 50 ms: reports progress, and lets the caller stop the work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace shoal {

class Poller {
  public:
    // `report` is called with the number of records done; an exception that it throws ends the work.
    explicit Poller(std::function<void(std::size_t)> report) : report_(std::move(report)) {}

    void tick(std::size_t done) {
        done_ = done;
        tick();
    }
    // The same if no more records are done than before.
    void tick() {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        report_(done_);
    }

    void finish(std::size_t done) { report_(done); }
    std::size_t done() const { return done_; }

  private:
    std::function<void(std::size_t)> report_;
    std::size_t done_ = 0;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

// The same for the threads of a pool: the first thread polls, and signals the others when the work has ended.
class SharedPoller {
  public:
    // The first thread polls on every `every`-th call, so that polling costs less than a short task.
    explicit SharedPoller(Poller& poller, std::size_t every = 1) : poller_(poller), every_(every) {}

    // Whether a thread is to continue. The exception that ends the work is thrown on the first thread.
    bool goes_on(std::size_t thread) { return thread == 0 ? poll(poller_.done()) : !ended_; }
    bool goes_on(std::size_t thread, std::size_t done) { return thread == 0 ? poll(done) : !ended_; }

  private:
    bool poll(std::size_t done) {
        if (++n_calls_ % every_ != 0) return true;
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
    std::size_t n_calls_ = 0;
    std::atomic<bool> ended_ = false;
};

}  // namespace shoal
