// Long calls, which release the GIL and which Ctrl-C ends.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "bindings/released_gil.h"
#include "engine/deadline.h"
#include "engine/float_mode.h"
#include "engine/parallel.h"

namespace bitweigh {

// Returns 1 or 0, or -1 with Python's error set; the caller has the GIL.
inline int is_main_thread() {
    PyObject* threading = PyImport_ImportModule("threading");
    PyObject* main = threading ? PyObject_CallMethod(threading, "main_thread", nullptr) : nullptr;
    PyObject* ident = main ? PyObject_GetAttrString(main, "ident") : nullptr;
    PyObject* current = ident ? PyLong_FromUnsignedLong(PyThread_get_thread_ident()) : nullptr;
    const int same = current ? PyObject_RichCompareBool(ident, current, Py_EQ) : -1;
    for (PyObject* object : {threading, main, ident, current}) Py_XDECREF(object);
    return same;
}

// Runs Python's signal handlers a few times a second, taking the GIL each time; for the thread that
// released it. Handlers run only on the main thread: on another one the GIL is taken once, to find
// that out. Returns true, with Python's error set, if a handler raised; never throws.
class SignalCheck {
public:
    explicit SignalCheck(ReleasedGil& gil) : gil_(&gil) {}
    // For a call with a deadline, which does not wait for the GIL in its last half second: whoever
    // has it may keep it for many milliseconds. Whether this is the main thread is known before.
    SignalCheck(ReleasedGil& gil, const Deadline& deadline, bool on_main_thread)
        : gil_(&gil), deadline_(deadline), on_main_thread_(on_main_thread), thread_known_(true) {}

    bool operator()() {
        if (!on_main_thread_) return false;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_check_ < std::chrono::milliseconds(40)) return false;
        if (deadline_.is_within(std::chrono::milliseconds(500))) return false;
        last_check_ = now;
        return gil_->with_gil([&] {
            if (!thread_known_) {
                const int is_main = is_main_thread();
                if (is_main < 0) return true;
                on_main_thread_ = is_main == 1;
                thread_known_ = true;
            }
            return on_main_thread_ && PyErr_CheckSignals() != 0;
        });
    }

private:
    ReleasedGil* gil_;
    Deadline deadline_;
    bool on_main_thread_ = true;  // Assumed until thread_known_.
    bool thread_known_ = false;   // Whether on_main_thread_ was determined.
    std::chrono::steady_clock::time_point last_check_ = std::chrono::steady_clock::now();
};

// The deadline that a caller gave, if any.
inline Deadline or_none(const Deadline* deadline) {
    return deadline ? *deadline : Deadline();
}

// A flag that ends calls on other threads, where signal handlers do not run.
struct Stop {
    std::atomic<bool> requested = false;
};

// Runs work(check) without the GIL; on Ctrl-C raises what the signal handler raised. If the work
// ends with DeadlinePassed, how late it is counts until here, before the GIL is taken again.
template <class Work>
void run_interruptibly(const Deadline& deadline, Work work) {
    const int on_main_thread = deadline.exists() ? is_main_thread() : 0;
    if (on_main_thread < 0) throw nanobind::python_error();
    try {
        ReleasedGil gil;
        try {
            work(deadline.exists() ? SignalCheck(gil, deadline, on_main_thread == 1)
                                   : SignalCheck(gil));
        } catch (DeadlinePassed& passed) {
            passed.seconds_late = deadline.seconds_late();
            throw;
        }
    } catch (const std::exception&) {
        // An error from Ctrl-C takes precedence over one that occurred at the same time.
        if (PyErr_Occurred()) throw nanobind::python_error();
        throw;
    }
}

// The same for work(checkpoint), on this thread alone and in the standard floating-point mode.
// `stop`, unless it is null, ends it too.
template <class Work>
void run_checked(Stop* stop, const Deadline& deadline, Work work) {
    run_interruptibly(deadline, [&](const InterruptCheck& interrupted) {
        StandardFloatMode mode;
        const InterruptCheck check = [&] { return mode.outside(interrupted); };
        Stop never;
        Checkpoint checkpoint(stop ? stop->requested : never.requested, &check, deadline);
        work(checkpoint);
    });
}
template <class Work>
void run_checked(Stop* stop, Work work) {
    run_checked(stop, Deadline(), work);
}

}  // namespace bitweigh
