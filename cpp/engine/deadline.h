// A deadline: the moment by which a call must have ended, by a clock that is never set back.
#pragma once

#include <chrono>
#include <exception>

namespace bitweigh {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    // No deadline: the clock is never read.
    Deadline() = default;
    // `timeout` seconds from now, not NaN. A timeout of many years is no deadline.
    explicit Deadline(double timeout) : timeout_(timeout) {
        if (timeout > max_timeout) return;
        at_ = Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
    }

    bool exists() const { return at_ != Clock::time_point::max(); }
    bool has_passed() const { return exists() && Clock::now() >= at_; }
    // Whether there is less time left than this.
    bool is_within(Clock::duration time) const { return exists() && at_ - Clock::now() < time; }
    // The seconds since the deadline, which must exist; negative before it.
    double seconds_late() const {
        return std::chrono::duration<double>(Clock::now() - at_).count();
    }
    // The seconds from the beginning of the call to the deadline.
    double timeout() const { return timeout_; }

private:
    static constexpr double max_timeout = 1e9;

    Clock::time_point at_ = Clock::time_point::max();
    double timeout_ = 0.0;
};

// Thrown to end a call whose deadline has passed.
struct DeadlinePassed : std::exception {
    explicit DeadlinePassed(const Deadline& deadline)
        : timeout(deadline.timeout()), seconds_late(deadline.seconds_late()) {}
    const char* what() const noexcept override { return "the deadline has passed"; }

    double timeout;
    double seconds_late;  // Seconds from the deadline until the work had ended.
};

}  // namespace bitweigh
