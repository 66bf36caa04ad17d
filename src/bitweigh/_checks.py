"""Checks of arguments; errors name the argument, what was expected and what was passed.

No conversion here could change an answer: a wrong dtype is an error.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitweigh import _core
from bitweigh.typing import BitOrder, Codes, Floats, Ids

MAX_BITS = 8192
MAX_K = 2**32
# Costs copied between two checks of a deadline: less than a millisecond.
_COPIED_COSTS = 2**17

_HINT_FOR_CODES = (
    "; bitweigh.costs.hamming(codes, n_bits) and bitweigh.costs.from_weights(codes, weights) turn "
    "codes into costs"
)


def as_integer(value: object, name: str, minimum: int, maximum: int) -> int:
    """Convert any integer type but bool to an int, and check its range."""
    if type(value) is int and minimum <= value <= maximum:
        return value  # fast path: several of these checks are in each search
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got the bool {value}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_kind(value)}") from None
    if not minimum <= number <= maximum:
        raise ValueError(f"{name} must be from {minimum} to {maximum}, got {number}")
    return number


def as_optional_integer(value: object, name: str, minimum: int, maximum: int) -> int | None:
    """Check an integer as `as_integer` does; None stays None."""
    return None if value is None else as_integer(value, name, minimum, maximum)


def as_n_bits(n_bits: object) -> int:
    """Check the number of bits of a code."""
    return as_integer(n_bits, "n_bits", 1, MAX_BITS)


def as_k(k: object) -> int:
    """Check the number of neighbours to return."""
    return as_integer(k, "k", 1, MAX_K)


def as_deadline(timeout: Any) -> _core.Deadline | None:  # noqa: ANN401 checked here
    """Start the clock of a call that may take `timeout` seconds; None for no limit."""
    if timeout is None:
        return None
    if not _is_real(timeout):
        raise TypeError(f"timeout must be a number of seconds or None, got {_kind(timeout)}")
    if not timeout >= 0:
        raise ValueError(f"timeout must be at least 0 seconds, got {timeout}")
    # The engine takes times beyond a lifetime as no limit; an integer may be too large for a float.
    return _core.Deadline(min(timeout, 1e12))


def as_choice(value: object, name: str, choices: tuple[str, ...]) -> str:
    """Check that a value is one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")


def as_bitorder(bitorder: object) -> BitOrder:
    """Check the order of the bits inside a byte, named as in NumPy."""
    if bitorder == "big":
        return "big"
    if bitorder == "little":
        return "little"
    raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}")


def as_codes(
    codes: object, n_bits: int, bitorder: BitOrder, name: str = "codes", first: int = 0
) -> Codes:
    """Return packed codes, uint8 ``(n, n_bytes)``, C-contiguous; unused bits must be zero.

    `first` is the number of the first row in the caller's input, for error messages about a batch.
    """
    array = as_array(codes, name)
    n_bytes = (n_bits + 7) // 8
    if array.dtype != np.uint8:
        hint = ""
        if array.dtype == np.bool_ or (array.ndim == 2 and array.shape[1] == n_bits):
            hint = f"; pack bits with np.packbits(bits, axis=1, bitorder={bitorder!r})"
        raise TypeError(f"{name} must have dtype uint8 (packed bits), got {array.dtype}{hint}")
    if array.ndim != 2 or array.shape[1] != n_bytes:
        hint = ""
        if array.ndim == 2 and array.shape[1] == n_bits:
            hint = f"; pack bits with np.packbits(bits, axis=1, bitorder={bitorder!r})"
        elif array.ndim == 2 and array.shape[1] > 0:
            last = 8 * array.shape[1]
            hint = f": codes of {last - 7} to {last} bits, so n_bits must be one of these"
        raise ValueError(
            f"{name} must have shape (n, {n_bytes}) for n_bits={n_bits}, got {array.shape}{hint}"
        )
    array = np.ascontiguousarray(array)
    stray = _core.first_stray_row(array, n_bits, bitorder)
    if stray < len(array):
        raise ValueError(
            f"{name}[{first + stray}] has unused bits set: bits {n_bits} to {8 * n_bytes - 1} of "
            f"the last byte must be 0 with bitorder={bitorder!r}"
        )
    return array


def as_costs(costs: object, n_bits: int) -> tuple[NDArray[np.float64], bool]:
    """Return costs as float64 ``(nq, n_bits, 2)``, and whether they were a single query."""
    checked = as_query_costs(costs, n_bits)
    return checked.reshape(-1, n_bits, 2), checked.ndim == 2


