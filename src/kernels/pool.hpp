// A few threads that wait for work of some microseconds: they spin for a moment before they sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shoal {

class Pool {
  public:
    explicit Pool(std::size_t n_threads) {
        for (std::size_t t = 1; t < n_threads; ++t) workers_.emplace_back([this, t] { serve(t); });
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        publish([this] { stopping_ = true; });
        for (auto& worker : workers_) worker.join();
    }

    std::size_t size() const { return workers_.size() + 1; }

    // Calls task(thread, from, to) on each thread with its share of 0..n and waits for all of them.
    void split(std::size_t n, const std::function<void(std::size_t, std::size_t, std::size_t)>& task) {
        const std::size_t n_threads = size();
        const auto share = [&](std::size_t t) { task(t, n * t / n_threads, n * (t + 1) / n_threads); };
        if (n_threads == 1) return share(0);
        busy_.store(workers_.size(), std::memory_order_relaxed);
        publish([&] { task_ = share; });
        guarded(share, 0);
        for (int turn = 0; busy_.load(std::memory_order_acquire) != 0;)
            if (++turn > n_spins) std::this_thread::yield();
        task_ = nullptr;
        if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
    }

  private:
    // About 50 microseconds: longer than the serial part of a round, shorter than anybody would notice.
    static constexpr int n_spins = 20000;

    template <class Change>
    void publish(const Change& change) {
        {
            const std::lock_guard lock(mutex_);
            change();
            generation_.fetch_add(1, std::memory_order_release);
        }
        if (!workers_.empty()) wake_.notify_all();
    }

    void serve(std::size_t thread) {
        for (std::size_t seen = 0;;) {
            for (int turn = 0; turn < n_spins && generation_.load(std::memory_order_acquire) == seen; ++turn) pause();
            if (generation_.load(std::memory_order_acquire) == seen) {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
            }
            seen = generation_.load(std::memory_order_acquire);
            if (stopping_) return;
            guarded(task_, thread);
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    template <class Task>
    void guarded(const Task& task, std::size_t thread) {
        try {
            task(thread);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
        }
    }

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<std::size_t> generation_{0};
    std::atomic<std::size_t> busy_{0};
    std::function<void(std::size_t)> task_;
    std::exception_ptr failure_;
    bool stopping_ = false;
};

}  // namespace shoal
