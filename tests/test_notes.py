"""Notes: a small JSON object that is saved with an index and stays with it."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitweigh
from bitweigh._storage.manifest import sealed
from bitweigh._storage.note import MAX_NOTE_BYTES, note_from, note_text

AnyIndex = bitweigh.Index | bitweigh.VectorIndex | bitweigh.BinaryEmbeddings
CODES = np.array([[1], [2], [3]], dtype=np.uint8)
NOTE = {"model": "v2", "layers": [1, 2.5, None, True], "more": {"checksum": "0" * 32}}


def new_index() -> bitweigh.Index:
    index = bitweigh.Index(8)
    index.add(CODES)
    return index


def new_vectors(**options: Any) -> bitweigh.VectorIndex:
    index = bitweigh.VectorIndex(n_bits=8, hasher="lsh", **options).fit(np.eye(4))
    index.add(np.eye(4))
    return index


def new_embeddings() -> bitweigh.BinaryEmbeddings:
    embeddings = bitweigh.BinaryEmbeddings(dim=8)
    embeddings.add(CODES)
    return embeddings


NEW: list[Callable[[], AnyIndex]] = [
    new_index,
    new_vectors,
    lambda: new_vectors(rerank="float32"),
    new_embeddings,
]
every_kind = pytest.mark.parametrize("new", NEW)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    # Unpaired surrogates are JSON, too.
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
).filter(lambda value: "Infinity" not in json.dumps(value))


@every_kind
def test_a_note_comes_back_from_the_folder(new: Callable[[], AnyIndex], tmp_path: Path) -> None:
    index = new()
    assert index.note == {}
    index.save(tmp_path / "index", note=NOTE)
    assert index.note == NOTE
    for mapped in (False, True):
        assert type(index).load(tmp_path / "index", mmap=mapped).note == NOTE


@every_kind
def test_a_later_save_keeps_the_note(new: Callable[[], AnyIndex], tmp_path: Path) -> None:
    new().save(tmp_path / "index", note=NOTE)
    index = type(new()).load(tmp_path / "index")
    index.remove([0])
    index.save(tmp_path / "index")
    index.save(tmp_path / "other", note=None)
    for name in ("index", "other"):
        assert type(index).load(tmp_path / name).note == NOTE


@every_kind
def test_an_empty_note_removes_it(new: Callable[[], AnyIndex], tmp_path: Path) -> None:
    index = new()
    index.save(tmp_path / "plain")
    index.save(tmp_path / "index", note=NOTE)
    index.save(tmp_path / "index", note={})
    assert index.note == {}
    manifest = (tmp_path / "index" / "manifest.json").read_bytes()
    assert manifest == (tmp_path / "plain" / "manifest.json").read_bytes()


@every_kind
def test_nobody_can_change_a_note_but_by_saving(
    new: Callable[[], AnyIndex], tmp_path: Path
) -> None:
    index = new()
    note = copy.deepcopy(NOTE)
    index.save(tmp_path / "index", note=note)
    note["model"] = "v3"
    index.note["layers"].append(5)
    assert index.note == NOTE


def test_copies_and_pickles_keep_the_note(tmp_path: Path) -> None:
    index = new_index()
    index.save(tmp_path / "index", note=NOTE)
    mapped = bitweigh.Index.load(tmp_path / "index", mmap=True)
    for one_index in (index, mapped):
        for other in (one_index.copy(), copy.copy(one_index), copy.deepcopy(one_index)):
            assert other.note == NOTE
        assert pickle.loads(pickle.dumps(one_index)).note == NOTE
    vectors = new_vectors()
    vectors.save(tmp_path / "vectors", note=NOTE)
    assert pickle.loads(pickle.dumps(vectors)).note == NOTE
    mapped_vectors = bitweigh.VectorIndex.load(tmp_path / "vectors", mmap=True)
    assert pickle.loads(pickle.dumps(mapped_vectors)).note == NOTE
    assert vectors.index.note == NOTE


def test_a_copy_has_its_own_note(tmp_path: Path) -> None:
    index = new_index()
    other = index.copy()
    other.save(tmp_path / "index", note=NOTE)
    assert index.note == {}


def test_a_mapped_index_is_pickled_with_the_note_that_it_has_not_that_of_its_folder(
    tmp_path: Path,
) -> None:
    new_index().save(tmp_path / "index", note=NOTE)
    mapped = bitweigh.Index.load(tmp_path / "index", mmap=True)
    mapped.save(tmp_path / "other", note={"model": "v3"})
    assert pickle.loads(pickle.dumps(mapped)).note == {"model": "v3"}


def test_fitting_again_keeps_the_note(tmp_path: Path) -> None:
    index = new_vectors()
    index.save(tmp_path / "index", note=NOTE)
    index.remove(range(4))
    index.fit(np.eye(4))
    assert index.note == NOTE
    assert bitweigh.VectorIndex().note == {}


def test_a_save_that_fails_does_not_change_the_note(tmp_path: Path) -> None:
    index = new_index()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        index.save(tmp_path / "file", note=NOTE)
    assert index.note == {}


def test_the_note_is_after_the_checksum_in_the_manifest(tmp_path: Path) -> None:
    new_index().save(tmp_path, note=NOTE)
    raw = (tmp_path / "manifest.json").read_bytes()
    assert raw.isascii()
    assert list(json.loads(raw))[:5] == ["format", "version", "checksum", "writer", "note"]


def test_a_note_changes_no_other_field(tmp_path: Path) -> None:
    new_index().save(tmp_path / "noted", note=NOTE)
    new_index().save(tmp_path / "plain")
    noted, plain = (
        json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in ("noted", "plain")
    )
    del noted["note"], noted["checksum"], plain["checksum"]
    assert noted == plain


@given(st.dictionaries(st.text(), values, max_size=4))
def test_any_json_object_is_a_note(note: dict[str, Any]) -> None:
    text = note_text(note)
    assert note_from(text) == note
    assert text.isascii()


@pytest.mark.parametrize(
    ("note", "error", "message"),
    [
        ([], TypeError, "note must be a dict or None, got list"),
        ("text", TypeError, "note must be a dict or None, got str"),
        ({1: 2}, TypeError, "note must have strings as keys, got 1"),
        ({"a": {None: 2}}, TypeError, r"note\['a'\] must have strings as keys, got None"),
        (
            {"a": [0, (1, 2)]},
            TypeError,
            r"note\['a'\]\[1\] must be of objects, .* got tuple",
        ),
        ({"a": np.int64(3)}, TypeError, r"note\['a'\] must be of .*, got int64"),
        ({"a": b"bytes"}, TypeError, r"note\['a'\] must be of .*, got bytes"),
        ({"a": math.nan}, ValueError, r"note\['a'\] must be finite, got nan"),
        ({"a": [-math.inf]}, ValueError, r"note\['a'\]\[0\] must be finite, got -inf"),
        ({"a": 2**63}, ValueError, r"note\['a'\] must fit in 64 bits, got 9223372036854775808"),
        ({"a": "x" * MAX_NOTE_BYTES}, ValueError, "note must take at most 65536 bytes as indented"),
    ],
)
def test_what_is_not_a_note_is_refused(
    note: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    for new in NEW:
        with pytest.raises(error, match=message):
            new().save(tmp_path / "index", note=note)
        assert not (tmp_path / "index").exists()


def test_a_note_that_contains_itself_is_refused(tmp_path: Path) -> None:
    note: dict[str, Any] = {}
    note["again"] = note
    with pytest.raises(ValueError, match="note must be nested at most 32 deep"):
        new_index().save(tmp_path, note=note)


def test_the_largest_note_can_be_saved_and_loaded(tmp_path: Path) -> None:
    index = new_index()
    room = MAX_NOTE_BYTES - len(json.dumps({"note": {"a": ""}}, indent=1))
    index.save(tmp_path, note={"a": "x" * room})
    assert len(bitweigh.Index.load(tmp_path).note["a"]) == room
    with pytest.raises(ValueError, match="takes 65537"):
        index.save(tmp_path, note={"a": "x" * (room + 1)})


@pytest.mark.parametrize("note", [[], 1, "text", False, {"a": math.nan}])
def test_a_manifest_whose_note_is_none_is_damaged(note: Any, tmp_path: Path) -> None:
    new_index().save(tmp_path)
    path = tmp_path / "manifest.json"
    fields = json.loads(path.read_bytes())
    for name in ("format", "version", "checksum", "writer"):
        del fields[name]
    path.write_bytes(sealed({"note": note, **fields}, bitweigh._storage.formats.INDEX))
    with pytest.raises(bitweigh.CorruptFileError, match="note"):
        bitweigh.Index.load(tmp_path)
