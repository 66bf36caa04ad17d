// Tests run_tasks: every task runs once, and failures, interrupts and deadlines reach the caller.
#include <atomic>
#include <cfenv>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/parallel.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

const InterruptCheck never = [] { return false; };

void test_each_runs_once(std::size_t n, std::size_t threads) {
    std::vector<std::atomic<int>> runs(n);
    run_tasks(n, threads, never, [&](std::size_t i, Checkpoint& checkpoint) {
        ++runs.at(i);
        checkpoint.done(interrupt_check_bytes);
    });
    bool once = true;
    for (const std::atomic<int>& count : runs) once &= count == 1;
    CHECK(once, n << " tasks, " << threads << " threads");
}

void test_failure_arrives(std::size_t n, std::size_t threads, std::size_t failing) {
    std::atomic<std::size_t> runs = 0;
    std::string arrived = "nothing";
    try {
        run_tasks(n, threads, never, [&](std::size_t i, Checkpoint& checkpoint) {
            ++runs;
            if (i == failing) throw std::runtime_error("task " + std::to_string(i));
            // The others go on until they are stopped: otherwise this would never end.
            if (threads > 1 && i < threads) {
                while (true) checkpoint.done(interrupt_check_bytes);
            }
        });
    } catch (const std::runtime_error& error) {
        arrived = error.what();
    }
    CHECK(arrived == "task " + std::to_string(failing), arrived);
    // At least the tasks before the failing one began, and no more than those under way after it.
    CHECK(runs > failing && runs <= failing + threads, runs << " of " << n << " tasks ran");
}

void test_interrupt_stops_the_caller(std::size_t threads) {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> asked_elsewhere = 0;
    std::atomic<int> n_checks = 0;
    std::atomic<std::size_t> runs = 0;
    bool interrupted = false;
    const InterruptCheck third_time = [&] {
        asked_elsewhere += std::this_thread::get_id() != caller;
        return ++n_checks >= 3;
    };
    try {
        run_tasks(1000000, threads, third_time, [&](std::size_t, Checkpoint& checkpoint) {
            ++runs;
            checkpoint.done(interrupt_check_bytes / 2);
            std::this_thread::sleep_for(std::chrono::microseconds(10));
        });
    } catch (const Interrupted&) {
        interrupted = true;
    }
    CHECK(interrupted, threads << " threads, " << runs << " tasks ran");
    CHECK(runs < 1000000, threads << " threads");
    CHECK(n_checks == 3, n_checks << " checks");
    CHECK(asked_elsewhere == 0, asked_elsewhere << " times on another thread");
    // Half the bytes of a check each: the caller's second, fourth and sixth task check.
    if (threads == 1) CHECK(runs == 6, runs << " tasks ran");
}

// A caller with nothing left to do checks while it waits for another thread.
void test_interrupt_while_waiting() {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> other_began = false;
    std::atomic<bool> caller_ended = false;
    bool interrupted = false;
    const InterruptCheck check = [&] { return caller_ended.load(); };
    try {
        run_tasks(2, 2, check, [&](std::size_t, Checkpoint& checkpoint) {
            if (std::this_thread::get_id() == caller) {
                while (!other_began) std::this_thread::yield();
                caller_ended = true;
                return;
            }
            other_began = true;
            while (true) checkpoint.done(interrupt_check_bytes);
        });
    } catch (const Interrupted&) {
        interrupted = true;
    }
    CHECK(interrupted, "");
}

// The deadline ends tasks on every thread, also those that the interrupt check does not reach.
void test_deadline_stops_every_thread(std::size_t threads) {
    std::atomic<std::size_t> runs = 0;
    bool passed = false;
    try {
        run_tasks(2 * threads, threads, never, Deadline(0.02),
                  [&](std::size_t, Checkpoint& checkpoint) {
                      ++runs;
                      while (true) checkpoint.done(deadline_check_bytes);
                  });
    } catch (const DeadlinePassed& late) {
        passed = late.timeout == 0.02 && late.seconds_late >= 0.0;
    }
    CHECK(passed, threads << " threads");
    CHECK(runs <= threads, runs << " tasks began on " << threads << " threads");
}

