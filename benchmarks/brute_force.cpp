// The baseline for shoal's kernel: MDAV by three tuned brute-force passes a round.
//
// Single precision, in chunks of 256 records held column by column, compiled for the machine it runs on. A pass stores
// every distance and the least and greatest of each chunk; the k nearest are found by a shrinking limit. A removed
// record is overwritten by the last one, so a pass sees only what remains.
// It is a baseline, not part of shoal: ties and near ties are broken by single-precision rounding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t chunk = 256;

class BruteForce {
  public:
    BruteForce(const double* X, std::size_t n, std::size_t n_dims, std::size_t k, std::int64_t* labels)
        : n_(n), n_dims_(n_dims), k_(k), labels_(labels), sums_(n_dims), point_(n_dims), records_(n) {
        const std::size_t n_chunks = (n + chunk - 1) / chunk;
        columns_.resize(n_chunks * chunk * n_dims);
        distances_.resize(n_chunks * chunk);
        least_.resize(n_chunks);
        greatest_.resize(n_chunks);
        std::iota(records_.begin(), records_.end(), std::size_t{0});
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n_dims; ++j) {
                at(i, j) = static_cast<float>(X[i * n_dims + j]);
                sums_[j] += at(i, j);
            }
    }

    void run() {
        while (n_ >= 2 * k_) {
            for (std::size_t j = 0; j < n_dims_; ++j)
                point_[j] = static_cast<float>(sums_[j] / static_cast<double>(n_));
            measure();
            go_to(farthest());
            measure();
            // Q is found before P's cell is removed: it is never in it on data without ties.
            go_to(form_cell(farthest()));
            measure();
            form_cell(0);
        }
        // The few left over do not matter for time: they form a cell or join the last one.
        if (n_ >= k_) ++n_cells_;
        for (std::size_t i = 0; i < n_; ++i) labels_[records_[i]] = n_cells_ - 1;
    }

  private:
    float& at(std::size_t i, std::size_t j) { return columns_[i / chunk * chunk * n_dims_ + j * chunk + i % chunk]; }

    void go_to(std::size_t i) {
        for (std::size_t j = 0; j < n_dims_; ++j) point_[j] = at(i, j);
    }

    // Squared distances from the point to what remains, and the least and greatest of each chunk.
    void measure() {
        for (std::size_t start = 0; start < n_; start += chunk) {
            float sum[chunk] = {};
            for (std::size_t j = 0; j < n_dims_; ++j) {
                const float* __restrict column = columns_.data() + start * n_dims_ + j * chunk;
                const float centre = point_[j];
                for (std::size_t i = 0; i < chunk; ++i) {
                    const float difference = column[i] - centre;
                    sum[i] += difference * difference;
                }
            }
            // The last chunk is padded by its first record, which changes neither its least nor its greatest.
            for (std::size_t i = std::min(chunk, n_ - start); i < chunk; ++i) sum[i] = sum[0];
            float* __restrict distances = distances_.data() + start;
            float least = sum[0];
            float greatest = sum[0];
            for (std::size_t i = 0; i < chunk; ++i) {
                distances[i] = sum[i];
                least = sum[i] < least ? sum[i] : least;
                greatest = sum[i] > greatest ? sum[i] : greatest;
            }
            least_[start / chunk] = least;
            greatest_[start / chunk] = greatest;
        }
    }

    std::size_t farthest() const {
        const auto end = greatest_.begin() + static_cast<std::ptrdiff_t>((n_ + chunk - 1) / chunk);
        const auto best = static_cast<std::size_t>(std::max_element(greatest_.begin(), end) - greatest_.begin());
        std::size_t i = best * chunk;
        while (distances_[i] != greatest_[best]) ++i;
        return i;
    }

    // Removes the k nearest, and returns the new position of the record at a position; 0 if it was one of them.
    std::size_t form_cell(std::size_t watched) {
        nearest_.clear();
        for (std::size_t start = 0; start < n_; start += chunk) {
            if (nearest_.size() == k_ && least_[start / chunk] >= nearest_.front().first) continue;
            for (std::size_t i = start; i < std::min(start + chunk, n_); ++i) {
                if (nearest_.size() == k_) {
                    if (distances_[i] >= nearest_.front().first) continue;
                    std::pop_heap(nearest_.begin(), nearest_.end());
                    nearest_.pop_back();
                }
                nearest_.emplace_back(distances_[i], i);
                std::push_heap(nearest_.begin(), nearest_.end());
            }
        }
        // From the back, so that the last record, which fills the gap, is not one of them.
        std::sort(nearest_.begin(), nearest_.end(), [](auto a, auto b) { return a.second > b.second; });
        for (const auto& [distance, i] : nearest_) {
            if (watched == i)
                watched = 0;
            else if (watched == n_ - 1)
                watched = i;
            remove(i);
        }
        ++n_cells_;
        return watched;
    }

    void remove(std::size_t i) {
        labels_[records_[i]] = n_cells_;
        --n_;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            sums_[j] -= at(i, j);
            at(i, j) = at(n_, j);
        }
        records_[i] = records_[n_];
    }

    std::size_t n_, n_dims_, k_;
    std::int64_t* labels_;
    std::int64_t n_cells_ = 0;
    std::vector<double> sums_;
    std::vector<float> point_, columns_, distances_, least_, greatest_;
    std::vector<std::size_t> records_;
    std::vector<std::pair<float, std::size_t>> nearest_;
};

}  // namespace

extern "C" void brute_force_mdav(const double* X, std::size_t n, std::size_t n_dims, std::size_t k,
                                 std::int64_t* labels) {
    BruteForce(X, n, n_dims, k, labels).run();
}
