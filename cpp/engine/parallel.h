// Runs tasks on threads, until they are done, the call is interrupted or its deadline has passed.
// Threads are started for a call and joined before it returns: none is left for a fork to lose, and
// two calls never wait for each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/deadline.h"
#include "engine/float_mode.h"
#include "engine/tuning.h"

namespace bitweigh {

// Thrown inside tasks to stop them, and by run_tasks if the call was interrupted.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Called repeatedly during the work, on the calling thread only; returning true ends the work.
using InterruptCheck = std::function<bool()>;

// Where a task reports its progress, and is stopped if the call was interrupted, its deadline has
// passed or another task has failed. Each thread has a Checkpoint, and checks the deadline itself.
class Checkpoint {
public:
    Checkpoint(std::atomic<bool>& stop, const InterruptCheck* check, const Deadline& deadline = {})
        : stop_(stop),
          check_(check),
          deadline_(deadline),
          check_bytes_(deadline.exists() ? deadline_check_bytes : interrupt_check_bytes) {}

    // Reports work that takes as long as scanning this many bytes of codes.
    void done(std::size_t bytes) {
        unchecked_bytes_ += bytes;
        if (unchecked_bytes_ >= check_bytes_) check();
    }

    // Checks now.
    void check() {
        unchecked_bytes_ = 0;
        if (deadline_.has_passed()) throw DeadlinePassed(deadline_);
        if (check_ && (*check_)()) stop_ = true;
        if (stop_) throw Interrupted();
    }

    // Whether all work must be reported in steps well below a millisecond.
    bool has_deadline() const { return deadline_.exists(); }

private:
    std::atomic<bool>& stop_;      // Flag shared by all tasks of a call; true stops them.
    const InterruptCheck* check_;  // Null on threads other than the caller's.
    const Deadline deadline_;
    const std::size_t check_bytes_;    // Bytes reported between two checks.
    std::size_t unchecked_bytes_ = 0;  // Bytes reported since the last check.
};

// Runs task(0..n-1, checkpoint) on at most `threads` threads, this one included, each in the
// standard floating-point mode. The first exception of a task stops the others and is thrown here.
template <class Task>
void run_tasks(std::size_t n, std::size_t threads, const InterruptCheck& interrupted,
               const Deadline& deadline, Task task) {
    StandardFloatMode mode;  // inherited by the threads started below
    const InterruptCheck check = [&] { return mode.outside(interrupted); };
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr failure;
    std::size_t running = 0;

    auto work = [&](const InterruptCheck* thread_check) {
        try {
            Checkpoint checkpoint(stop, thread_check, deadline);
            for (std::size_t i; !stop && (i = next++) < n;) {
                if (deadline.exists()) checkpoint.check();
                task(i, checkpoint);
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            // Only now: a task that sees it throws Interrupted, which must not be the first
            // failure.
            stop = true;
        }
    };

    std::vector<std::thread> helpers;
    try {
        for (std::size_t i = 1; i < std::min(threads, n); ++i) {
            {
                const std::lock_guard lock(mutex);
                ++running;
            }
            helpers.emplace_back([&] {
                work(nullptr);
                const std::lock_guard lock(mutex);
                --running;
                finished.notify_one();
            });
        }
    } catch (...) {
        // No further thread could be started: the running ones, and this one, do the work.
        const std::lock_guard lock(mutex);
        --running;
    }
    work(&check);
    {
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(20), [&] { return !running; })) {
            lock.unlock();
            if (!stop && check()) {
                stop = true;
                lock.lock();
                if (!failure) failure = std::make_exception_ptr(Interrupted());
                continue;
            }
            lock.lock();
        }
    }
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}
// The same without a deadline.
template <class Task>
void run_tasks(std::size_t n, std::size_t threads, const InterruptCheck& interrupted, Task task) {
    run_tasks(n, threads, interrupted, Deadline(), task);
}

}  // namespace bitweigh
