"""Random sequences of changes, applied to an index and to a dict: both stay equal."""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from cases import COSTS, assert_same
from effort import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

import bitweigh
from bitweigh.typing import BitOrder, Codes, Ids

RUNS, STEPS = examples(300), 50
SEEDS = st.integers(0, 2**32 - 1)
# How often each step ran, to assert that every path was taken.
done: Counter[str] = Counter()


class Life(RuleBasedStateMachine):
    """An index and a dict, changed side by side."""

    @initialize(
        n_bits=st.sampled_from([1, 7, 8, 13, 33, 64]),
        order=st.sampled_from(["big", "little"]),
        tail_rows=st.sampled_from([1, 8, 40, 1000]),
        segment_rows=st.sampled_from([20, 33, 200, 10_000]),
        banded_rows=st.sampled_from([1, 30, 10_000]),
    )
    def start(
        self, n_bits: int, order: BitOrder, tail_rows: int, segment_rows: int, banded_rows: int
    ) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.growth = tail_rows, segment_rows, banded_rows
        self.n_bits = n_bits
        self.order = order
        self.model: dict[int, bytes] = {}
        self.next_id = 0
        self.saved: tuple[dict[int, bytes], int] | None = None
        self.use(bitweigh.Index(n_bits, bitorder=order))
        done["runs"] += 1

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.agree()
            shutil.rmtree(self.folder)

    def use(self, index: bitweigh.Index) -> None:
        """Set limits so low that few rows reach every path."""
        growth = index._policy
        growth.tail_rows, growth.segment_rows, growth.banded_rows = self.growth
        growth.min_gain = 0
        index._engine.tuning.warm_up_rows, index._engine.tuning.warm_up_per_k = 32, 1
        index._engine.tuning.min_scan_factor = index._engine.tuning.min_scan_ns_per_k = 0.0
        self.index = index

    @invariant()
    def same_size(self) -> None:
        if hasattr(self, "index"):
            done["steps"] += 1
            assert len(self.index) == len(self.model)

    def codes(self, rng: np.random.Generator, n: int) -> Codes:
        # Few distinct codes, so that there are ties.
        bits = rng.random((n, self.n_bits)) < rng.choice([0.1, 0.5])
        return np.packbits(bits, axis=1, bitorder=self.order)

    def costs(self, rng: np.random.Generator) -> NDArray[np.float64]:
        kind = COSTS[rng.integers(len(COSTS))]
        return np.asarray(kind(rng, (self.n_bits, 2)), dtype=np.float64)

    def some_ids(self, rng: np.random.Generator) -> Ids:
        size = rng.integers(1, len(self.model) + 1) if rng.random() < 0.5 else 1
        chosen = rng.choice(np.array(sorted(self.model)), min(size, len(self.model)), replace=False)
        return chosen.astype(np.int64)

    def model_rows(self, keep: set[int] | None = None) -> tuple[Codes, Ids]:
        ids = [key for key in self.model if keep is None or key in keep]
        raw = b"".join(self.model[key] for key in ids)
        codes = np.frombuffer(raw, np.uint8).reshape(len(ids), (self.n_bits + 7) // 8)
        return codes, np.array(ids, dtype=np.int64)

    def put(self, ids: Ids, codes: Codes) -> None:
        for key, code in zip(ids.tolist(), codes, strict=True):
            self.model[key] = code.tobytes()
            self.next_id = max(self.next_id, key + 1)

    @rule(seed=SEEDS, n=st.integers(0, 70))
    def add(self, seed: int, n: int) -> None:
        codes = self.codes(np.random.default_rng(seed), n)
        self.index.add(codes)
        self.put(np.arange(self.next_id, self.next_id + n), codes)
        done["add"] += 1

    @rule(seed=SEEDS, n=st.integers(1, 40), far=st.booleans(), replacing=st.booleans())
    def add_with_ids(self, seed: int, n: int, far: bool, replacing: bool) -> None:
        rng = np.random.default_rng(seed)
        ids = rng.choice(2**40 if far else max(100, 2 * n), n, replace=False).astype(np.int64)
        codes = self.codes(rng, n)
        if replacing:
            self.index.add(codes, ids, on_duplicate="replace")
        elif any(key in self.model for key in ids.tolist()):
            first = next(key for key in ids.tolist() if key in self.model)
            with pytest.raises(ValueError, match=f"= {first} is in use"):
                self.index.add(codes, ids)
            done["refused add"] += 1
            return
        else:
            self.index.add(codes, ids)
        self.put(ids, codes)
        done["add with ids"] += 1

    @precondition(lambda self: self.model)
    @rule(seed=SEEDS)
    def remove(self, seed: int) -> None:
        ids = self.some_ids(np.random.default_rng(seed))
        assert self.index.remove(ids) == len(ids)
        for key in ids.tolist():
            del self.model[key]
        done["remove"] += 1

    @rule(seed=SEEDS)
    def remove_what_is_not_there(self, seed: int) -> None:
        missing = 10**9 + seed
        present = sorted(self.model)[:1]
        with pytest.raises(KeyError, match=str(missing)):
            self.index.remove([*present, missing])
        assert self.index.remove([missing], on_missing="ignore") == 0

    @precondition(lambda self: self.model)
    @rule(seed=SEEDS)
    def replace(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        ids = self.some_ids(rng)
        codes = self.codes(rng, len(ids))
        self.index.replace(codes, ids)
        self.put(ids, codes)
        done["replace"] += 1

    @rule()
    def compact(self) -> None:
        self.index.compact()
        assert sum(part.removed_rows for part in self.index._state.parts()) == 0
        done["compact"] += 1

    @rule()
    def build(self) -> None:
        self.index.build()
        done["build"] += 1

    @rule()
    def save(self) -> None:
        self.index.save(self.folder / "index")
        self.saved = dict(self.model), self.next_id
        done["save"] += 1

    @precondition(lambda self: self.saved is not None)
    @rule(mapped=st.booleans())
    def load(self, mapped: bool) -> None:
        assert self.saved is not None
        self.model, self.next_id = dict(self.saved[0]), self.saved[1]
        self.use(bitweigh.load(self.folder / "index", mmap=mapped))
        done["mapped load" if mapped else "load"] += 1

    @rule(by_pickle=st.booleans())
    def go_on_with_a_copy(self, by_pickle: bool) -> None:
        old = self.index
        self.use(pickle.loads(pickle.dumps(old)) if by_pickle else old.copy())
        done["pickle" if by_pickle else "copy"] += 1
        # Changes of the old index must not show in the copy.
        if len(old) and old is not self.index:
            old.remove(old.ids[:1])
            old.add(self.codes(np.random.default_rng(0), 3))

    @rule(seed=SEEDS, n=st.integers(1, 30))
    def merge(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        other = bitweigh.Index(self.n_bits, bitorder=self.order)
        ids, codes = rng.choice(200, n, replace=False), self.codes(rng, n)
        other.add(codes, ids)
        other.remove(ids[: n // 3])
        self.index.merge(other, on_duplicate="replace")
        self.put(ids[n // 3 :], codes[n // 3 :])
        done["merge"] += 1

    @rule(seed=SEEDS, filtered=st.booleans())
    def search(self, seed: int, filtered: bool) -> None:
        rng = np.random.default_rng(seed)
        costs, k = self.costs(rng), int(rng.integers(1, len(self.model) + 3))
        method = rng.choice(["auto", "scan", "probe"])
        wanted, keep = {}, None
        if filtered:
            keep = {key for key in self.model if rng.random() < rng.choice([0.02, 0.5])}
            wanted = {"allow": np.array(sorted(keep), dtype=np.int64)}
        codes, ids = self.model_rows(keep)
        expected = bitweigh.reference.search(codes, costs, k, ids=ids, bitorder=self.order)
        found = self.index.search(
            costs, k, method=method, threads=int(rng.integers(1, 3)), stats=True, **wanted
        )
        assert_same(found, expected)
        done["filtered search" if filtered else "search"] += 1
        assert found.stats is not None
        done["probes"] += int(found.stats.probes > 0)
        done["scans"] += int(found.stats.rows_scanned > 0)
        done["removed rows"] += int(any(part.removed_rows for part in self.index._state.parts()))

    @rule(seed=SEEDS)
    def range_search(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        costs = self.costs(rng)
        codes, ids = self.model_rows()
        every = bitweigh.reference.search(
            codes, costs, max(1, len(ids)), ids=ids, bitorder=self.order
        )
        radius = every.distances[rng.integers(len(every.distances))]
        found = self.index.range_search(costs, radius, method=rng.choice(["auto", "scan", "probe"]))
        n = int((every.distances <= radius).sum()) if len(ids) else 0
        np.testing.assert_array_equal(found.ids, every.ids[:n])
        np.testing.assert_array_equal(found.distances, every.distances[:n])
        done["range search"] += 1

    @rule(seed=SEEDS)
    def iterate(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        costs, n = self.costs(rng), int(rng.integers(1, 60))
        codes, ids = self.model_rows()
        every = bitweigh.reference.search(codes, costs, n, ids=ids, bitorder=self.order)
        found = list(islice(self.index.iterate(costs), n))
        assert [key for _, key in found] == [key for key in every.ids.tolist() if key >= 0]
        done["iterate"] += 1

    @rule(seed=SEEDS)
    def look_up(self, seed: int) -> None:
        self.agree()
        rng = np.random.default_rng(seed)
        if self.model:
            key = int(self.some_ids(rng)[0])
            assert key in self.index
            assert self.index.search_by_id(key, 1, include_self=True).distances[0] == 0
        assert 2**50 not in self.index

    @rule()
    def verify(self) -> None:
        self.index.verify()
        done["verify"] += 1

    def agree(self) -> None:
        codes, ids = self.model_rows()
        assert len(self.index) == len(ids)
        np.testing.assert_array_equal(self.index.ids, np.sort(ids))
        np.testing.assert_array_equal(self.index.codes_of(ids), codes)
        assert self.index.contains(ids).all()


@pytest.mark.timeout(1200)
def test_an_index_equals_a_dict_through_its_whole_life() -> None:
    done.clear()
    # A run may end early, but there are enough runs for all steps.
    run = settings(max_examples=RUNS + RUNS // 3, stateful_step_count=STEPS)
    run_state_machine_as_test(Life, settings=run)
    print(dict(done))
    assert done["steps"] >= RUNS * STEPS
    few = [name for name, count in done.items() if count < RUNS // 10]
    assert not few, few
    for name in ("mapped load", "load", "compact", "probes", "scans", "removed rows", "pickle"):
        assert done[name], f"{name} was never tried"
