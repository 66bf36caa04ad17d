"""The comparison of benchmarks/shortlist.py: what counts as found, and what to install."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from benchmarks import shortlist

RNG = np.random.default_rng(5)
ROWS = RNG.standard_normal((300, 32)).astype(np.float32)
QUERIES = RNG.standard_normal((20, 32)).astype(np.float32)


def test_a_search_of_all_codes_finds_all_ten_and_a_wrong_answer_counts_as_such() -> None:
    searches = {"all": shortlist.exact(ROWS), "none": lambda _: np.zeros(10, dtype=np.int64)}
    everything, nothing = shortlist.measure(ROWS, QUERIES, searches)
    assert everything.share == 1
    assert everything.all_ten == 1
    assert nothing.share < 0.5
    text = shortlist.section(300, 20, 32, [everything, nothing])
    assert "300 embeddings of 32 bits, 20 queries" in text
    assert "| all | 100.0% | 100.0% |" in text


def test_equal_scores_are_all_as_good() -> None:
    rows = np.repeat(ROWS[:30], 2, axis=0)
    best = np.argsort(-((rows > 0) @ QUERIES[0]), kind="stable")[:10]
    twins = best ^ 1
    assert shortlist.shares(rows, QUERIES[:1], [twins]) == 1


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SystemExit, match="pip install sentence-transformers faiss-cpu"):
        shortlist._peer()
