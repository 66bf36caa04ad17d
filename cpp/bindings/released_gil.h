// Releases the GIL, on threads that may outlive the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <thread>

namespace bitweigh {

// Calls a function that may wait for the GIL.
//
// Before Python 3.14 a daemon thread that waits for the GIL while the interpreter ends is ended by
// pthread_exit. glibc unwinds the stack for that, and aborts the process at the first function that
// is noexcept, as nanobind's dispatcher is. Anything that unwinds and is not a std::exception is
// that: it is caught here, and the thread sleeps until the process has ended, as Python 3.14 itself
// makes it do.
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

// Releases the GIL on this thread; the destructor takes it again.
class ReleasedGil {
public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    ~ReleasedGil() {
        while_python_lives([&] { PyEval_RestoreThread(state_); });
    }

    // Calls `call` with the GIL and returns its result. `call` must not throw, and must not rely on
    // destructors: a thread that is stopped in it no longer has the GIL.
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