def as_query_costs(
    costs: object, n_bits: int, deadline: _core.Deadline | None = None
) -> NDArray[np.float64]:
    """Return a copy of the costs as float64 ``(n_bits, 2)`` or ``(nq, n_bits, 2)``, C-contiguous.

    float32 converts to float64 without loss. The engine checks that values are finite while it
    builds its tables from them.
    """
    array = as_floats(costs, "costs", _HINT_FOR_CODES)
    if array.ndim not in (2, 3) or array.shape[-2:] != (n_bits, 2):
        hint = ""
        if array.ndim in (1, 2) and array.shape[-1] == n_bits:
            hint = "; bitweigh.costs.inner_product(queries) turns one number per bit into costs"
        raise ValueError(
            f"costs must have shape ({n_bits}, 2) or (nq, {n_bits}, 2), got {array.shape}{hint}"
        )
    if deadline is None or array.ndim == 2:
        return _widened(array)
    copied = np.empty(array.shape)
    step = max(1, _COPIED_COSTS // (2 * n_bits))
    for first in range(0, len(array), step):
        deadline.check()
        copied[first : first + step] = _widened(array[first : first + step])
    return copied


def _widened(array: Floats) -> NDArray[np.float64]:
    """Return a copy as float64, C-contiguous.

    Always a copy: the caller must not be able to change the costs during the search.
    """
    if array.dtype.char == "f":
        widened = np.empty(array.shape)
        _core.widen(np.ascontiguousarray(array), widened)
        return widened
    return np.array(array, np.float64, order="C")


def n_bits_of(costs: object) -> int:
    """Return the number of bits of the codes that the costs are for."""
    array = as_floats(costs, "costs")
    if array.ndim not in (2, 3) or array.shape[-1] != 2:
        raise ValueError(f"costs must have shape (n_bits, 2) or (nq, n_bits, 2), got {array.shape}")
    return as_n_bits(array.shape[-2])


def as_floats(values: object, name: str, hint_for_codes: str = "") -> Floats:
    """Return an array of dtype float32 or float64 in native byte order.

    `hint_for_codes` ends the error message for callers who passed codes.
    """
    array = as_array(values, name)
    # By character: comparing dtypes with np.float64 takes as long as a short search.
    if array.dtype.char not in "fd" or not array.dtype.isnative:
        order = "" if array.dtype.isnative else " in native byte order"
        hint = hint_for_codes if array.dtype == np.uint8 else ""
        raise TypeError(
            f"{name} must have dtype float32 or float64{order}, got {array.dtype}{hint}"
        )
    return array


def as_ids(ids: object, name: str = "ids", first: int = 0) -> Ids:
    """Return a copy of the ids as int64 ``(n,)``, none negative; `first` is as in `as_codes`."""
    if type(ids) is list and set(map(type, ids)) == {int} and 0 <= min(ids) <= max(ids) < 2**63:
        return np.array(ids, np.int64)  # fast path: microseconds for short lists
    array = as_array(ids, name)
    if array.size == 0 and array.ndim == 1 and array.dtype == np.float64:
        array = array.astype(np.int64)  # NumPy turns an empty list into float64
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), got {array.shape}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        i = int(np.argmax(array > np.iinfo(np.int64).max))
        raise ValueError(f"{name} must fit in int64, got {name}[{first + i}] = {array[i]}")
    exact: Ids = np.array(array, dtype=np.int64)
    if exact.size and exact.min() < 0:
        i = int(np.argmax(exact < 0))
        raise ValueError(f"{name} must not be negative, got {name}[{first + i}] = {exact[i]}")
    return exact


def as_rows(
    codes: object, ids: object, n_bits: int, bitorder: BitOrder
) -> tuple[Codes, Ids | None]:
    """Return packed codes and one distinct id for each, or None for the ids if `ids` is None."""
    packed = as_codes(codes, n_bits, bitorder)
    return packed, None if ids is None else as_row_ids(ids, len(packed), "code")


def as_row_ids(ids: object, n_rows: int, what: str = "row") -> Ids:
    """Return distinct ids, one for each of `n_rows` rows; `what` is the name of a row."""
    row_ids = as_ids(ids)
    if len(row_ids) != n_rows:
        raise ValueError(
            f"ids must have shape ({n_rows},), one for each {what}, got {row_ids.shape}"
        )
    check_distinct(row_ids)
    return row_ids


def check_distinct(ids: Ids) -> None:
    """Raise ValueError if an id occurs twice."""
    repeated = first_repeated(ids)
    if repeated is not None:
        i, first = repeated
        raise ValueError(
            f"ids must be distinct, but ids[{i}] = {ids[i]} is the same as ids[{first}]"
        )


