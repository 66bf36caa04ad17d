"""Documents as vectors and codes: some at once, the rest by a thread while searches go on.

Invariant: exactly the rows below `n_ready` are embedded and in the index. Both change together
under the lock `growing`.
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

# Rows embedded before the first answer, which hashers also learn from: about a second's work.
FIRST = 8192
# Rounds of ITQ: here 50 give no better codes and take seconds longer.
ROUNDS = 20
# Rows embedded and added at a time. A search waits for less than a tenth of a second, and `stop`
# for about a second.
BLOCK = 2048


class Collection:
    """The vectors of texts, and their codes.

    Parameters
    ----------
    texts : sequence of str
        At least one.
    embed : function of texts
        Maps n texts to vectors (n, d).
    n_bits : int
        Length of the codes that are searched while texts are still being embedded.
    cached : float16 (n, d), optional
        Embeddings of all texts from an earlier run.
    store : function of float16 (n, d), optional
        Called once all texts are embedded, unless they were `cached`.

    """

    def __init__(
        self,
        texts: Sequence[str],
        embed: Callable[[Sequence[str]], Floats],
        n_bits: int,
        *,
        cached: NDArray[np.float16] | None = None,
        store: Callable[[NDArray[np.float16]], object] | None = None,
    ) -> None:
        """Embed the first rows and hash them."""
        self._texts = texts
        self._embed = embed
        self._store = store if cached is None else None
        self.growing = threading.Lock()
        """Locked while rows are added; hold it to keep the collection from growing."""
        self._stopped = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        first = _rounded(embed(texts[:FIRST])) if cached is None else cached
        self._halves = np.empty((len(texts), first.shape[1]), np.float16)
        self.vectors: Floats = np.empty(self._halves.shape, np.float32)
        """Unit vectors (n, d); only the first `n_ready` are valid."""
        self.n_ready = 0
        self._write(first)
        self.sample = self.vectors[: min(FIRST, len(first))]
        self._indexes = {n_bits: self._fit_index(n_bits)}
        self._indexes[n_bits].add(self.vectors[: len(first)])
        self.n_ready = len(first)

    def __len__(self) -> int:
        """Return the number of texts, embedded or not."""
        return len(self._texts)

    def start(self) -> None:
        """Embed the remaining rows in a thread, and store all embeddings when it is done."""
        self._thread = threading.Thread(target=self._embed_rest, daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the remaining rows; return whether all are ready. Raises the thread's error."""
        if self._thread is not None:
            self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self.n_ready == len(self)

    def stop(self) -> None:
        """Stop embedding."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def hashed(self, n_bits: int) -> VectorIndex:
        """Return an index with codes of this length for the ready rows, built on first use.

        Only the index with the `n_bits` of the constructor grows with the collection.
        """
        if n_bits not in self._indexes:
            index = self._fit_index(n_bits)
            index.add(self.vectors[: self.n_ready])
            self._indexes[n_bits] = index
        return self._indexes[n_bits]

    def _fit_index(self, n_bits: int) -> VectorIndex:
        """Return an empty index fitted on the sample."""
        return VectorIndex(hasher=ITQ(n_bits, n_rounds=ROUNDS)).fit(self.sample)

    def _embed_rest(self) -> None:
        (index,) = self._indexes.values()
        try:
            while self.n_ready < len(self) and not self._stopped.is_set():
                block = _rounded(self._embed(self._texts[self.n_ready : self.n_ready + BLOCK]))
                rows = self._write(block)
                with self.growing:
                    index.add(rows)
                    self.n_ready += len(rows)
            if self.n_ready == len(self) and self._store is not None:
                self._store(self._halves)
        except Exception as error:
            self._error = error  # raised by `wait`

    def _write(self, block: NDArray[np.float16]) -> Floats:
        """Write vectors after the ready ones, where no search reads yet, and return them."""
        rows = slice(self.n_ready, self.n_ready + len(block))
        self._halves[rows] = block
        self.vectors[rows] = as_unit(block.astype(np.float32))
        return self.vectors[rows]


def as_unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; those of length 0 stay 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def _rounded(vectors: Floats) -> NDArray[np.float16]:
    """Round unit vectors as the cache file does, so that first and later runs answer alike."""
    return as_unit(vectors).astype(np.float16)