// A thread checks the deadline itself: here the caller has nothing to do.
void test_deadline_on_a_thread_of_its_own() {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> other_began = false;
    bool passed = false;
    try {
        run_tasks(2, 2, never, Deadline(0.02), [&](std::size_t, Checkpoint& checkpoint) {
            if (std::this_thread::get_id() == caller) {
                while (!other_began) std::this_thread::yield();
                return;
            }
            other_began = true;
            const Deadline much_later(5.0);
            while (!much_later.has_passed()) checkpoint.done(deadline_check_bytes);
        });
    } catch (const DeadlinePassed&) {
        passed = true;
    }
    CHECK(passed, "");
}

void test_no_task_begins_after_the_deadline() {
    std::size_t runs = 0;
    bool passed = false;
    try {
        run_tasks(3, 1, never, Deadline(0.0), [&](std::size_t, Checkpoint&) { ++runs; });
    } catch (const DeadlinePassed&) {
        passed = true;
    }
    CHECK(passed && runs == 0, runs << " tasks ran");
    run_tasks(0, 1, never, Deadline(0.0), [&](std::size_t, Checkpoint&) { ++runs; });
    run_tasks(3, 1, never, Deadline(1e300), [&](std::size_t, Checkpoint&) { ++runs; });
    CHECK(runs == 3, runs << " tasks ran");
}

// The rounding of sums on this thread: up, down or to nearest. Determined by adding, since on some
// machines fegetround returns the mode of other instructions.
int rounding() {
    const volatile double one = 1.0;
    const volatile double little = 0x1p-60;
    if (one + little > one) return FE_UPWARD;
    return one - little < one ? FE_DOWNWARD : FE_TONEAREST;
}

// Every task rounds to nearest, whatever the caller's mode is; the interrupt check runs in the
// caller's mode, and may change it.
void test_float_mode(std::size_t threads) {
    std::fesetround(FE_UPWARD);
    std::atomic<int> tasks_in_another_mode = 0;
    std::atomic<int> asked_in_the_mode_of_tasks = 0;
    const InterruptCheck change_it = [&] {
        asked_in_the_mode_of_tasks += rounding() == FE_TONEAREST;
        std::fesetround(FE_DOWNWARD);
        return false;
    };
    run_tasks(20, threads, change_it, [&](std::size_t, Checkpoint& checkpoint) {
        tasks_in_another_mode += rounding() != FE_TONEAREST;
        checkpoint.done(interrupt_check_bytes);
        tasks_in_another_mode += rounding() != FE_TONEAREST;
    });
    const int found = rounding();
    std::fesetround(FE_TONEAREST);
    CHECK(tasks_in_another_mode == 0, threads << " threads");
    CHECK(asked_in_the_mode_of_tasks == 0, threads << " threads");
    // With several threads the caller may find no task left for itself.
    CHECK(found == FE_DOWNWARD || (threads > 1 && found == FE_UPWARD), found);
}

}  // namespace

void test_tasks() {
    for (const std::size_t n : {0, 1, 2, 3, 7, 1000}) {
        for (const std::size_t threads : {1, 2, 3, 8}) test_each_runs_once(n, threads);
    }
    test_failure_arrives(1, 1, 0);
    test_failure_arrives(100, 1, 3);
    for (const std::size_t threads : {2, 3, 8}) test_failure_arrives(100, threads, threads - 1);
    test_interrupt_stops_the_caller(1);
    test_interrupt_stops_the_caller(3);
    test_interrupt_while_waiting();
    for (const std::size_t threads : {1, 3}) test_deadline_stops_every_thread(threads);
    test_deadline_on_a_thread_of_its_own();
    test_no_task_begins_after_the_deadline();
    test_float_mode(1);
    test_float_mode(3);
}

}  // namespace bitweigh::test
