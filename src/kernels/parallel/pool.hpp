// A few threads for work of some microseconds: they spin for a moment before they sleep, and nobody waits for a thread
// that has not begun.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/pace.hpp"

namespace shoal {

// The calling thread, which is number 0, opens a round, works in it as the others do, and closes it when no piece is
// left. A thread that comes late finds the round closed; one that is inside is waited for.
class Pool {
  public:
    // Called with a thread's number and a piece of the work, from and to; several times for each thread.
    using Task = std::function<void(std::size_t, std::size_t, std::size_t)>;

    // Threads are started when there is work for them. Where the system has no more, fewer do it.
    explicit Pool(std::size_t n_threads)
        : size_(std::clamp<std::size_t>(n_threads, 1, most_threads)),
          n_available_(size_),
          n_left_(LostCores::left_of(size_)),
          seats_(size_) {}
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        stopping_.store(true);
        for (std::size_t t = 1; t < n_started_; ++t) call(seats_[t]);
        for (std::size_t t = 1; t < n_started_; ++t) seats_[t].thread.join();
    }

    // Thread numbers are below this.
    std::size_t size() const { return size_; }

    // Whether a round may have more than one thread now.
    bool can_share() { return size_ > 1 && most_at(now()) > 1; }

    // Calls the task with pieces that together are 0..n, on as many threads as pay. Each thread begins with a share of
    // its own, always the same part of 0..n, then takes pieces of others. `backwards` takes the last pieces first.
    void split(std::size_t n, Pace& pace, const Task& task, bool backwards = false) {
        split({n, true, backwards}, pace, task);
    }

    // The same for items that take about so many nanoseconds each. It is for single rounds, which threads have to be
    // woken for.
    void split(std::size_t n, double time_per_item, const Task& task) {
        const bool is_short = time_per_item * static_cast<double>(n) < worth_waking && Pace::least_share > 0;
        if (is_short && n > 0) return task(0, 0, n);
        Pace pace(time_per_item);
        split({n, false, false}, pace, task);
    }

    // Calls task(thread, item) for each item of 0..n, one by one: items are begun in this order. For unequal work. The
    // calling thread calls `poll` while others finish theirs: items that take long can be stopped then too.
    void each(std::size_t n, double time_per_item, const std::function<void(std::size_t, std::size_t)>& task,
              const std::function<void()>& poll = {}) {
        std::atomic<std::size_t> next{0};
        std::atomic<std::size_t> n_left{n};
        const std::size_t n_shares = std::min(n, size_);
        if (n == 0) return;
        struct Leaving {  // also by an exception
            std::atomic<std::size_t>& n_left;
            ~Leaving() { n_left.fetch_sub(1, std::memory_order_relaxed); }
        };
        Pace pace(time_per_item * static_cast<double>(n) / static_cast<double>(n_shares));
        const Task take_items = [&](std::size_t thread, std::size_t, std::size_t) {
            for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
                const Leaving leaving{n_left};
                task(thread, item);
            }
            if (thread > 0 || !poll) return;
            while (!spin_until([&] { return n_left.load(std::memory_order_relaxed) == 0; })) {
                poll();
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        };
        split({n_shares, false, false, false}, pace, take_items);
    }

