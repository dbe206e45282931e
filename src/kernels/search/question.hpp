// What is asked of the records that remain, how a question's point lies to the lattice, and which records then matter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/simd.hpp"

namespace shoal {

// The k records nearest to a scaled point, and the farthest one if it is wanted. `home` is a block to start at.
struct Question {
    std::span<const double> point;
    std::size_t k = 0;
    bool wants_farthest = false;
    std::uint32_t home = 0;
};

struct Answer {
    std::vector<Candidate> nearest;  // nearest first
    // The farthest one and, if they were found beside it, those that follow; the farthest first, and none left out.
    std::vector<Candidate> farthest;
};

// A question, and how its point lies to the lattice. All threads read it.
struct Query {
    Question asked;

    // The point in the coordinates of the lattice. All lengths are in steps.
    std::vector<double> turned;
    std::vector<std::int8_t> code;
    double norm = 0;        // |code|^2
    double offset = 0;      // what coding records as 128 + c adds to every score
    double outside2 = 0;    // squared distance from the point to the cube of the lattice
    double hidden2 = 0;     // the most that coordinates left out can add to a squared distance
    double near_error = 0;  // rounding errors of a record and of the point's projection onto the cube
    double far_error = 0;   // rounding errors of a record and of the point itself

    // The point in turned coordinates, not in steps, as a float like the records; how much distances between the two
    // are wrong by rounding, and how much coordinates left out can add to a squared one.
    std::vector<float> rotated;
    double estimate_error = 0;
    double left_out2 = 0;
};

// Which records matter, by what is known of the k nearest and of the farthest.
struct Limits {
    double nearest2 = 0;  // squared distances, as in CommonLimits
    double farthest2 = 0;
    double most = 0;        // the estimate of a record that may be among the nearest is no larger
    double least = 0;       // the estimate of a record that may be the farthest is no smaller
    double near_limit = 0;  // in steps: a record that may be among the nearest is no farther than this
    double far_limit = 0;   // a record that may be the farthest is no nearer than this
    Sieve sieve{};
};

}  // namespace shoal
