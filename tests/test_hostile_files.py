"""Damaged and hostile files: an error that names the file, or a usable index; never a crash.

`make test-asan` runs these tests with a build that detects every out-of-bounds access.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import LONG
from storage_cases import make_index, make_lean_index, repaired, sealed, write

import bitweigh
from bitweigh._storage.manifest import MANIFEST

MOST_BYTES = 20_000
ABSURD: list[Any] = [
    None, True, -1, 0, 1, 2, 33, 2**31, 2**32 - 65, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, 0.5,
    float("inf"), "", "x", "../../etc/passwd", "codes-" + "0" * 32 + ".npy", [], {}, [[]], [0],
    [[0]], [[0], [0]], [list(range(25))], [[10**9]], {"dtype": "|O", "shape": [1]},
]  # fmt: skip


def files_of(index: bitweigh.Index, folder: Path) -> dict[str, bytes]:
    index.save(folder / "index")
    files = {path.name: path.read_bytes() for path in sorted((folder / "index").iterdir())}
    assert sum(map(len, files.values())) <= MOST_BYTES
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An index of format 1."""
    return files_of(make_index(), tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def lean_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An index of format 2."""
    return files_of(make_lean_index(), tmp_path_factory.mktemp("lean"))


@pytest.fixture(scope="module", params=["files", "lean_files"])
def either_files(request: pytest.FixtureRequest) -> dict[str, bytes]:
    found: dict[str, bytes] = request.getfixturevalue(request.param)
    return found


def exercise(index: bitweigh.Index) -> None:
    """Call everything that reads data from files."""
    rng = np.random.default_rng(0)
    costs = rng.standard_normal((index.n_bits, 2))
    index._engine.tuning.warm_up_rows = 32
    index._engine.tuning.min_scan_factor = index._engine.tuning.min_scan_ns_per_k = 0.0
    for method in ("scan", "probe", "auto"):
        index.search(costs, 7, method=method)
        index.search(np.zeros((index.n_bits, 2)), 300, method=method)
        index.range_search(costs, 0.0, method=method)
    index.search(costs, 3, allow=np.ones(50, dtype=np.bool_))
    index.search(costs, 3, deny=[1, 2**40 + 1])
    index.search(costs, 3, allow=[1, 5, 2**40, 2**40 + 1])
    index.search(costs, 300, allow=np.arange(2**40, 2**40 + 300))
    index.search(costs, 300, filter=index.filter(deny=np.arange(300)))
    ids = index.ids
    index.contains([0, 1, 2**40, 2**62])
    known = ids[(ids >= 0)][:3]
    index.codes_of(known[index.contains(known)])
    index.remove(known, on_missing="ignore")
    index.explain(costs, 2)
    index.compact()
    index.search(costs, 7)


def try_files(folder: Path, files: dict[str, bytes], outcomes: Counter[str], full: bool) -> None:
    """Load the files in memory and mapped, and use what still loads."""
    write(folder, files)
    for mapped in (False, True):
        try:
            index = bitweigh.load(folder, mmap=mapped)
        except bitweigh.CorruptFileError:
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        if not full:
            continue
        try:
            exercise(index)
            outcomes["used"] += 1
        except (bitweigh.CorruptFileError, ValueError, KeyError, IndexError):
            outcomes["an error when used"] += 1
        try:
            bitweigh.load(folder, mmap=mapped).verify()
            outcomes["found sound"] += 1
        except bitweigh.CorruptFileError:
            outcomes["found unsound"] += 1


def flips(files: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield copies of a file with one byte changed, for every byte."""
    rng = np.random.default_rng(0)
    for name, raw in files.items():
        for place in range(len(raw)):
            byte = raw[place] ^ int(rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255]))
            yield {**files, name: raw[:place] + bytes([byte]) + raw[place + 1 :]}


