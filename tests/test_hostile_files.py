"""Damaged and hostile files: an error that names the file, or a usable index; never a crash.

`make test-asan` runs these tests with a build that detects every out-of-bounds access.
"""

from __future__ import annotations

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
from storage_cases import (
    exercise,
    make_index,
    make_lean_index,
    repaired,
    saved_files,
    sealed,
    write,
)

import bitweigh
from bitweigh._storage.manifest import MANIFEST

ABSURD: list[Any] = [
    None, True, -1, 0, 1, 2, 33, 2**31, 2**32 - 65, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, 0.5,
    float("inf"), "", "x", "../../etc/passwd", "codes-" + "0" * 32 + ".npy", [], {}, [[]], [0],
    [[0]], [[0], [0]], [list(range(25))], [[10**9]], {"dtype": "|O", "shape": [1]},
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An index of format 1."""
    return saved_files(make_index(), tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def lean_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """An index of format 2."""
    return saved_files(make_lean_index(), tmp_path_factory.mktemp("lean"))


@pytest.fixture(scope="module", params=["files", "lean_files"])
def either_files(request: pytest.FixtureRequest) -> dict[str, bytes]:
    found: dict[str, bytes] = request.getfixturevalue(request.param)
    return found


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
