"""Search results as tables."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import bitweigh
from bitweigh import frames


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_package_is_named_with_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    kind: Any = {"pyarrow": "arrow"}.get(package, package)
    with pytest.raises(ImportError, match=r"pip install 'bitweigh\[frames\]'"):
        two_queries().to_frame(kind)


def two_queries() -> bitweigh.SearchResult:
    """Search an index of two codes with k = 3: the third neighbour is padding."""
    index = bitweigh.Index(n_bits=8)
    index.add(np.array([[0], [7]], dtype=np.uint8), ids=[5, 6])
    return index.search(bitweigh.costs.hamming(np.array([[0], [7]], np.uint8), 8), k=3)


EXPECTED = {
    "query": [0, 0, 1, 1],
    "rank": [1, 2, 1, 2],
    "id": [5, 6, 6, 5],
    "distance": [0.0, 3.0, 0.0, 3.0],
}


def as_lists(kind: str, table: Any) -> dict[str, list[Any]]:
    if kind == "pandas":
        found: dict[str, list[Any]] = table.to_dict("list")
    elif kind == "polars":
        found = table.to_dict(as_series=False)
    elif kind == "arrow":
        found = table.to_pydict()
    else:
        found = {name: column.tolist() for name, column in table.items()}
    return found


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_answers_become_tables_without_their_padding(kind: Any) -> None:
    if kind != "dict":
        pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    assert as_lists(kind, two_queries().to_frame(kind)) == EXPECTED


def test_a_single_query_is_query_0() -> None:
    both = two_queries()
    one = bitweigh.SearchResult(both.distances[1], both.ids[1])
    table = one.to_frame("dict")
    assert table["query"].tolist() == [0, 0]
    assert table["id"].tolist() == [6, 5]


def test_ranges_become_tables() -> None:
    result = bitweigh.RangeResult(
        np.array([0, 2, 2, 3]), np.array([0.5, 1.0, 2.0]), np.array([7, 8, 9])
    )
    table = as_lists("dict", result.to_frame("dict"))
    assert table["query"] == [0, 0, 2]
    assert table["rank"] == [1, 2, 1]
    assert table["id"] == [7, 8, 9]


def test_queries_may_have_names() -> None:
    table = two_queries().to_frame("dict", queries=["red", "blue"])
    assert table["query"].tolist() == ["red", "red", "blue", "blue"]


def test_as_many_names_as_queries_are_needed() -> None:
    with pytest.raises(ValueError, match=r"queries must have shape \(2,\), got \(1,\)"):
        two_queries().to_frame("dict", queries=["red"])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_every_kind_of_result_makes_a_table(kind: Any) -> None:
    if kind != "dict":
        pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (50, 2), dtype=np.uint8)
    index, embeddings = bitweigh.Index(16), bitweigh.BinaryEmbeddings(16)
    index.add(codes)
    embeddings.add(codes)
    costs = rng.random((3, 16, 2))
    found, ties = index.search(costs, 4), index.search_with_ties(costs, 4)
    scored = embeddings.search(rng.random((3, 16)), 4)
    for result, column in ((found, "distance"), (ties, "distance"), (scored, "score")):
        table = result.to_frame(kind)
        assert np.asarray(table["id"]).tolist() == result.ids.ravel().tolist()
        assert np.asarray(table["query"]).tolist() == [0] * 4 + [1] * 4 + [2] * 4
        assert np.asarray(table["rank"]).tolist() == [1, 2, 3, 4] * 3
        values = scored.scores if column == "score" else result[-2]
        assert np.asarray(table[column]).tolist() == values.ravel().tolist()


def test_a_kind_of_table_that_there_is_not_is_refused() -> None:
    index = bitweigh.Index(8)
    with pytest.raises(ValueError, match="kind must be"):
        index.search(np.ones((8, 2)), 1).to_frame("excel")  # type: ignore[arg-type]


def test_queries_may_be_named_by_a_column_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    index = bitweigh.Index(8)
    index.add(np.array([[1], [2]], dtype=np.uint8))
    found = index.search(np.ones((2, 8, 2)), 1)
    table = found.to_frame("dict", queries=pandas.Series(["a", "b"]))
    assert list(table["query"]) == ["a", "b"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_nulls_in_the_columns_of_a_dict_are_refused(library: str) -> None:
    package = pytest.importorskip(library)
    make = {
        "pandas": lambda: package.Series([1, None], dtype="Int64"),
        "polars": lambda: package.Series([1, None]),
        "pyarrow": lambda: package.array([1, None]),
    }[library]
    with pytest.raises(ValueError, match="null"):
        frames.vectors_and_ids({"x": make()}, "x")


def test_masked_columns_of_a_dict_are_refused() -> None:
    masked = np.ma.array(np.eye(2), mask=[[True, False], [False, False]])
    with pytest.raises(TypeError, match="masked"):
        frames.vectors_and_ids({"vector": masked}, "vector")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_missing_package_is_named(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, package, None)
    index = bitweigh.Index(8)
    index.add(np.array([[1], [2]], dtype=np.uint8))
    with pytest.raises(ImportError, match=r"pip install 'bitweigh\[frames\]'"):
        index.search(np.ones((8, 2)), 1).to_frame(kind)
