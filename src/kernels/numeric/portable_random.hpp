// Random numbers and exponentials that are the same on every machine, which those of standard libraries are not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace shoal {

class PortableRandom {
  public:
    explicit PortableRandom(std::uint64_t seed) : random_(seed) {}

    // A whole number from 0 to n - 1.
    std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(((random_() >> 32) * n) >> 32); }
    // From 0 to below 1.
    double share() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
    // Exponentially distributed with mean 1: minus the logarithm of a share m * 2^e, by the series of artanh.
    double waiting_time() {
        int exponent;
        const double m = std::frexp(static_cast<double>((random_() >> 11) + 1) * 0x1.0p-53, &exponent);
        const double z = (1 - m) / (1 + m);
        const double zz = z * z;
        const double series = 1 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz * (1.0 / 7 + zz * (1.0 / 9 + zz / 11))));
        return 2 * z * series - exponent * 0.69314718055994531;
    }

  private:
    std::mt19937_64 random_;
};

// A seed of its own for each block of each round (splitmix64).
inline std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t round, std::uint64_t number) {
    std::uint64_t z = seed + 0x9e3779b97f4a7c15 * ((round << 32) + number + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// e^x for x from -20 to 0.
inline double exponential(double x) {
    const double y = x / 1024;
    double power = 1 + y * (1 + y * (0.5 + y * (1.0 / 6 + y / 24)));
    for (int i = 0; i < 10; ++i) power *= power;
    return power;
}

}  // namespace shoal
