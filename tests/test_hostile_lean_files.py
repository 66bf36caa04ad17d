"""Hostile folders of format 2: wrong values of lean rows, and manifests that none can have.

Every byte of them is changed in test_hostile_files.py. `make test-asan` runs both files.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from storage_cases import exercise, make_lean_index, repaired, saved_files, sealed, write

import bitweigh
from bitweigh._storage.manifest import MANIFEST

LEAN_KINDS = {
    "codes": "|u1",
    "ids": "<i8",
    "starts": "<u4",
    "band_rows": "<u4",
    "band_codes": "|u1",
}


@pytest.fixture(scope="module")
def lean_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return saved_files(make_lean_index(), tmp_path_factory.mktemp("lean"))


def lean_part(files: dict[str, bytes]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = json.loads(files[MANIFEST])["segments"]
    return next(part for part in parts if "lean" in part)


def with_array(
    files: dict[str, bytes], kind: str, change: Callable[[Any], None]
) -> dict[str, bytes]:
    """Return the files with an array of the lean part changed, as if it had been written so."""
    name = lean_part(files)[kind]
    array = np.frombuffer(files[name][128:], LEAN_KINDS[kind]).copy()
    change(array)
    return repaired({**files, name: files[name][:128] + array.tobytes()})


def with_fields(files: dict[str, bytes], change: Callable[[Any], None]) -> dict[str, bytes]:
    """Return the files with another manifest."""
    body = json.loads(files[MANIFEST])
    change(body)
    return {**files, MANIFEST: sealed(json.dumps(body, indent=1).encode() + b"\n")}


def setting(place: int | slice, value: Any) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        array[place] = value

    return change


def swap(array: Any) -> None:
    array[:] = array[::-1].copy()


UNSOUND: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "a start above all rows": ("starts", setting(3, 2**32 - 1), "order of its keys"),
    "a start a little above": ("starts", setting(16, 71), "order of its keys"),
    "all starts above": ("starts", setting(slice(None), 2**32 - 1), "order of its keys"),
    "no key has rows": ("starts", setting(slice(None), 0), "order of its keys"),
    "starts descend": ("starts", lambda array: swap(array[:17]), "order of its keys"),
    "a start at the end": ("starts", setting(8, 70), "order of its keys"),
    "starts of band 1 above": ("starts", setting(slice(17, None), 2**32 - 1), "band 1 is not"),
    "starts of band 1 descend": ("starts", lambda array: swap(array[17:]), "band 1 is not"),
    "a row above all": ("band_rows", setting(0, 70), "order of its keys"),
    "rows far above": ("band_rows", setting(slice(None), 2**32 - 1), "order of its keys"),
    "a row twice": ("band_rows", setting(slice(0, 2), 7), "order of its keys"),
    "rows in another order": ("band_rows", swap, "order of its keys"),
    "an id twice": ("ids", setting(slice(0, 2), 2**40), "ids are not distinct"),
    "all ids the same": ("ids", setting(slice(None), 3), "ids are not distinct"),
    "ids without gaps but one": ("ids", setting(slice(None), np.arange(70) // 69), "not distinct"),
    "a negative id": ("ids", setting(4, -1), "an id is negative"),
    "ids far apart": ("ids", setting(slice(0, 2), [-(2**63), 2**63 - 1]), "an id is negative"),
    "an id above next_id": ("ids", setting(0, 2**50), "next_id is not larger"),
    "other rests": ("codes", setting(0, 0x55), "band 1 is not in the order|has other codes"),
    "other rests in band 1": ("band_codes", setting(0, 0x55), "has other codes"),
    "padding is not zero": ("codes", setting(-1, 1), "not padded with zeros"),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_wrong_values_of_lean_rows_are_found_by_verify_and_do_no_harm(
    what: str, lean_files: dict[str, bytes], tmp_path: Path
) -> None:
    mutated = with_array(lean_files, *UNSOUND[what][:2])
    write(tmp_path / "index", mutated)
    for mapped in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=UNSOUND[what][2]) as caught:
            bitweigh.load(tmp_path / "index", mmap=mapped).verify()
        assert caught.value.path == tmp_path / "index"
        # Any answer is allowed, and errors of an index whose ids make no sense.
        with contextlib.suppress(bitweigh.CorruptFileError, ValueError, KeyError, IndexError):
            exercise(bitweigh.load(tmp_path / "index", mmap=mapped))


def wider_codes(body: Any) -> None:
    """Codes of 72 bits, with arrays of the sizes that these would take as lean rows."""
    body |= {"n_bits": 72, "tail": None}
    for name, facts in body["files"].items():
        if name in (lean_fields(body)["codes"], lean_fields(body)["band_codes"]):
            facts["shape"][-1] = 96 * 9


def bands_of_two_widths(body: Any) -> None:
    """A band of 4 bits and one of 3."""
    del lean_fields(body)["bands"][1][-1]
    body["files"][lean_fields(body)["starts"]]["shape"] = [17 + 9]


def lean_fields(body: Any) -> Any:
    return next(part for part in body["segments"] if "lean" in part)


def in_part(**fields: Any) -> Callable[[Any], None]:
    return lambda body: lean_fields(body).update(fields)


def of_file(kind: str, **facts: Any) -> Callable[[Any], None]:
    return lambda body: body["files"][lean_fields(body)[kind]].update(facts)


REFUSED: dict[str, tuple[Callable[[Any], None], str]] = {
    "more than 64 bits": (wider_codes, "needs codes of at most 64 bits"),
    "bands of different widths": (bands_of_two_widths, "must all have as many bits"),
    "no bands": (in_part(bands=[]), "must all have as many bits"),
    "bits in two bands": (in_part(bands=[[0, 1, 2, 3], [3, 4, 5, 6]]), "each once"),
    "a bit that codes do not have": (in_part(bands=[[0, 1, 2, 3], [4, 5, 6, 20]]), "each once"),
    "wider bands": (in_part(bands=[list(range(5)), list(range(5, 10))]), "shape"),
    "more bands": (in_part(bands=[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]), "shape"),
    "fewer bands": (in_part(bands=[[0, 1, 2, 3]]), "shape"),
    "band_bits of the index": (lambda body: body.update(band_bits=29), "band_bits"),
    "lean is a word": (in_part(lean="yes"), "lean must be true"),
    "lean is false": (in_part(lean=False), "lean must be true"),
    "lean is 1": (in_part(lean=1), "lean must be true"),
    "not lean": (in_part(lean=None), "shape"),
    "format 1": (lambda body: body.update(version=1), "shape"),
    "no codes": (in_part(codes=None), "codes must be the name"),
    "no starts": (in_part(starts=None), "starts must be the name"),
    "no rows of the second band": (in_part(band_rows=None), "band_rows must be the name"),
    "no codes of the second band": (in_part(band_codes=None), "band_codes must be the name"),
    "neither ids nor the first": (in_part(ids=None), "first_id must be"),
    "a lookup of ids": (in_part(by_id="by_id-" + "0" * 32 + ".npy"), "by_id must be null"),
    "more rows": (in_part(rows=97), "shape"),
    "fewer rows": (in_part(rows=69), "shape"),
    "negative rows": (in_part(rows=-70), "rows must be"),
    "a negative shape": (of_file("codes", shape=[-1]), "shape"),
    "starts of whole numbers": (of_file("starts", dtype="<i8"), "dtype"),
    "starts of another length": (of_file("starts", shape=[33]), "shape"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_manifests_that_no_lean_rows_can_have_are_refused(
    what: str, lean_files: dict[str, bytes], tmp_path: Path
) -> None:
    write(tmp_path / "index", with_fields(lean_files, REFUSED[what][0]))
    for mapped in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=REFUSED[what][1]) as caught:
            bitweigh.load(tmp_path / "index", mmap=mapped)
        assert caught.value.path.name == MANIFEST
