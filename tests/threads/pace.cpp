// How many threads a round has: from its work and from what rounds took, on simulated machines.
#include "parallel/pace.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace {

using namespace shoal;

constexpr double microsecond = 1'000;
constexpr double millisecond = 1'000'000;
constexpr double second = 1'000'000'000;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

// What a round takes, by its number of threads and the time that has passed.
using Machine = std::function<double(std::size_t, double)>;

double idle(std::size_t n_threads, double) {
    return 200 * microsecond / static_cast<double>(n_threads) + microsecond;
}

// Runs rounds for some simulated seconds; returns the mean number of threads in the later half of them. Cores that are
// lost are left alone for a while, as in a pool.
double threads_after(double seconds, const Machine& machine, std::size_t most = 16) {
    constexpr std::size_t n_items = 1'000;
    Pace pace(200.0);
    LostCores cores;
    std::size_t left = most;
    std::vector<std::size_t> used;
    for (double passed = 0; passed < seconds * second;) {
        const std::size_t n_threads = pace.threads(n_items, cores.are_lost(passed) ? left : most);
        if (n_threads == most) cores.use(passed);
        const double time = machine(n_threads, passed);
        passed += time;
        used.push_back(n_threads);
        // The calling thread keeps its core.
        const double own_time = std::min(time, idle(n_threads, passed));
        if (pace.note({n_items, n_threads, n_threads, time, n_items / n_threads, own_time}))
            left = LostCores::left_of(cores.lose(passed) ? left : most);
    }
    double sum = 0;
    for (std::size_t i = used.size() / 2; i < used.size(); ++i) sum += static_cast<double>(used[i]);
    return sum / static_cast<double>(used.size() - used.size() / 2);
}

