"""Arrow batches become items: whole columns at once give what rows one by one give."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from bitweigh.server import bulk
from bitweigh.server.bulk import Columns, items_of_batch
from bitweigh.server.contents import Contents
from bitweigh.server.definition import Definition
from bitweigh.server.kinds import contents_of
from bitweigh.server.settings import Limits

RNG = np.random.default_rng(5)
N, DIM = 33, 13
VECTORS = RNG.standard_normal((N, DIM)).astype(np.float32)
DEFINITIONS = [
    Definition(kind="codes", n_bits=DIM),
    Definition(kind="codes", n_bits=DIM, bitorder="little"),
    Definition(kind="embeddings", dim=DIM),
    Definition(kind="embeddings", dim=DIM, rescore="float32"),
    Definition(kind="vectors", dim=DIM, n_bits=8, metric="cosine"),
]


def column(rows: np.ndarray) -> Any:
    if rows.dtype == np.uint8:
        return pa.array([row.tobytes() for row in rows], pa.binary(rows.shape[1]))
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def values_of(definition: Definition) -> list[np.ndarray]:
    order = definition.bitorder
    codes = np.packbits(VECTORS > 0, axis=1, bitorder=order)
    if definition.kind == "codes":
        return [codes]
    floats = [VECTORS, VECTORS.astype(np.float64), (VECTORS * 100).astype(np.int16)]
    return floats if definition.rescore or definition.kind == "vectors" else [*floats, codes]


def items(contents: Contents, **columns: Any) -> bulk.Batch:
    return items_of_batch(pa.RecordBatch.from_pydict(columns), Columns(), contents, Limits(), 100)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: f"{one.kind}-{one.bitorder}")
def test_whole_columns_give_the_values_that_single_rows_give(definition: Definition) -> None:
    contents = contents_of(definition)
    for rows in values_of(definition):
        for given in (column(rows), column(rows)[3:20], column(rows)[32:]):
            whole, problems = bulk._values(given, contents)
            by_row, by_row_problems = bulk._values_by_row(given, contents)
            assert list(whole) == list(by_row)
            assert problems == by_row_problems == {}
            assert bulk._matrix(given) is not None


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: f"{one.kind}-{one.bitorder}")
def test_a_wrong_row_is_named_and_the_others_are_kept(definition: Definition) -> None:
    contents = contents_of(definition)
    for rows in values_of(definition):
        wrong = rows.copy()
        if rows.dtype == np.uint8:
            wrong[7] = 255  # unused bits too
        elif rows.dtype.kind == "f":
            wrong[7, 2] = np.nan
        elif definition.metric == "cosine":
            wrong[7] = 0
        else:
            continue
        found = items(contents, id=pa.array(range(N)), vector=column(wrong))
        assert [error.row for error in found.errors] == [107]
        assert [item.id for item in found.items] == [row for row in range(N) if row != 7]


def test_rows_without_a_value_an_id_or_a_key_are_named() -> None:
    contents = contents_of(Definition(kind="codes", n_bits=8))
    code = pa.array([b"a", None, b"c", b"d"], pa.binary(1))
    found = items(contents, id=pa.array([1, 2, None, -4]), code=code)
    assert [item.id for item in found.items] == [1]
    assert [error.row for error in found.errors] == [101, 102, 103]
    keyed = items(contents, key=pa.array(["a", "b", "", "k" * 600]), code=code)
    assert [item.key for item in keyed.items] == ["a"]
    large = items(contents, id=pa.array([2**63], pa.uint64()), code=code[:1])
    assert "from 0 to 2^63 - 1" in large.errors[0].detail


def test_a_text_column_called_payload_holds_json_objects() -> None:
    contents = contents_of(Definition(kind="codes", n_bits=8))
    texts = pa.array(['{"a": 1}', None, "[1]", "no JSON", "{}"])
    code = pa.array([b"x"] * 5, pa.binary(1))
    found = items(contents, id=pa.array(range(5)), code=code, payload=texts)
    assert [item.payload for item in found.items] == ['{"a": 1}', None, "{}"]
    assert [error.row for error in found.errors] == [102, 103]
    both = items(
        contents,
        id=pa.array([0, 1]),
        code=code[:2],
        payload=pa.array(['{"a": 1}', None]),
        lang=pa.array(["de", "fr"]),
    )
    assert [orjson.loads(item.payload or "") for item in both.items] == [
        {"lang": "de", "a": 1},
        {"lang": "fr"},
    ]


def test_a_column_called_payload_that_is_no_text_is_a_field_like_others() -> None:
    contents = contents_of(Definition(kind="codes", n_bits=8))
    found = items(
        contents, id=pa.array([0]), code=pa.array([b"x"], pa.binary(1)), payload=pa.array([7])
    )
    assert found.items[0].payload == '{"payload":7}'


def test_payloads_beyond_the_limit_are_named() -> None:
    contents = contents_of(Definition(kind="codes", n_bits=8))
    text = '{"a": "' + "ä" * (1 << 19) + '"}'
    code = pa.array([b"x", b"y"], pa.binary(1))
    found = items(contents, id=pa.array([0, 1]), code=code, payload=pa.array([text, "{}"]))
    assert [error.row for error in found.errors] == [100]
