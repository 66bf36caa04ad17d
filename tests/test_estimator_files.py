"""Fitted hashers and weighers as files: loaded unchanged, and damaged files refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_transformer_get_feature_names_out

import bitweigh
from bitweigh import hashers, weighers
from bitweigh._disk import writing
from bitweigh.hashers import ITQ, LSH, Levels, Sign
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._files import from_bytes, to_bytes
from bitweigh.weighers import Asym, InnerProduct, Wh
from bitweigh.weighers._base import Weigher

ROWS = np.random.default_rng(3).standard_normal((200, 6)).astype(np.float32)
HASHERS = [
    ITQ(5, n_rounds=3, seed=2),
    LSH(11, bitorder="little", max_fit_rows=50),
    Sign(threshold="median"),
    Levels(9, bitorder="little"),
    Levels(4, rotation="random", origin="zero"),
]
WEIGHERS = [Asym(), Asym("lower_bound"), Wh(n_rows=20, seed=1), InnerProduct()]

KINDS = tuple(hashers.BY_NAME.values())


def fitted_weigher(weigher: Weigher) -> Weigher:
    hasher = Sign(threshold="median").fit(ROWS)
    return clone(weigher).fit(hasher.project(ROWS), hasher.thresholds_)


@pytest.mark.parametrize("hasher", HASHERS, ids=repr)
def test_a_loaded_hasher_makes_the_same_projections_and_codes(
    hasher: Hasher, tmp_path: Path
) -> None:
    own = clone(hasher).fit(ROWS)
    own.save(tmp_path / "file")
    loaded = hashers.load(tmp_path / "file")
    assert type(loaded) is type(own)
    assert repr(loaded) == repr(own)
    assert vars(loaded).keys() == vars(own).keys()
    assert loaded.project(ROWS).tobytes() == own.project(ROWS).tobytes()
    np.testing.assert_array_equal(loaded.transform(ROWS), own.transform(ROWS))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("weigher", WEIGHERS, ids=repr)
def test_a_loaded_weigher_makes_the_same_costs(weigher: Weigher, tmp_path: Path) -> None:
    own = fitted_weigher(weigher)
    own.save(str(tmp_path / "weigher.npz"))
    loaded = weighers.load(str(tmp_path / "weigher.npz"))
    assert repr(loaded) == repr(own)
    queries = ROWS[:9].astype(np.float64)
    assert loaded.costs(queries).tobytes() == own.costs(queries).tobytes()


def test_the_same_hasher_makes_the_same_bytes() -> None:
    assert to_bytes(LSH(9).fit(ROWS)) == to_bytes(LSH(9).fit(ROWS))


def test_parameters_that_numpy_counted_are_saved_too() -> None:
    raw = to_bytes(LSH(np.int64(9)).fit(ROWS))  # type: ignore[arg-type]
    assert from_bytes(raw, Path("x"), KINDS).get_params()["n_bits"] == 9


def test_what_is_not_fitted_or_not_ours_is_not_saved(tmp_path: Path) -> None:
    class Derived(LSH):
        pass

    with pytest.raises(ValueError, match="not fitted yet"):
        LSH(9).save(tmp_path / "file")
    with pytest.raises(TypeError, match="only hashers and weighers of bitweigh can be saved, got"):
        Derived(9).fit(ROWS).save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_each_loader_reads_its_own_kind_only(tmp_path: Path) -> None:
    LSH(9).fit(ROWS).save(tmp_path / "file")
    with pytest.raises(
        bitweigh.CorruptFileError, match="one of Asym, Wh, InnerProduct, Decoded, got 'LSH'"
    ):
        weighers.load(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        weighers.load(tmp_path / "none")


def members(raw: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(raw)) as loaded:
        return dict(loaded)


def archive_of(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def changed_about(**changed: object) -> np.ndarray:
    """Return the "about" record of a saved LSH with some fields changed."""
    fields = json.loads(str(members(to_bytes(LSH(9).fit(ROWS)))["about"]))
    return np.array(json.dumps({**fields, **changed}))


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"about": None}, "must have a text 'about'"),
        ({"about": np.array("[")}, "about must be JSON"),
        ({"about": np.array("[]")}, "not the file of a hasher"),
        ({"about": changed_about(format="other")}, "not the file of a hasher"),
        (
            {"about": changed_about(version=2)},
            "written in format 2; this version of bitweigh reads 1",
        ),
        (
            {"about": changed_about(**{"class": "os.system"})},
            "must hold one of ITQ, LSH, Sign, Scalar, Levels, got 'os",
        ),
        ({"about": changed_about(parameters={"n_bits": 9})}, "parameters must be n_bits, seed"),
        ({"about": changed_about(parameters=[])}, "parameters must be n_bits, seed"),
        (
            {
                "about": changed_about(
                    parameters={"n_bits": 9, "seed": 0, "max_fit_rows": 9, "bitorder": "x"}
                )
            },
            "bitorder must be one of big, little",
        ),
        (
            {
                "about": changed_about(
                    parameters={"n_bits": "9", "seed": 0, "max_fit_rows": 9, "bitorder": "big"}
                )
            },
            "n_bits must be an integer, got '9'",
        ),
        ({"n_bits_": np.array(0)}, "n_bits_ must be from 1 to 8192, got 0"),
        ({"n_bits_": np.array(9.0)}, "n_bits_ must be an integer"),
        ({"n_bits_": np.array(8)}, r"projection_ must have shape \(6, 8\), got \(6, 9\)"),
        ({"mean_": None}, "mean_ must be an array of float64"),
        ({"mean_": np.zeros(6, np.float32)}, "mean_ must be an array of float64"),
        ({"mean_": np.full(6, np.nan)}, "mean_ must be finite"),
        ({"mean_": np.zeros((6, 1))}, r"mean_ must have shape \(6,\), got \(6, 1\)"),
        ({"more_": np.zeros(1)}, "LSH has no more_"),
        ({"mean_": np.array([{}] * 6, dtype=object)}, "not the file of a hasher"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(changed: dict[str, Any], match: str) -> None:
    arrays = {**members(to_bytes(LSH(9).fit(ROWS))), **changed}
    raw = archive_of({name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(bitweigh.CorruptFileError, match=match) as caught:
        from_bytes(raw, Path("a/b.npz"), KINDS)
    assert caught.value.path == Path("a/b.npz")


def test_a_compressed_file_is_refused() -> None:
    file = io.BytesIO()
    np.savez_compressed(file, **members(to_bytes(LSH(9).fit(ROWS))))
    with pytest.raises(bitweigh.CorruptFileError, match="must not be compressed"):
        from_bytes(file.getvalue(), Path("x"), KINDS)


def test_a_header_that_promises_more_than_there_is_is_refused() -> None:
    arrays = {**members(to_bytes(Sign().fit(ROWS)))}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            own = io.BytesIO()
            np.save(own, array)
            raw = own.getvalue()
            if name == "threshold_":
                raw = raw.replace(b"(6,), }            ", b"(6000000000000,), }")
            archive.writestr(f"{name}.npy", raw)
    with pytest.raises(bitweigh.CorruptFileError, match="does not fit its data"):
        from_bytes(file.getvalue(), Path("x"), KINDS)


def test_a_pickle_is_not_opened() -> None:
    with pytest.raises(bitweigh.CorruptFileError, match="not a zip file"):
        from_bytes(pickle.dumps({}), Path("x"), KINDS)


@given(st.integers(0, 2**32), st.integers(0, 7), st.booleans())
@settings(max_examples=150)
def test_a_damaged_byte_is_found_or_changes_nothing(place: int, bit: int, cut: bool) -> None:
    hasher = Sign(threshold="median").fit(ROWS)
    raw = bytearray(to_bytes(hasher))
    place %= len(raw)
    raw[place] ^= 1 << bit
    damaged = bytes(raw[:place] if cut else raw)
    try:
        loaded = from_bytes(damaged, Path("x"), KINDS)
    except bitweigh.CorruptFileError:
        return
    assert loaded.thresholds_.tobytes() == hasher.thresholds_.tobytes()
    assert repr(loaded) == repr(hasher)


@pytest.mark.parametrize("hasher", HASHERS, ids=repr)
def test_scikit_learn_clones_hashers_without_what_they_learned(hasher: Hasher) -> None:
    copy = clone(clone(hasher).fit(ROWS))
    assert copy.get_params() == hasher.get_params()
    assert not hasattr(copy, "n_features_in_")


@pytest.mark.parametrize("hasher", [ITQ(1), LSH(20), Sign(), Levels(20)], ids=repr)
def test_hashers_name_their_columns_as_scikit_learn_wants(hasher: Hasher) -> None:
    check_transformer_get_feature_names_out(type(hasher).__name__, hasher)
    names = clone(hasher).fit(ROWS).get_feature_names_out()
    assert names[0] == f"{type(hasher).__name__.lower()}0"


def test_names_are_only_asked_of_what_is_fitted() -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        LSH(9).get_feature_names_out()


def test_the_inner_product_is_that_of_the_projections_beyond_their_thresholds() -> None:
    thresholds = np.array([0.5, -1.0])
    weigher = InnerProduct().fit(np.ones((3, 2)), thresholds)
    query = np.array([2.0, 3.0])
    np.testing.assert_array_equal(
        weigher.costs(query), bitweigh.costs.inner_product(query - thresholds)
    )


def test_the_folder_of_a_file_is_synced_once_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []

    def sync(folder: Path) -> None:
        assert (tmp_path / "file").exists()
        synced.append(folder)

    monkeypatch.setattr(writing, "sync_folder", sync)
    LSH(9).fit(ROWS).save(tmp_path / "file")
    assert synced == [tmp_path]


def test_a_file_with_nothing_in_it_takes_no_memory_however_long_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for size in (2**34, 2**40):
        os.truncate(tmp_path / "file", size)  # takes no space on the disk
        with pytest.raises(bitweigh.CorruptFileError, match=r"not a zip file|must have at most"):
            hashers.load(tmp_path / "file")


def test_a_file_that_lists_more_than_a_hasher_has_is_not_taken_apart() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1000):
            archive.writestr(f"{number}.npy", b"")
    with pytest.raises(bitweigh.CorruptFileError, match="lists too many arrays"):
        from_bytes(file.getvalue(), Path("x"), KINDS)


def test_a_long_description_is_not_parsed() -> None:
    arrays = members(to_bytes(LSH(9).fit(ROWS)))
    arrays["about"] = np.array("[" + "{}," * 10_000 + "0]")
    with pytest.raises(bitweigh.CorruptFileError, match="about must have at most"):
        from_bytes(archive_of(arrays), Path("x"), KINDS)
