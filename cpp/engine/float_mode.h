// The floating-point mode of a thread: how sums round, and whether subnormal numbers become zero.
//
// Distances are defined to the last bit in the mode that C++ starts with: round to nearest, keep
// subnormal numbers. Other libraries change the mode of the thread that loads or calls them, for
// example by being built with -ffast-math, so the engine cannot rely on the mode it finds.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace bitweigh {

#if defined(__x86_64__)
using FloatModeBits = unsigned;
inline constexpr FloatModeBits standard_float_mode = 0x1f80;  // every exception masked, all else 0
inline FloatModeBits read_float_mode() {
    return _mm_getcsr();
}
inline void write_float_mode(FloatModeBits mode) {
    _mm_setcsr(mode);
}
#elif defined(__aarch64__)
using FloatModeBits = std::uint64_t;
inline constexpr FloatModeBits standard_float_mode = 0;
inline FloatModeBits read_float_mode() {
    FloatModeBits mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
inline void write_float_mode(FloatModeBits mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#else
using FloatModeBits = int;
inline const FloatModeBits standard_float_mode = FE_TONEAREST;
inline FloatModeBits read_float_mode() {
    return std::fegetround();
}
inline void write_float_mode(FloatModeBits mode) {
    std::fesetround(mode);
}
#endif

// Sets the standard mode on this thread; the destructor restores the caller's mode.
class StandardFloatMode {
public:
    StandardFloatMode() : caller_mode_(read_float_mode()) { write_float_mode(standard_float_mode); }
    ~StandardFloatMode() { write_float_mode(caller_mode_); }
    StandardFloatMode(const StandardFloatMode&) = delete;
    StandardFloatMode& operator=(const StandardFloatMode&) = delete;

    // Calls foreign code in the caller's mode, and keeps any change it makes to that mode.
    template <class Call>
    auto outside(const Call& call) {
        class CallerMode {
        public:
            explicit CallerMode(FloatModeBits& mode) : mode_(mode) { write_float_mode(mode_); }
            ~CallerMode() {
                mode_ = read_float_mode();
                write_float_mode(standard_float_mode);
            }

        private:
            FloatModeBits& mode_;
        };
        const CallerMode restored(caller_mode_);
        return call();
    }

private:
    FloatModeBits caller_mode_;
};

}  // namespace bitweigh
