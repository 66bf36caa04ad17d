// Long calls: without the GIL, and Ctrl-C ends them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "engine/parallel.h"

namespace bitweigh {

// Lets Python's signal handlers run a few times a second, at the price of taking the GIL. They only
// ever run on the main thread: elsewhere the GIL is taken once, to find out.
class SignalCheck {
public:
    bool operator()() {
        if (!on_main_thread_) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(40)) return false;
        last_ = now;
        const nanobind::gil_scoped_acquire gil;
        if (!asked_) {
            const nanobind::module_ threading = nanobind::module_::import_("threading");
            on_main_thread_ = threading.attr("main_thread")().attr("ident").equal(
                threading.attr("get_ident")());
            asked_ = true;
            if (!on_main_thread_) return false;
        }
        return PyErr_CheckSignals() != 0;
    }

private:
    bool on_main_thread_ = true;  // as far as is known
    bool asked_ = false;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// A sign for calls on other threads to end, where the handlers do not run.
struct Stop {
    std::atomic<bool> wanted = false;
};

// Runs work(check) without the GIL; Ctrl-C raises what its handler raises.
template <class Work>
void run_interruptibly(Work work) {
    try {
        const nanobind::gil_scoped_release release;
        work(SignalCheck());
    } catch (const Interrupted&) {
        if (PyErr_Occurred()) throw nanobind::python_error();
        throw std::runtime_error("interrupted");
    }
}

// The same for work(checkpoint) on this thread alone, which `stop`, unless it is null, ends too.
template <class Work>
void run_checked(Stop* stop, Work work) {
    run_interruptibly([&](const InterruptCheck& check) {
        Stop never;
        Checkpoint checkpoint(stop ? stop->wanted : never.wanted, &check);
        work(checkpoint);
    });
}

}  // namespace bitweigh
