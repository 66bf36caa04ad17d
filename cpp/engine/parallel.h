// Tasks on threads. Threads are started for a call and joined before it returns: nothing is left
// behind that a fork could lose, and two calls never wait for each other.
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

#include "engine/float_mode.h"
#include "engine/tuning.h"

namespace bitweigh {

// Thrown out of a task, and out of run_tasks, once the caller's interrupt function said so.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Asked now and then, on the calling thread only; true ends the work.
using InterruptCheck = std::function<bool()>;

// A task tells how much it has done; it is stopped here when the call was interrupted or another
// task has failed.
class Checkpoint {
public:
    Checkpoint(std::atomic<bool>& stop, const InterruptCheck* check) : stop_(stop), check_(check) {}

    void done(std::size_t bytes) {
        since_ += bytes;
        if (since_ < interrupt_check_bytes) return;
        since_ = 0;
        if (check_ && (*check_)()) stop_ = true;
        if (stop_) throw Interrupted();
    }

private:
    std::atomic<bool>& stop_;
    const InterruptCheck* check_;  // null on threads other than the caller's
    std::size_t since_ = 0;
};

// Runs task(0..n-1, checkpoint) on at most `threads` threads, this one included, each in the
// standard floating-point mode. The first exception of a task stops the others and is thrown here.
template <class Task>
void run_tasks(std::size_t n, std::size_t threads, const InterruptCheck& interrupted, Task task) {
    StandardFloatMode mode;  // which threads inherit from the one that starts them
    const InterruptCheck check = [&] { return mode.outside(interrupted); };
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr failure;
    std::size_t running = 0;

    auto work = [&](const InterruptCheck* own_check) {
        try {
            Checkpoint checkpoint(stop, own_check);
            for (std::size_t i; !stop && (i = next++) < n;) task(i, checkpoint);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            stop =
                true;  // only now: a task that sees it throws Interrupted, which must not be first
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
        // No more threads to be had: those that started, and this one, do the work.
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

}  // namespace bitweigh
