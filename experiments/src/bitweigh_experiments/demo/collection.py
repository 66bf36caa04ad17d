"""Documents as vectors and codes: some at once, the others by a thread while one may search.

Invariant: the rows below `n_ready` are embedded, and all of them and no others are in the index.
Both change together under the lock `growing`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitweigh import VectorIndex
from bitweigh.hashers import ITQ
from bitweigh_experiments.demo.model import Floats

__all__ = ["FIRST", "Collection", "as_unit"]

# Rows that are embedded before the first answer, and that hashers learn from: a second's worth.
FIRST = 8192
# Of ITQ: here its codes are no better after 50, which take seconds longer.
ROUNDS = 20
# Rows that are embedded and added at a time: how long a search may have to wait is below a tenth of
# a second, how long stopping may take about a second.
BLOCK = 2048


class Collection:
    """Vectors of texts, and their codes.

    Parameters
    ----------
    texts : sequence of str
        At least one.
    embed : function of texts
        From n texts to (n, d).
    n_bits : int
        Of the codes that are searched while texts are still being embedded.
    kept : float16 (n, d), optional
        Embeddings from an earlier run, of all texts.
    keep : function of float16 (n, d), optional
        Called once all texts are embedded, unless `kept` had them.

    """

    def __init__(
        self,
        texts: Sequence[str],
        embed: Callable[[Sequence[str]], Floats],
        n_bits: int,
        *,
        kept: NDArray[np.float16] | None = None,
        keep: Callable[[NDArray[np.float16]], object] | None = None,
    ) -> None:
        """Embed the first rows and hash them."""
        self._texts = texts
        self._embed = embed
        self._keep = keep if kept is None else None
        self.growing = threading.Lock()
        """Held while rows come: none do for whoever holds it."""
        self._stopped = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        first = _rounded(embed(texts[:FIRST])) if kept is None else kept
        self._halves = np.empty((len(texts), first.shape[1]), np.float16)
        self.vectors: Floats = np.empty(self._halves.shape, np.float32)
        """Unit vectors (n, d); only the first `n_ready` mean anything."""
        self.n_ready = 0
        self._write(first)
        self.sample = self.vectors[: min(FIRST, len(first))]
        self._hashed = {n_bits: self._learned(n_bits)}
        self._hashed[n_bits].add(self.vectors[: len(first)])
        self.n_ready = len(first)

    def __len__(self) -> int:
        """How many texts there are, embedded or not."""
        return len(self._texts)

    def start(self) -> None:
        """Embed the other rows in a thread, and keep all once they are there."""
        self._thread = threading.Thread(target=self._embed_the_others, daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the other rows; whether all are there. Raises what stopped the thread."""
        if self._thread is not None:
            self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self.n_ready == len(self)

    def stop(self) -> None:
        """Embed no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def hashed(self, n_bits: int) -> VectorIndex:
        """An index with codes of this length for the rows that are ready, made on first use.

        Only the one of the length given at the start grows with the collection.
        """
        if n_bits not in self._hashed:
            index = self._learned(n_bits)
            index.add(self.vectors[: self.n_ready])
            self._hashed[n_bits] = index
        return self._hashed[n_bits]

    def _learned(self, n_bits: int) -> VectorIndex:
        """An empty index that has learned from the sample."""
        return VectorIndex(hasher=ITQ(n_bits, n_rounds=ROUNDS)).fit(self.sample)

    def _embed_the_others(self) -> None:
        (hashed,) = self._hashed.values()
        try:
            while self.n_ready < len(self) and not self._stopped.is_set():
                block = _rounded(self._embed(self._texts[self.n_ready : self.n_ready + BLOCK]))
                rows = self._write(block)
                with self.growing:
                    hashed.add(rows)
                    self.n_ready += len(rows)
            if self.n_ready == len(self) and self._keep is not None:
                self._keep(self._halves)
        except Exception as error:
            self._error = error  # for whoever waits

    def _write(self, block: NDArray[np.float16]) -> Floats:
        """Write vectors behind those that are there, which nobody reads yet."""
        place = slice(self.n_ready, self.n_ready + len(block))
        self._halves[place] = block
        self.vectors[place] = as_unit(block.astype(np.float32))
        return self.vectors[place]


def as_unit(vectors: Floats) -> Floats:
    """Vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def _rounded(vectors: Floats) -> NDArray[np.float16]:
    """What a file keeps of unit vectors, so that a first run and a later one answer alike."""
    return as_unit(vectors).astype(np.float16)
