// Temporary: where the time goes.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
namespace shoal {
inline double cpu_now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
inline double wall_now() {
#ifdef PHASE_CPU
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
#endif
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline bool phases_on() {
    static const bool on = std::getenv("SHOAL_PHASES") != nullptr;
    return on;
}
// Prints the wall time and the CPU time per wall time of a scope.
struct Phase {
    const char* name;
    bool on;
    double wall = wall_now(), cpu = cpu_now();
    Phase(const char* n, bool o = true) : name(n), on(o && phases_on()) {}
    ~Phase() {
        if (!on) return;
        const double w = wall_now() - wall;
        std::fprintf(stderr, "    phase %-28s %8.2f ms  %5.1f cores\n", name, w * 1e3, (cpu_now() - cpu) / w);
    }
};
inline int& variant() {
    static int value = 0;
    return value;
}
inline void take_variant() {
    const char* text = std::getenv("SHOAL_VARIANT");
    variant() = text ? std::atoi(text) : 0;
}
struct PoolStats {
    std::size_t rounds[65], changes, last, wakes, own_items, all_items;
};
inline PoolStats pool_stats{};
// Sums for rounds that are too short to print.
enum {
    at_start,
    at_pose,
    at_limit,
    at_split,
    at_own,
    at_wait,
    at_gather,
    at_remove,
    at_sums,
    at_centroid,
    at_rim,
    at_extend,
    n_extend,
    n_all,
    at_tidy,
    at_last
};
inline thread_local double phase_sums[at_last] = {};
inline void count_phase(int which, double since) {
    phase_sums[which] += wall_now() - since;
}
}  // namespace shoal