void check_threads_come_from_the_work() {
    const auto threads = [](double work) { return Pace(work / 1'000).threads(1'000, 16); };
    require(threads(1) == 1 && threads(15 * microsecond) == 1, "little work has one thread");
    require(threads(17 * microsecond) == 2, "a thread is called for eight microseconds");
    require(threads(100 * microsecond) == 12 && threads(1e9) == 16, "more work has more threads");
    Pace pace(15.0);
    require(pace.threads(1'000, 16) == 1, "the work is guessed at first");
    pace.note({1'000, 1, 1, 80 * microsecond, 1'000, 80 * microsecond});
    require(pace.threads(1'000, 16) == 10, "what the caller took for its items counts from then on");
}

// With another number, each thread gets another part of the data.
void check_the_number_stays_while_the_work_changes_little() {
    Pace pace(100.0);
    std::mt19937_64 random(0);
    std::vector<std::size_t> used;
    for (int i = 0; i < 300; ++i) {
        const double time = (94 + static_cast<double>(random() % 20)) * microsecond;
        const std::size_t n = pace.threads(1'000, 16);
        const auto own = static_cast<double>(1'000 / n);
        pace.note({1'000, n, n, time / static_cast<double>(n), 1'000 / n, time * own / 1'000});
        used.push_back(n);
    }
    require(std::all_of(used.begin(), used.begin() + 64, [&](std::size_t n) { return n == used[0]; }),
            "the number of threads stays while the work changes little");
    require(pace.threads(2'000, 16) == 16, "twice the work has more threads");
    require(pace.threads(500, 16) < used[0], "half of the work has fewer");
}

// Of two threads, one is left anyway while the core that was lost is left alone.
void check_a_time_slice_lost(std::size_t most, int n_between, std::size_t left) {
    Pace pace(200.0);
    const auto is_lost = [&](double time) {
        const std::size_t n = pace.threads(1'000, most);
        return pace.note({1'000, n, n, time, 1'000 / n, 200 * microsecond / static_cast<double>(n)});
    };
    for (const int n_rounds : {1, n_between}) {
        for (int i = 0; i < n_rounds; ++i) require(!is_lost(100 * microsecond), "a round in time has lost no core");
        require(pace.threads(1'000, most) == most, "all threads are there before the loss");
        require(is_lost(4 * millisecond), "a time slice lost is reported");
    }
    require(pace.threads(1'000, most) == left, "a core lost again soon gives threads back");
}

void check_threads_in_vain() {
    {
        Pace pace(200.0);
        for (std::size_t i = 0; i < 32; ++i) {
            const bool lost = pace.threads(1'000, 4) == 4 && pace.note({1'000, 4, 4 - 3 * (i % 2), 75e3, 250, 50e3});
            require(lost == (i % 16 == 15), "threads that often do not come are reported after 16 rounds");
        }
        require(pace.threads(1'000, 4) == 3, "threads that often do not come are given back");
    }
    {
        Pace pace(200.0);
        for (int i = 0; i < 16; ++i) {
            require(pace.threads(150, 2) == 2, "a second thread is tried");
            require(!pace.note({150, 2, 2, 60e3, 75, 15e3}), "other kinds of rounds need not share this");
        }
        require(pace.threads(150, 2) == 1, "threads without which short rounds would be faster are given back");
    }
    for (const auto& [every, n_items] : {std::pair<std::size_t, std::size_t>{8, 1'000}, {2, 250}}) {
        Pace pace(200.0);
        for (std::size_t i = 0; i < 100; ++i) {
            require(pace.threads(n_items, 2) == 2, "threads that seldom miss a round, or only short ones, stay");
            const double time = 100.0 * static_cast<double>(n_items);
            pace.note({n_items, 2, i % every == 0 ? std::size_t{1} : 2, time, n_items / 2, time});
        }
    }
}

void check_machines_that_others_use() {
    require(threads_after(1, idle) > 15, "on an idle machine nearly all rounds have all threads");
    const Machine one_of_two_held = [](std::size_t n, double) { return n == 1 ? 200 * microsecond : 4 * millisecond; };
    require(threads_after(1, one_of_two_held, 2) < 1.01, "where one of two cores is held, one thread is left");
    const double half = threads_after(1, [](std::size_t n, double t) { return n <= 8 ? idle(n, t) : 4 * millisecond; });
    require(7 < half && half < 8.1, "where others hold half of the cores, about half of the threads are left");
    const double fewer = threads_after(2, [](std::size_t n, double) {
        return 200 * microsecond / static_cast<double>(n) + 5 * microsecond * std::max(static_cast<double>(n) - 6, 0.0);
    });
    require(4 <= fewer && fewer <= 9, "threads that make rounds slower are given back");
    const Machine busy_at_first = [](std::size_t n, double t) {
        return t < 0.2 * second && n > 1 ? 4 * millisecond : idle(n, t);
    };
    require(threads_after(20, busy_at_first, 2) > 1.9, "threads come back when the machine is idle again");
}

// The number of rounds of two threads in five simulated seconds, as a share of those of an idle machine.
double share_of_long_rounds(const std::function<double(std::size_t, std::size_t)>& machine) {
    Pace pace(4'000.0);
    std::size_t n_rounds = 0;
    for (double passed = 0; passed < 5 * second; ++n_rounds) {
        const std::size_t n = pace.threads(1'000, 2);
        const double time = machine(n, n_rounds);
        pace.note({1'000, n, n, time, 1'000 / n, std::min(time, 4 * millisecond / static_cast<double>(n))});
        passed += time;
    }
    return static_cast<double>(n_rounds) / (5 / 0.002);
}

void check_long_rounds() {
    const auto ideal = [](std::size_t n, std::size_t) { return 4 * millisecond / static_cast<double>(n); };
    require(share_of_long_rounds(ideal) > 0.95, "long rounds are seldom tried with fewer threads");
    const auto late_now_and_then = [&](std::size_t n, std::size_t number) {
        return n > 1 && number % 500 == 499 ? 12 * millisecond : ideal(n, number);
    };
    require(share_of_long_rounds(late_now_and_then) > 0.9, "threads come back soon where rounds are long");
}

void check_a_level_outlasts_a_time_with_fewer_threads() {
    Pace pace(200.0);
    for (int i = 0; i < 400; ++i) {
        const std::size_t n = pace.threads(1'000, 16);
        pace.note({1'000, n, n, idle(n, 0), 1'000 / n, idle(n, 0)});
    }
    require(pace.threads(1'000, 2) == 2, "no more threads than there are");
    pace.note({1'000, 2, 2, idle(2, 0), 500, idle(2, 0)});
    require(pace.threads(1'000, 16) == 16, "a level outlasts a time with fewer threads");
}

// When a core is lost in ten simulated seconds, in milliseconds, if it is used whenever it is not lost.
std::vector<double> losses(const std::function<bool(double)>& attempt_fails) {
    LostCores cores;
    std::vector<double> times;
    for (double now = 0; now < 10'000; now += 4) {
        if (cores.are_lost(now * millisecond)) continue;
        cores.use(now * millisecond);
        if (!attempt_fails(now)) continue;
        cores.lose(now * millisecond);
        times.push_back(now);
    }
    return times;
}

void check_lost_cores() {
    const std::vector<double> always = losses([](double) { return true; });
    for (std::size_t i = 1; i < always.size(); ++i) {
        const double gap = always[i] - always[i - 1];
        require(50 <= gap && gap <= 1'010, "a core that is lost whenever it is used is tried again within a second");
        if (1 < i && i < 5) require(gap > 1.9 * (always[i - 1] - always[i - 2]), "it is tried less and less often");
    }
    const std::vector<double> seldom = losses([](double now) { return static_cast<int>(now) % 400 == 0; });
    for (std::size_t i = 1; i < seldom.size(); ++i)
        require(seldom[i] - seldom[i - 1] == 400, "a core is used again soon where it is lost now and then");
    {
        // Short calls far apart, each of which would lose the core after some milliseconds.
        LostCores cores;
        int n_lost = 0;
        for (double start = 0; start < 10'000; start += 120)
            if (!cores.are_lost(start * millisecond)) {
                cores.use(start * millisecond);
                cores.lose((start + 4) * millisecond);
                ++n_lost;
            }
        require(n_lost <= 15, "time in which nobody uses a core says nothing about it");
    }
    LostCores cores;
    const auto again = [&](double now) { return cores.lose(now * millisecond); };
    require(!again(0) && again(4) && again(8), "cores lost at the same time are told from single ones");
    require(!again(45) && !again(2'000), "cores lost one by one are single ones");
    require(LostCores::left_of(1) == 1 && LostCores::left_of(2) == 1, "one thread is always left");
    require(LostCores::left_of(8) == 7 && LostCores::left_of(16) == 14, "a lost core takes one thread in eight");
}

}  // namespace

int main() {
    check_threads_come_from_the_work();
    check_the_number_stays_while_the_work_changes_little();
    check_a_time_slice_lost(16, 100, 14);
    check_a_time_slice_lost(16, 3'000, 16);
    check_a_time_slice_lost(2, 100, 2);
    check_threads_in_vain();
    check_machines_that_others_use();
    check_long_rounds();
    check_a_level_outlasts_a_time_with_fewer_threads();
    check_lost_cores();
}
