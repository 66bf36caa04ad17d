// Ctrl-C in a long call.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

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

}  // namespace bitweigh
