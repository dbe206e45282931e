// What every call of a kernel goes through: the setting it is made in, and the way of Ctrl-C.
#pragma once

#include <nanobind/stl/string.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// A call in the setting of the block around it (`shoal.kernels.using`): the number of threads, the progress callback
// and the instruction set. The poller looks for signals and reports progress; an exception of either ends the work.
class Call {
  public:
    // Reports progress out of a total.
    explicit Call(std::size_t total) : Call(nb::module_::import_("shoal.kernels").attr("setting")(), total, true) {}
    // A part of longer work, which only looks for signals.
    static Call silent() { return Call(nb::module_::import_("shoal.kernels").attr("setting")(), 0, false); }

    // Does the work without the GIL; it is given the threads.
    template <class Work>
    auto run(const Work& work) {
        const nb::gil_scoped_release released;
        Pool pool(n_threads_);
        return work(pool);
    }

    std::size_t n_threads() const { return n_threads_; }
    const Loops& loops() const { return *loops_; }
    Poller& poller() { return poller_; }

  private:
    Call(const nb::object& setting, std::size_t total, bool reports)
        : n_threads_(nb::cast<std::size_t>(setting.attr("threads"))),
          loops_(&loops_called(nb::cast<std::string>(setting.attr("simd")))),
          poller_(poller(reports ? setting.attr("progress") : nb::none(), total)) {}

    static const Loops& loops_called(const std::string& name) {
        const Loops* loops = shoal::loops(name.empty() ? nullptr : name.c_str());
        if (!loops) throw nb::value_error("this machine cannot run the loops asked for");
        return *loops;
    }
    // Holds the GIL only while it asks.
    static Poller poller(nb::object progress, std::size_t total) {
        return Poller([progress = std::move(progress), total](std::size_t done) {
            const nb::gil_scoped_acquire gil;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (!progress.is_none()) progress(done, total);
        });
    }

    std::size_t n_threads_;
    const Loops* loops_;
    Poller poller_;
};

// A search that improves a copy of the labels, in place. Where Ctrl-C ends it, the best so far go with the exception.
template <class Search>
Numbers improved(const Labels& start, const Search& search) {
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    try {
        search(labels);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_KeyboardInterrupt)) throw;
        const nb::object interrupted = nb::module_::import_("shoal.kernels").attr("Interrupted");
        PyErr_SetObject(interrupted.ptr(), interrupted(as_array(std::move(labels))).ptr());
        throw nb::python_error();
    }
    return as_array(std::move(labels));
}

// An object of which one thread at a time makes use; the others wait without the GIL, so that the one can have it.
class OneAtATime {
  protected:
    template <class Work>
    auto alone(const Work& work) const {
        const nb::gil_scoped_release released;
        const std::lock_guard lock(mutex_);
        return work();
    }

  private:
    mutable std::mutex mutex_;
};

}  // namespace shoal
