// How many threads pay for rounds of one kind of work: from the work there is, and from what rounds took.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

namespace shoal {

// What a round took. All times are in nanoseconds.
struct Round {
    std::size_t n_items;
    std::size_t n_threads;  // that were called
    std::size_t n_present;  // that came while there was work
    double time;
    std::size_t own_items;  // of the calling thread
    double own_time;
};

// Cores that other programs have taken, by times in nanoseconds of any clock. A core that was lost is left alone for a
// while, and for twice as long if it is lost again soon after it is used, however much later that is: every attempt
// costs a time slice.
class LostCores {
  public:
    // Says whether it is one of several lost at about the same time, or the same one again.
    bool lose(double now) {
        const bool is_back = now >= until_;
        const bool again = is_back ? tried_ >= until_ && now < tried_ + soon : now < last_ + soon;
        if (is_back) pause_ = again ? std::min(2 * pause_, longest_pause) : first_pause;
        until_ = is_back ? now + pause_ : std::max(until_.load(), now + first_pause);
        last_ = now;
        return again;
    }
    bool are_lost(double now) const { return now < until_; }
    // Says that all cores are used.
    void use(double now) {
        if (tried_ < until_) tried_ = now;
    }

    // The threads that are left of some when one has lost its core.
    static std::size_t left_of(std::size_t n_threads) {
        return std::max<std::size_t>(n_threads - std::max<std::size_t>(n_threads / 8, 1), 1);
    }

  private:
    // Some time slices: a core that another program holds is lost again within them. Losses after longer use are those
    // that every shared machine has now and then.
    static constexpr double soon = 20'000'000;
    // Every attempt may cost a time slice of some milliseconds, about a tenth of the first pause. Pauses double, so
    // that a held core soon costs next to nothing; one that is free again is back within the longest.
    static constexpr double first_pause = 50'000'000;
    static constexpr double longest_pause = 1'000'000'000;
    // Several pools may write these at a time; which of them is the last does not matter.
    std::atomic<double> pause_{first_pause};
    std::atomic<double> until_{-longest_pause};
    std::atomic<double> last_{-longest_pause};
    std::atomic<double> tried_{-longest_pause};  // when they were first used since then
};

// One for each kind of round. It knows nothing of clocks and threads, so that a test can simulate both.
//
// The level is the number of threads that rounds may have. A round that was late by about a time slice of the operating
// system has lost a core to another program: that is reported, and if it happens again soon, the level falls. Otherwise
// a few rounds are tried with more or fewer threads now and then, and the level follows if they were faster.
class Pace {
  public:
    explicit Pace(double time_per_item) : time_per_item_(time_per_item) {}