def first_repeated(ids: Ids) -> tuple[int, int] | None:
    """Return the first position whose id occurred before, and that id's first position.

    None if all ids differ.
    """
    if len(ids) < 2 or (ids[1:] > ids[:-1]).all():
        return None
    by_id = np.empty(len(ids), dtype=np.uint32)
    _core.sort_ids(ids, by_id)
    in_order = ids[by_id]
    repeats = np.flatnonzero(in_order[1:] == in_order[:-1]) + 1
    if not len(repeats):
        return None
    i = int(by_id[repeats].min())
    return i, int(np.argmax(ids == ids[i]))


def id_in_use_error(ids: Ids, used: NDArray[np.bool_], what: str) -> ValueError:
    """Return the error for ids that are in use; `what` is "code" or "vector"."""
    i = int(np.argmax(used))
    return ValueError(
        f"ids must be new, but ids[{i}] = {ids[i]} is in use; on_duplicate='replace' "
        f"replaces its {what}"
    )


def as_array(values: object, name: str, *, allow_objects: bool = False) -> NDArray[Any]:
    """Return an array from an array, an object that exports its memory, or nested sequences.

    An array of Python objects is an error unless `allow_objects`.
    """
    array = values if type(values) is np.ndarray else _converted(values, name)
    if array.dtype.char == "O" and not allow_objects:
        raise TypeError(f"{name} must be an array of numbers, got Python objects")
    return array


def _converted(values: object, name: str) -> NDArray[Any]:
    # Not imported here: that takes milliseconds. While another thread imports it, it has no class
    # yet, and there are no masked arrays.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(values, masked):
        raise TypeError(f"{name} must be a plain array, got a masked array: its mask would be lost")
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, got a ragged sequence: {error}") from None
    except (BufferError, RuntimeError, TypeError) as error:
        # Raised by libraries whose arrays may lie elsewhere, such as on a GPU.
        raise TypeError(
            f"{name} must be in this machine's memory, got {type(values).__name__}: {error}"
        ) from None


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    return f"{type(value).__name__} {value!r}"


def as_radii(radius: object, nq: int) -> NDArray[np.float64]:
    """Return a radius for each query, float64 (nq,); none is NaN.

    A radius that float64 cannot hold is rounded down: distances are float64, so those within the
    rounded radius are those within the original one.
    """
    return _as_bounds(radius, "radius", nq, _rounded_down)


def as_min_scores(min_score: object, nq: int) -> NDArray[np.float64]:
    """Return a minimum score for each query, as `as_radii` does; rounded up."""
    return _as_bounds(min_score, "min_score", nq, _rounded_up)


def _as_bounds(
    bound: object, name: str, nq: int, rounding: Callable[[Any], float]
) -> NDArray[np.float64]:
    """Return a bound for each query, float64 (nq,)."""
    array = as_array(bound, name, allow_objects=True)
    if array.dtype.kind == "O" or isinstance(bound, list | tuple):
        # As Python objects: NumPy would convert large integers to floats, rounded to nearest.
        array = np.array(bound, dtype=object)
        if not all(_is_real(value) for value in array.flat):
            raise TypeError(f"{name} must be numbers, got {bound!r:.80}")
    elif array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers, got {array.dtype}")
    if array.shape not in ((), (nq,)):
        raise ValueError(f"{name} must be a number or have shape ({nq},), got {array.shape}")
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        rounded = array
    else:
        rounded = np.array([rounding(value) for value in array.flat]).reshape(array.shape)
    bounds = np.empty(nq)
    bounds[:] = rounded
    if np.isnan(bounds).any():
        raise ValueError(f"{name} must not be NaN")
    return bounds


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _rounded_down(value: Any) -> float:  # noqa: ANN401 an integer or a float of any size
    """Return the largest float64 that is at most `value`."""
    exact = value.item() if isinstance(value, np.generic) else value
    try:
        nearest = float(exact)
    except OverflowError:  # an integer beyond any distance
        return math.inf if exact > 0 else -math.inf
    return math.nextafter(nearest, -math.inf) if nearest > exact else nearest


def _rounded_up(value: Any) -> float:  # noqa: ANN401 an integer or a float of any size
    """Return the smallest float64 that is at least `value`."""
    # As Python's number: the negative of an unsigned one of NumPy would wrap around.
    exact = value.item() if isinstance(value, np.generic) else value
    return -_rounded_down(-exact)
