// Calls without the GIL, on threads that may outlive the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <thread>

namespace bitweigh {

// Calls what may wait for the GIL.
//
// Before Python 3.14 a daemon thread that waits for the GIL while the interpreter ends is ended by
// pthread_exit. glibc unwinds the stack for that, and aborts the process at the first function that
// is noexcept, as nanobind's dispatcher is. Whatever unwinds and is no exception of C++ is that: it
// is held here, and the thread sleeps until the process has ended, which is what Python 3.14 does
// itself.
template <class Call>
auto while_python_lives(const Call& call) {
    try {
        return call();
    } catch (const std::exception&) {
        throw;
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// This thread does without the GIL for as long as this lives.
class ReleasedGil {
public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    ~ReleasedGil() {
        while_python_lives([&] { PyEval_RestoreThread(state_); });
    }

    // What `call` returns with the GIL. It throws nothing, and has no destructor to run: a thread
    // that is held in it has lost the GIL by then.
    template <class Call>
    auto with_gil(const Call& call) {
        return while_python_lives([&] {
            PyEval_RestoreThread(state_);
            const auto result = call();
            state_ = PyEval_SaveThread();
            return result;
        });
    }

private:
    PyThreadState* state_;
};

}  // namespace bitweigh