    // Work below this, for each thread, is not worth calling a thread for. Less of it was no worse on idle cores, and
    // was not tried where other programs hold some. Tests set it to 0, to have everything shared.
    static inline std::atomic<double> least_share{8'000.0};

    // A round that is late by more has lost a thread to another program: a time slice is some milliseconds.
    static constexpr double lateness = 300'000;

    double work(std::size_t n_items) const { return static_cast<double>(n_items) * time_per_item_; }

    // Whether a round is long enough for threads to be woken, so that it matters who comes.
    bool is_long(std::size_t n_items, std::size_t n_threads) const {
        return work(n_items) >= time_to_come * static_cast<double>(n_threads);
    }

    std::size_t threads(std::size_t n_items, std::size_t most) {
        // What was measured with another number of threads says nothing; the level remains for when they are back.
        if (std::max<std::size_t>(most, 1) != most_) start(0);
        most_ = std::max<std::size_t>(most, 1);
        if (level_ == 0) level_ = most_;
        by_work_ = std::min(n_items, most_);
        if (const double least = least_share; least > 0) {
            const double shares = std::min(work(n_items) / least, 1e6);
            by_work_ = std::min(by_work_, steady(shares));
        }
        return std::max<std::size_t>(std::min(trial_ > 0 ? trial_ : level_, by_work_), 1);
    }

    // Says whether one of its threads must have lost its core: it was late, or long rounds have had threads in vain.
    // The caller is to leave that core alone for a while. This is enough after a single loss, and where one of two
    // threads is left.
    bool note(const Round& round) {
        const double ideal = work(round.n_items) / static_cast<double>(std::max<std::size_t>(round.n_present, 1));
        const bool late = known_ && round.time > 3 * ideal + lateness;
        learn(round, late ? 1.25 : 4.0);
        since_loss_ += round.time;
        if (by_work_ < 2 || round.time > longest) return false;
        const bool several = round.n_threads > 1;
        const bool in_vain = several && !late && were_in_vain(round);
        const bool lost = several && (late || (in_vain && is_long(round.n_items, round.n_threads)));
        const bool again = lost && std::exchange(since_loss_, 0.0) < soon;
        if (lost && (!again || round.n_threads == 2))
            start(0);
        else if (lost || in_vain)
            fall(round.n_threads);
        else
            compare(round);
        return lost;
    }

  private:
    // Whether the threads of the last rounds were of no use: they took about as long as one would have, or more than a
    // quarter of those called did not come, although there was time to wake them.
    bool were_in_vain(const Round& round) {
        if (is_long(round.n_items, round.n_threads)) {
            n_called_ += round.n_threads - 1;
            n_absent_ += round.n_threads - round.n_present;
        }
        shared_time_ += round.time;
        shared_work_ += 0.9 * work(round.n_items) + time_to_begin;
        if (++n_shared_ < 16) return false;
        const bool in_vain = 4 * n_absent_ > n_called_ || shared_time_ > shared_work_;
        n_shared_ = n_called_ = n_absent_ = 0;
        shared_time_ = shared_work_ = 0;
        return in_vain;
    }

    // With what rounds with more threads or fewer take.
    void compare(const Round& round) {
        // With another number of threads, data move from cache to cache at first.
        if (n_first_ < n_cold) {
            ++n_first_;
            return;
        }
        items_ += static_cast<double>(round.n_items);
        time_ += round.time;
        ++n_rounds_;
        if (!are_enough()) return;
        if (trial_ > 0 && time_ >= pause_ / 16) return judge();
        if (trial_ == 0 && time_ >= pause_) begin_trial();
    }

    // As many threads as there are shares; about as many, if that is the number of the round before: with another
    // number each thread gets another part of the data, which is not in its cache.
    std::size_t steady(double shares) {
        const auto before = static_cast<double>(steady_);
        if (shares < 0.85 * before || shares >= 1.1 * (before + 1)) steady_ = static_cast<std::size_t>(shares);
        return steady_;
    }

    // Longer rounds are too few to learn from, and hold several time slices: being late by one says little.
    static constexpr double longest = 20'000'000;
    // A thread that is asleep is there by then. In shorter rounds it may rightly come too late.
    static constexpr double time_to_come = 30'000;
    // What a round takes beside the work, for threads that spin.
    static constexpr double time_to_begin = 5'000;

    // Until the next trial, which takes about a sixteenth of it. Each that fails doubles the pause, up to two seconds:
    // by then the machine may be another.
    static constexpr double first_pause = 8'000'000;
    static constexpr double longest_pause = 2'000'000'000;
    // Until threads that were given back are tried again, which may cost a time slice each time. The longest is a
    // hundred times what a trial costs at most.
    static constexpr double quiet_pause = 30'000'000;
    static constexpr double longest_quiet_pause = 250'000'000;
    // Rounds after a change that say nothing: each thread gets other data, which have to come into its cache.
    static constexpr std::size_t n_cold = 4;
    // Rounds to judge by: they are not all alike. A few are enough if they took long: with 128 of them always, trials
    // took a large part of a run of 500,000 records.
    static constexpr std::size_t many = 128;
    static constexpr std::size_t few = 8;
    static constexpr double long_enough = 10'000'000;
    // How much faster a trial has to be, so that the level does not follow chance.
    static constexpr double worth_it = 1.05;
    // In which a core is lost again that another program holds: the pauses of `LostCores` begin at a fifth of it.
    static constexpr double soon = 250'000'000;

    // Whether what was measured since the last change can be judged by.
    bool are_enough() const { return n_rounds_ >= many || (n_rounds_ >= few && time_ >= long_enough); }

    // A thread that lost its core for a while has measured that too: one sample counts no more than `most` times.
    void learn(const Round& round, double most) {
        if (round.own_items == 0) return;
        const double sample = round.own_time / static_cast<double>(round.own_items);
        time_per_item_ = known_ ? 0.875 * time_per_item_ + 0.125 * std::min(sample, most * time_per_item_)
                                : std::min(sample, 8 * time_per_item_);
        known_ = true;
    }

    void fall(std::size_t n_threads) {
        pause_ = trial_ > level_ ? std::clamp(2 * pause_, quiet_pause, longest_quiet_pause) : quiet_pause;
        // A trial of more threads is over, and the level remains.
        if (trial_ <= level_) level_ = LostCores::left_of(n_threads);
        upwards_ = true;
        start(0);
    }

    void begin_trial() {
        const std::size_t now = std::min(level_, by_work_);
        const std::size_t step = std::max<std::size_t>(now / 4, 1);
        speed_ = items_ / time_;
        if (now == 1) upwards_ = true;
        if (now == by_work_) upwards_ = false;
        start(upwards_ ? std::min(now + step, by_work_) : now - step);
    }

    void judge() {
        const bool faster = items_ / time_ > speed_ * worth_it;
        if (faster) level_ = trial_;
        if (!faster) upwards_ = !upwards_;
        // Where rounds are long, a trial takes longer than was meant, and the next one can wait for longer too.
        pause_ = faster ? first_pause : std::min(std::max(2 * pause_, 16 * time_), longest_pause);
        start(0);
    }

    void start(std::size_t trial) {
        trial_ = trial;
        items_ = time_ = 0;
        n_first_ = n_rounds_ = 0;
    }

    double time_per_item_;  // of one thread: a guess, until a round was measured
    bool known_ = false;
    std::size_t most_ = 0;
    std::size_t steady_ = 0;   // threads that the work of the last rounds was about enough for
    std::size_t by_work_ = 1;  // threads that the work of the last round was enough for
    std::size_t level_ = 0;
    std::size_t trial_ = 0;  // threads of the trial that is on, or 0
    bool upwards_ = false;   // whether the next trial is of more threads
    double pause_ = first_pause;
    double items_ = 0, time_ = 0;  // since the last change
    std::size_t n_first_ = 0, n_rounds_ = 0;
    std::size_t n_shared_ = 0, n_called_ = 0, n_absent_ = 0;  // in the last rounds of several threads
    double shared_time_ = 0, shared_work_ = 0;
    double since_loss_ = soon;  // time of rounds
    double speed_ = 0;          // of the level, before the trial
};

}  // namespace shoal
