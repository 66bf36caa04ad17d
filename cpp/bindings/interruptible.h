// Long calls: without the GIL, and Ctrl-C ends them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "bindings/released_gil.h"
#include "engine/float_mode.h"
#include "engine/parallel.h"

namespace bitweigh {

// Lets Python's signal handlers run a few times a second, at the price of taking the GIL. They only
// ever run on the main thread: elsewhere the GIL is taken once, to find out. For the thread that
// released the GIL. True leaves Python's error set; it throws nothing.
class SignalCheck {
public:
    explicit SignalCheck(ReleasedGil& gil) : gil_(&gil) {}

    bool operator()() {
        if (!on_main_thread_) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(40)) return false;
        last_ = now;
        return gil_->with_gil([&] {
            if (!asked_) {
                const int answer = is_main_thread();
                if (answer < 0) return true;
                on_main_thread_ = answer == 1;
                asked_ = true;
            }
            return on_main_thread_ && PyErr_CheckSignals() != 0;
        });
    }

private:
    // 1 or 0; -1 with Python's error set.
    static int is_main_thread() {
        PyObject* threading = PyImport_ImportModule("threading");
        PyObject* main =
            threading ? PyObject_CallMethod(threading, "main_thread", nullptr) : nullptr;
        PyObject* ident = main ? PyObject_GetAttrString(main, "ident") : nullptr;
        PyObject* own = ident ? PyLong_FromUnsignedLong(PyThread_get_thread_ident()) : nullptr;
        const int same = own ? PyObject_RichCompareBool(ident, own, Py_EQ) : -1;
        for (PyObject* object : {threading, main, ident, own}) Py_XDECREF(object);
        return same;
    }

    ReleasedGil* gil_;
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
        ReleasedGil gil;
        work(SignalCheck(gil));
    } catch (const std::exception&) {
        // Ctrl-C may come while something else fails: it is not lost.
        if (PyErr_Occurred()) throw nanobind::python_error();
        throw;
    }
}

// The same for work(checkpoint) on this thread alone, in the standard floating-point mode; `stop`,
// unless it is null, ends it too.
template <class Work>
void run_checked(Stop* stop, Work work) {
    run_interruptibly([&](const InterruptCheck& interrupted) {
        StandardFloatMode mode;
        const InterruptCheck check = [&] { return mode.outside(interrupted); };
        Stop never;
        Checkpoint checkpoint(stop ? stop->wanted : never.wanted, &check);
        work(checkpoint);
    });
}

}  // namespace bitweigh