    // For threads of a round that need what another one is about to finish: spins, then sleeps.
    template <class Condition>
    static void wait_until(const Condition& condition) {
        while (!spin_until(condition)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }

  private:
    using Time = std::chrono::steady_clock::time_point;
    // How long threads look for work before they sleep: longer than what the calling thread does between two passes of
    // MDAV, so that they are there for the next, and about as long as it takes to wake one, so that no more is wasted
    // than by sleeping.
    static constexpr double spin_time = 100'000;
    // Work of a single round, all threads together, that threads are woken for: twice what it may take to wake them.
    static constexpr double worth_waking = 200'000;
    // Work of all rounds together that threads are started for: starting one takes time, and where another program
    // holds its core, a time slice; calls with small problems have ended before.
    static constexpr double worth_starting = 2'000'000;
    // Pieces are not shorter, unless shares are: taking one costs about half a microsecond where others take too.
    static constexpr double least_piece = 1'000;
    // What the numbers of rounds and threads that share 64 bits allow; more cores than machines have.
    static constexpr std::size_t most_threads = 1024;
    // Pieces of a share: enough for threads to end together, and few enough to be taken in a moment.
    static constexpr double most_of_a_share = 16;

    // What is shared: so many pieces for each thread.
    struct Shares {
        std::size_t n = 0, n_threads = 1, n_pieces = 1;
        bool halving = false;  // a piece is half of what is left of a share, or else all are of about equal size
        bool backwards = false;
        const Task* task = nullptr;
        std::uint64_t number = 0;  // of the round
        std::uint64_t ended = 0;   // number of shares that have ended when this round has no piece left
    };

    // What belongs to a thread, apart from what others write often.
    struct alignas(128) Seat {
        std::atomic<bool> inside{false};  // a round
        std::size_t n_done = 0;           // items in this round
        std::uint64_t round = 0;          // the last one it was inside
        std::size_t n_first = 0;          // items of its first piece in this round
        Time after_first;                 // when these were done
        // The piece of its share to be taken next, and the round: one of another round is the first piece of this one.
        // So nobody has to write here when a round is opened.
        alignas(128) std::atomic<std::uint64_t> next{0};
        alignas(128) std::atomic<bool> asleep{false};
        bool called = false;
        std::mutex mutex;
        std::condition_variable wake;
        std::thread thread;
    };

    static Time now() { return std::chrono::steady_clock::now(); }
    static double since(Time begin) { return std::chrono::duration<double, std::nano>(now() - begin).count(); }

    struct Order {
        std::size_t n;
        bool halving, backwards;
        bool ends_together = true;  // all threads at about the same time; not where items are long
    };
    void split(const Order& order, Pace& pace, const Task& task) {
        const std::size_t n = order.n;
        if (size_ == 1) {  // nothing to decide, and clocks take as long as a short round
            if (n > 0) task(0, 0, n);
            return;
        }
        const Time begin = now();
        const std::size_t n_threads = started(pace.threads(n, most_at(begin)), pace.work(n));
        if (n_threads > n_left_ && pace.is_long(n, n_threads)) lost_cores().use(in_nanoseconds(begin));
        if (n_threads == 1) {
            if (n > 0) task(0, 0, n);
            const double time = since(begin);
            pace.note({n, 1, 1, time, n, time});
            return;
        }
        const double share = pace.work(n) / static_cast<double>(n_threads);
        const std::size_t most_pieces = std::max<std::size_t>(n / n_threads, 1);
        const std::size_t n_pieces = std::clamp<std::size_t>(
            static_cast<std::size_t>(std::min(share / least_piece, most_of_a_share)), 1, most_pieces);
        const auto n_halvings = static_cast<std::size_t>(std::bit_width(n_pieces));
        share_out({n, n_threads, order.halving ? n_halvings : n_pieces, order.halving, order.backwards, &task});
        close_round(pace, begin, order.ends_together);
    }

    // A thread inside a round has lost its core to another program: for a while all rounds have fewer threads, those of
    // other pools of this process too.
    void lose_core() {
        const bool again = lost_cores().lose(in_nanoseconds(now()));
        n_left_ = LostCores::left_of(again ? n_left_ : n_available_);
    }

    // How many threads a round may have. Where tests have everything shared, as many as there are.
    std::size_t most_at(Time time) {
        if (Pace::least_share == 0) return n_available_;
        if (lost_cores().are_lost(in_nanoseconds(time))) return std::min(n_left_, n_available_);
        n_left_ = LostCores::left_of(n_available_);
        return n_available_;
    }

    static LostCores& lost_cores() {
        static LostCores lost;
        return lost;
    }
    static double in_nanoseconds(Time time) {
        return std::chrono::duration<double, std::nano>(time.time_since_epoch()).count();
    }

    // Starts threads up to a number for a round of so much work; returns how many there are, if the system has no more.
    // Where the work of all rounds is little, none is: starting one takes time, and where another program holds its
    // core, a time slice.
    std::size_t started(std::size_t n_wanted, double work) {
        if (n_started_ == 1 && n_wanted > 1 && (unshared_ += work) < worth_starting && Pace::least_share > 0) return 1;
        try {
            for (; n_started_ < n_wanted; ++n_started_)
                seats_[n_started_].thread = std::thread([this, t = n_started_] { serve(t); });
        } catch (const std::system_error&) {
            n_available_ = n_started_;
        }
        return std::min(n_wanted, n_available_);
    }

    void share_out(const Shares& shares) {
        shares_ = shares;
        shares_.number = ++n_rounds_;
        shares_.ended = n_ended_.load(std::memory_order_relaxed) + shares.n_threads;
        open_.store(n_rounds_ * most_threads * 2 + shares.n_threads);
        for (std::size_t t = 1; t < shares.n_threads; ++t)
            if (seats_[t].asleep.load()) call(seats_[t]);
    }

    // Works until no piece is left, then waits for those that are inside, and rethrows what they have thrown.
    void close_round(Pace& pace, Time begin, bool ends_together) {
        const std::uint64_t round = open_.load(std::memory_order_relaxed);
        work(0);
        // With its first piece a thread also prepares for the round, which does not become less with more threads.
        const std::size_t own_items = seats_[0].n_done - seats_[0].n_first;
        const double own_time = since(seats_[0].after_first);
        const double until_own_end = since(begin);
        open_.store(0);
        wait_for_all();
        const bool waited = ends_together && since(begin) > 2 * until_own_end + Pace::lateness;
        std::size_t n_present = 1;
        for (std::size_t t = 1; t < shares_.n_threads; ++t)
            n_present += seats_[t].round == round && seats_[t].n_done > 0;
        const bool late = pace.note({shares_.n, shares_.n_threads, n_present, since(begin), own_items, own_time});
        if (waited || late) lose_core();
        if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
    }

    void wait_for_all() {
        const auto all_out = [this] {
            return std::none_of(seats_.begin() + 1, seats_.begin() + static_cast<std::ptrdiff_t>(n_started_),
                                [](const Seat& seat) { return seat.inside.load(); });
        };
        if (spin_until(all_out)) return;
        std::unique_lock lock(mutex_);
        waiting_.store(true);
        all_out_.wait(lock, all_out);
        waiting_.store(false);
    }

    void serve(std::size_t t) {
        Seat& seat = seats_[t];
        for (std::uint64_t seen = 0; (seen = next_round(t, seen)) != 0;) {
            seat.inside.store(true);
            // The caller closes the round before it looks who is inside: one of the two sees the other.
            if (open_.load() == seen) {
                seat.round = seen;
                work(t);
            }
            seat.inside.store(false);
            if (waiting_.load()) {
                const std::lock_guard lock(mutex_);
                all_out_.notify_one();
            }
        }
    }

    // Waits for an open round that has a share for this thread; 0 at the end.
    std::uint64_t next_round(std::size_t t, std::uint64_t seen) {
        std::uint64_t round = 0;
        const auto is_open = [&] {
            round = open_.load(std::memory_order_acquire);
            return (round != seen && t < round % (2 * most_threads)) || stopping_.load(std::memory_order_relaxed);
        };
        Seat& seat = seats_[t];
        while (!spin_until(is_open)) {
            std::unique_lock lock(seat.mutex);
            seat.asleep.store(true);
            if (!is_open()) seat.wake.wait(lock, [&] { return seat.called; });
            seat.asleep.store(false);
            seat.called = false;
        }
        return stopping_.load() ? 0 : round;
    }

    static void call(Seat& seat) {
        const std::lock_guard lock(seat.mutex);
        seat.called = true;
        seat.asleep.store(false);
        seat.wake.notify_one();
    }

    // Pieces of the own share, then of the others', as long as any is left: the seats of the others are lines that
    // other cores hold.
    void work(std::size_t t) {
        const std::size_t n_threads = shares_.n_threads;
        const auto any_left = [&] { return n_ended_.load(std::memory_order_relaxed) != shares_.ended; };
        seats_[t].n_done = seats_[t].n_first = 0;
        try {
            take_pieces(t, t);
            for (std::size_t i = 1; i < n_threads && any_left(); ++i) take_pieces((t + i) % n_threads, t);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
        }
    }

    void take_pieces(std::size_t owner, std::size_t t) {
        const std::size_t first = shares_.n * owner / shares_.n_threads;
        const std::size_t n = shares_.n * (owner + 1) / shares_.n_threads - first;
        for (std::size_t piece; (piece = take_piece(owner)) < shares_.n_pieces;) {
            const std::size_t begin = part_before(piece, n);
            const std::size_t end = part_before(piece + 1, n);
            const std::size_t from = first + (shares_.backwards ? n - end : begin);
            const std::size_t to = first + (shares_.backwards ? n - begin : end);
            seats_[t].n_done += to - from;
            if (from < to) (*shares_.task)(t, from, to);
            if (t == 0 && seats_[t].n_first == 0) {
                seats_[t].n_first = to - from;
                seats_[t].after_first = now();
            }
        }
    }

    // Number of items of a share of n before a piece.
    std::size_t part_before(std::size_t piece, std::size_t n) const {
        if (piece == shares_.n_pieces) return n;
        return shares_.halving ? n - (n >> piece) : n * piece / shares_.n_pieces;
    }

    // The next piece of a share, or n_pieces if none is left.
    std::size_t take_piece(std::size_t owner) {
        constexpr std::uint64_t most_pieces = 1 << 16;
        std::atomic<std::uint64_t>& next = seats_[owner].next;
        std::uint64_t seen = next.load(std::memory_order_relaxed);
        std::uint64_t piece = 0;
        do {
            piece = seen / most_pieces == shares_.number ? seen % most_pieces : 0;
            if (piece == shares_.n_pieces) return piece;
        } while (
            !next.compare_exchange_weak(seen, shares_.number * most_pieces + piece + 1, std::memory_order_relaxed));
        if (piece + 1 == shares_.n_pieces) n_ended_.fetch_add(1, std::memory_order_relaxed);
        return piece;
    }

    // Says whether it came true before the time was over. Time, not turns: a pause takes 10 to 140 cycles.
    template <class Condition>
    static bool spin_until(const Condition& condition) {
        for (const Time begin = now(); since(begin) < spin_time;)
            for (int turn = 0; turn < 32; ++turn) {
                if (condition()) return true;
                pause();
            }
        return condition();
    }

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    std::size_t size_;
    std::size_t n_available_;    // of them, once the system has refused to start one
    std::size_t n_started_ = 1;  // the calling thread is there
    double unshared_ = 0;        // work that threads would have shared, before they were started
    std::size_t n_left_;         // threads of a round while cores are lost
    std::vector<Seat> seats_;
    Shares shares_;
    std::uint64_t n_rounds_ = 0;
    alignas(128) std::atomic<std::uint64_t> open_{0};     // the round that is open and its threads, or 0
    alignas(128) std::atomic<std::uint64_t> n_ended_{0};  // shares without a piece left, in all rounds
    alignas(128) std::atomic<bool> waiting_{false};       // the caller sleeps until all are out
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable all_out_;
    std::exception_ptr failure_;
};

}  // namespace shoal
