"""Write the indexes that every later version must read: `python tools/write_golden.py [FOLDER]`.

Each format has a folder of its own below tests/golden, which stays when a later format comes.
Nothing in it depends on the machine: not on NumPy's generators, whose numbers may change with its
version, nor on how a sum is rounded.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import bitweigh
from bitweigh._storage.manifest import VERSION
from bitweigh.typing import BitOrder, Codes, Ids

DEFAULT = Path(__file__).parent.parent / "tests" / "golden" / f"format-{VERSION}"


class Golden:
    """An index and a dict, changed side by side: what is expected does not come from the index."""

    def __init__(self, n_bits: int, bitorder: BitOrder, **options: int) -> None:
        """Make both empty."""
        self.index = bitweigh.Index(n_bits, bitorder=bitorder, build="manual", **options)
        self.index._policy.tail_rows = 20  # so that few rows make a segment
        self.options = options
        self.next_id = 0
        self.codes: dict[int, str] = {}

    def add(self, codes: Codes, ids: Ids | None = None) -> None:
        """Add codes, or replace those that have these ids."""
        self.index.add(codes, ids, on_duplicate="replace")
        own = range(self.next_id, self.next_id + len(codes)) if ids is None else ids.tolist()
        self.codes.update(zip(own, (code.tobytes().hex() for code in codes), strict=True))
        self.next_id = max(self.next_id, max(own) + 1)

    def remove(self, ids: list[int]) -> None:
        """Remove codes by id."""
        self.index.remove(ids)
        for one in ids:
            del self.codes[one]

    def expected(self) -> dict[str, Any]:
        """All that a reader must find, in plain types."""
        return {
            "n_bits": self.index.n_bits,
            "bitorder": self.index.bitorder,
            "next_id": self.next_id,
            "options": self.options,
            "codes": {str(one): self.codes[one] for one in sorted(self.codes)},
        }


def some_bytes(seed: str, n: int) -> Codes:
    """The same on every machine."""
    return np.frombuffer(hashlib.shake_128(seed.encode()).digest(n), np.uint8)


def some_order(seed: str, n: int) -> Ids:
    """The numbers below n in some order."""
    return some_bytes(seed, 8 * n).view("<u8").argsort()


def some_codes(seed: str, n: int, n_bits: int, bitorder: BitOrder) -> Codes:
    """Codes with each bit set in half of them.

    Their correlations are whole numbers divided by n, whichever way they are summed. So every
    machine chooses the same bits for the bands.
    """
    orders = [some_order(f"{seed} {bit}", n) for bit in range(n_bits)]
    return np.packbits(np.stack(orders, axis=1) < n // 2, axis=1, bitorder=bitorder)


def banded() -> Golden:
    """All kinds of arrays: bands, ids of both widths, removed rows, a tail with a replaced code."""
    golden = Golden(20, "little", bands=3, band_bits=4)
    wide = 2**40 + some_order("wide", 70)
    golden.add(some_codes("first", 70, 20, "little"), wide)
    golden.index.build()
    narrow = 7 * some_order("narrow", 33)
    golden.add(some_codes("second", 33, 20, "little"), narrow)
    golden.add(some_codes("third", 6, 20, "little"))
    golden.add(some_codes("fourth", 2, 20, "little"), wide[[3, 33]])
    golden.remove([2**40 + 1, 2**40 + 68, 7 * 32, golden.next_id - 1])
    return golden


def plain() -> Golden:
    """Ids that are counted and not stored, in two blocks."""
    golden = Golden(64, "big")
    ids = np.arange(1000, 1033)
    golden.add(some_bytes("plain", 33 * 8).reshape(33, 8), ids)
    return golden


def empty() -> Golden:
    """Options, and ids that were used once."""
    golden = Golden(12, "big", bands=2, band_bits=5, memory_limit=10**6)
    golden.add(some_codes("empty", 4, 12, "big"))
    golden.remove([0, 1, 2, 3])
    return golden


def write(folder: Path) -> None:
    """Write all of them, each with what it must hold beside it."""
    for make in (banded, plain, empty):
        golden = make()
        golden.index.verify()
        golden.index.save(folder / make.__name__ / "index")
        expected = json.dumps(golden.expected(), indent=1) + "\n"
        (folder / make.__name__ / "expected.json").write_text(expected)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