def truncations(files: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    for name, raw in files.items():
        for length in range(len(raw)):
            yield {**files, name: raw[:length]}
        yield {other: own for other, own in files.items() if other != name}
        yield {**files, name: raw + b"\0"}


def absurd_manifests(files: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield manifests with one field set to an absurd value or left out."""

    def places(body: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        children = body.items() if isinstance(body, dict) else enumerate(body)  # type: ignore[arg-type,var-annotated]
        for key, value in children:
            yield (*path, key)
            if isinstance(value, dict | list):
                yield from places(value, (*path, key))

    sound = json.loads(files[MANIFEST])
    for path in places(sound):
        for value in [*ABSURD, "left out"]:
            body = json.loads(files[MANIFEST])
            parent = body
            for key in path[:-1]:
                parent = parent[key]
            if value == "left out":
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            raw = json.dumps(body, indent=1).encode() + b"\n"
            if raw != files[MANIFEST]:
                yield {**files, MANIFEST: raw}


def nested(files: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    for depth in (100, 100_000):
        yield {**files, MANIFEST: b"[" * depth + b"]" * depth}
        yield {**files, MANIFEST: b'{"a":' * depth + b"1" + b"}" * depth}
    yield {**files, MANIFEST: b"9" * 10_000}
    yield {**files, MANIFEST: b""}
    yield {**files, MANIFEST: files[MANIFEST].replace(b'"rows": 70', b'"rows": 1e1')}


MUTATIONS: list[Callable[[dict[str, bytes]], Iterator[dict[str, bytes]]]] = [
    flips,
    truncations,
    absurd_manifests,
    nested,
]


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mutated_index_is_refused_unless_its_checksums_match(
    mutate: Callable[[dict[str, bytes]], Iterator[dict[str, bytes]]],
    either_files: dict[str, bytes],
    tmp_path: Path,
) -> None:
    outcomes: Counter[str] = Counter()
    tried = 0
    # Every third byte where time is short: of each array, all bytes of a number in turn.
    step = 3 if mutate in (flips, truncations) and not LONG else 1
    for mutated in itertools.islice(mutate(either_files), 0, None, step):
        tried += 1
        write(tmp_path / "index", mutated)
        with (
            pytest.raises(bitweigh.CorruptFileError)
            if MANIFEST in mutated
            else pytest.raises(FileNotFoundError)
        ):
            bitweigh.load(tmp_path / "index")
        outcomes["refused"] += 1
    print(f"{mutate.__name__}: {tried} tried, {dict(outcomes)}")
    assert tried >= 5


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mutated_index_whose_checksums_match_never_crashes(
    mutate: Callable[[dict[str, bytes]], Iterator[dict[str, bytes]]],
    either_files: dict[str, bytes],
    tmp_path: Path,
) -> None:
    outcomes: Counter[str] = Counter()
    tried = 0
    with warnings.catch_warnings():
        # Every third where time is short.
        for mutated in itertools.islice(mutate(either_files), 0, None, 1 if LONG else 3):
            if MANIFEST not in mutated:
                continue
            tried += 1
            try_files(tmp_path / "index", repaired(mutated), outcomes, full=True)
    print(f"{mutate.__name__}: {tried} tried with repaired checksums, {dict(outcomes)}")
    assert tried >= 2
    if mutate is flips:
        assert outcomes["used"] > 100
        assert outcomes["found unsound"] > 100


@pytest.mark.parametrize("kind", ["codes", "ids", "starts", "band_rows", "band_codes"])
def test_the_error_names_the_file_and_what_is_wrong(
    kind: str, either_files: dict[str, bytes], tmp_path: Path
) -> None:
    files = either_files
    name = next(name for name in files if name.startswith(f"{kind}-"))
    write(tmp_path / "index", {**files, name: files[name][:-1] + b"\xfd"})
    with pytest.raises(bitweigh.CorruptFileError, match="checksum") as caught:
        bitweigh.load(tmp_path / "index")
    assert caught.value.path == tmp_path / "index" / name
    bitweigh.load(tmp_path / "index", mmap=True)
    with pytest.raises(bitweigh.CorruptFileError, match="checksum"):
        bitweigh.load(tmp_path / "index", mmap=True, verify=True)
    with pytest.raises(bitweigh.CorruptFileError, match="checksum") as caught:
        bitweigh.load(tmp_path / "index", mmap=True).verify()
    assert caught.value.path.name == name


def test_an_array_far_larger_than_its_file_takes_no_memory(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    # Consistent in itself: only the file's size tells.
    manifest = json.loads(files[MANIFEST])
    part = manifest["segments"][0]
    rows = 2**31
    part.update(rows=rows, bands=[], starts=None, band_rows=None, band_codes=None, removed=None)
    manifest["files"][part["codes"]]["shape"] = [rows * 3]
    for kind in ("ids", "by_id"):
        if part[kind]:
            manifest["files"][part[kind]]["shape"] = [rows]
    mutated = {**files, MANIFEST: sealed(json.dumps(manifest, indent=1).encode() + b"\n")}
    write(tmp_path / "index", mutated)
    for mapped in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=r"\.npy"):
            bitweigh.load(tmp_path / "index", mmap=mapped)


def test_a_later_format_is_refused_by_its_number(files: dict[str, bytes], tmp_path: Path) -> None:
    later = files[MANIFEST].replace(b'"version": 1', b'"version": 9')
    write(tmp_path / "index", {**files, MANIFEST: sealed(later)})
    with pytest.raises(bitweigh.CorruptFileError, match="format 9"):
        bitweigh.load(tmp_path / "index")


def unsound(tmp_path: Path, files: dict[str, bytes]) -> bitweigh.CorruptFileError:
    """Return what verify finds in files whose checksums match."""
    write(tmp_path / "unsound", repaired(files))
    index = bitweigh.load(tmp_path / "unsound")
    with pytest.raises(bitweigh.CorruptFileError) as caught:
        index.verify()
    return caught.value


def test_verify_finds_damage_in_the_removed_rows_of_a_mapped_index(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    name = next(name for name in files if name.startswith("removed-"))
    raw = bytearray(files[name])
    raw[130] ^= 4
    write(tmp_path / "index", {**files, name: bytes(raw)})
    with pytest.raises(bitweigh.CorruptFileError, match="checksum") as caught:
        bitweigh.load(tmp_path / "index", mmap=True).verify()
    assert caught.value.path.name == name


def test_verify_finds_a_lookup_of_ids_that_need_none(tmp_path: Path) -> None:
    index = bitweigh.Index(20)
    index.add(np.zeros((40, 3), dtype=np.uint8), np.random.default_rng(0).permutation(40) * 2)
    index.save(tmp_path / "sound")
    files = {path.name: path.read_bytes() for path in (tmp_path / "sound").iterdir()}
    manifest = json.loads(files[MANIFEST])
    manifest["tail"] |= {"ids": None, "first_id": 0}
    files[MANIFEST] = json.dumps(manifest, indent=1).encode()
    assert "lookup" in unsound(tmp_path, files).reason


def test_verify_names_the_folder_also_of_an_index_that_was_not_mapped(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    name = next(name for name in files if name.startswith("by_id-"))
    raw = files[name]
    files = {**files, name: raw[:128] + raw[132:136] + raw[128:132] + raw[136:]}
    assert unsound(tmp_path, files).path == tmp_path / "unsound"


def test_a_file_of_another_kind_than_its_field_is_refused(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    part = json.loads(files[MANIFEST])["segments"][0]
    swapped = {
        part["ids"]: part["ids"].replace("ids-", "by_id-"),
        part["by_id"]: part["by_id"].replace("by_id-", "ids-"),
    }
    raw = files[MANIFEST]
    for old, new in swapped.items():
        raw = raw.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
    mutated = {swapped.get(name, name): content for name, content in files.items()}
    write(tmp_path / "index", {**mutated, MANIFEST: sealed(raw)})
    with pytest.raises(bitweigh.CorruptFileError, match="such a file"):
        bitweigh.load(tmp_path / "index")


def test_a_part_of_which_no_row_is_left_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    part = next(one for one in json.loads(files[MANIFEST])["segments"] if one["removed"])
    masks = np.full(-(-part["rows"] // 32), 2**32 - 1, dtype="<u4")
    masks[-1] >>= -part["rows"] % 32
    raw = files[part["removed"]][:128] + masks.tobytes()
    mutated = repaired({**files, part["removed"]: raw})
    write(tmp_path / "index", mutated)
    for mapped in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match="must leave a row") as caught:
            bitweigh.load(tmp_path / "index", mmap=mapped)
        assert caught.value.path.name.startswith("removed-")


@pytest.mark.parametrize("sealed_too", [False, True])
def test_a_manifest_is_not_parsed_before_its_checksum_and_its_size_were_looked_at(
    sealed_too: bool,
    files: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = 1 << (23 if sealed_too else 16)
    raw = files[MANIFEST].replace(
        b'"writer"', b'"more": [' + b"{}," * (size // 3) + b'0], "writer"'
    )
    write(tmp_path / "index", {**files, MANIFEST: sealed(raw) if sealed_too else raw})

    def parse(_: bytes) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr("bitweigh._storage.manifest.json.loads", parse)
    with pytest.raises(
        bitweigh.CorruptFileError, match="at most" if sealed_too else "checksum does not match"
    ):
        bitweigh.load(tmp_path / "index")


def test_a_later_format_is_refused_by_its_number_also_with_another_checksum(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    later = files[MANIFEST].replace(b'"version": 1', b'"version": 12')
    write(tmp_path / "index", {**files, MANIFEST: later})
    with pytest.raises(bitweigh.CorruptFileError, match="format 12; this version"):
        bitweigh.load(tmp_path / "index")


LEAN_KINDS = {
    "codes": "|u1",
    "ids": "<i8",
    "starts": "<u4",
    "band_rows": "<u4",
    "band_codes": "|u1",
}


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
    "band_bits of the index": (lambda body: body.update(band_bits=25), "band_bits"),
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
