// Ctrl-C in a long call.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace bitweigh {

// Lets Python's signal handlers run a few times a second, at the price of taking the GIL. They only
// ever run on the main thread: elsewhere there is nothing to ask for.
class SignalCheck {
public:
    explicit SignalCheck(bool on_main_thread) : on_main_thread_(on_main_thread) {}

    bool operator()() {
        if (!on_main_thread_) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(40)) return false;
        last_ = now;
        const nanobind::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    }

private:
    bool on_main_thread_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace bitweigh
