// Finds negative cycles in a graph of transfers: cycles of records whose rotation lowers the loss.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shoal {

// A graph in which every node has the same number of ways out, some of them to nowhere (0xffffffff).
struct WaysOut {
    std::size_t n_each;
    std::span<const std::uint32_t> to;  // node after node
    std::span<const double> cost;
};

// Cycles of negative cost, each as the places of its ways, in order. No two meet. There may be others: ways are made
// shorter a few times only (Bellman and Ford), and what then leads back to itself is a cycle.
class NegativeCycles {
  public:
    std::vector<std::vector<std::uint32_t>> find(const WaysOut& ways) {
        const std::size_t n_nodes = ways.to.size() / ways.n_each;
        cheapest_.assign(n_nodes, 0.0);
        reached_by_.assign(n_nodes, none);
        cheaper_.assign(n_nodes, true);
        for (int pass = 0; pass < n_passes && shorten(ways); ++pass) {
        }
        return loops_in_trail(ways);
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr int n_passes = 6;

    // Only ways out of nodes that have become cheaper since they were last considered can make others cheaper.
    bool shorten(const WaysOut& ways) {
        bool any = false;
        for (std::size_t node = 0; node < cheaper_.size(); ++node) {
            if (!std::exchange(cheaper_[node], false)) continue;
            for (std::size_t way = node * ways.n_each; way < (node + 1) * ways.n_each; ++way) {
                const std::uint32_t to = ways.to[way];
                if (to == none) continue;
                const double cost = cheapest_[node] + ways.cost[way];
                if (!(cost < cheapest_[to])) continue;
                cheapest_[to] = cost;
                reached_by_[to] = static_cast<std::uint32_t>(way);
                cheaper_[to] = true;
                any = true;
            }
        }
        return any;
    }

    std::vector<std::vector<std::uint32_t>> loops_in_trail(const WaysOut& ways) {
        std::vector<std::vector<std::uint32_t>> cycles;
        seen_.assign(cheapest_.size(), none);
        for (std::uint32_t start = 0; start < seen_.size(); ++start) {
            std::uint32_t node = start;
            while (seen_[node] == none && reached_by_[node] != none) {
                seen_[node] = start;
                node = from(ways, node);
            }
            if (reached_by_[node] == none || seen_[node] != start) continue;
            std::vector<std::uint32_t>& cycle = cycles.emplace_back();
            for (std::uint32_t at = node; cycle.empty() || at != node; at = from(ways, at))
                cycle.push_back(reached_by_[at]);
        }
        return cycles;
    }
    std::uint32_t from(const WaysOut& ways, std::uint32_t node) const {
        return static_cast<std::uint32_t>(reached_by_[node] / ways.n_each);
    }

    std::vector<double> cheapest_;
    std::vector<std::uint8_t> cheaper_;      // whether a node has become so since its ways were considered
    std::vector<std::uint32_t> reached_by_;  // the way by which each node was reached most cheaply
    std::vector<std::uint32_t> seen_;
};

}  // namespace shoal
