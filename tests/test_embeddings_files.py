"""Folders of rescored embeddings: other kinds, damage, hostile manifests, the command line."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import run
from embedding_cases import RESCORE, rescored, some_embeddings
from storage_cases import sealed, stopped_at_every_step
from vector_cases import same_bytes

import bitweigh
from bitweigh.embeddings import BinaryEmbeddings, quantize

X = some_embeddings(150)
QUERIES = some_embeddings(4, seed=1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a collection in int8; tests copy it."""
    folder = tmp_path_factory.mktemp("embeddings") / "saved"
    rescored(X).save(folder)
    return folder


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("rescore", RESCORE)
def test_saved_embeddings_are_loaded_again(rescore: Any, mmap: bool, tmp_path: Path) -> None:
    embeddings = rescored(X, rescore)
    embeddings.remove([3, 5])
    embeddings.save(tmp_path, note={"model": "m"})
    loaded = bitweigh.load(tmp_path, mmap=mmap)
    assert isinstance(loaded, BinaryEmbeddings)
    assert loaded.note == embeddings.note == {"model": "m"}
    assert repr(loaded).endswith(f"148 embeddings of 24 dimensions, rescored by {rescore}>")
    assert same_bytes(loaded.search(QUERIES, 9), embeddings.search(QUERIES, 9))
    loaded.verify()
    loaded.add(X[:1])
    assert loaded.ids[-1] == 150


@pytest.mark.parametrize("calibration", [None, X])
def test_an_empty_collection_keeps_its_calibration(calibration: Any, tmp_path: Path) -> None:
    BinaryEmbeddings(24, rescore="int8", calibration=calibration).save(tmp_path)
    loaded = BinaryEmbeddings.load(tmp_path)
    assert (loaded._state.scales is None) == (calibration is None)
    loaded.add(X)
    assert same_bytes(loaded.search(QUERIES, 5), rescored(X).search(QUERIES, 5))


@pytest.mark.parametrize("mmap", [False, True])
def test_embeddings_too_few_for_int8_are_saved_and_loaded_as_floats(
    mmap: bool, tmp_path: Path
) -> None:
    rescored(X[:99]).save(tmp_path)
    loaded = BinaryEmbeddings.load(tmp_path, mmap=mmap)
    loaded.verify()
    assert loaded.vectors_of(range(99)).tobytes() == X[:99].tobytes()
    loaded.add(X[99:])
    assert same_bytes(loaded.search(QUERIES, 9), rescored(X).search(QUERIES, 9))


@pytest.mark.parametrize("clean", [True, False])
def test_wherever_a_save_stops_the_folder_has_the_old_embeddings_or_the_new(
    clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content(embeddings: BinaryEmbeddings) -> tuple[object, ...]:
        found = embeddings.range_search(QUERIES, -np.inf)
        return (found.ids.tobytes(), found.scores.tobytes(), str(embeddings.note))

    embeddings = rescored(X)
    embeddings.save(tmp_path / "start", note={"state": "old"})
    before = content(embeddings)
    embeddings.replace(-X[:5], range(5))
    embeddings.add(X[:3])

    def save(folder: Path) -> None:
        embeddings.save(folder, note={"state": "new"})

    seen = []
    for folder in stopped_at_every_step(
        save, tmp_path / "start", tmp_path, monkeypatch, clean=clean
    ):
        seen += [content(BinaryEmbeddings.load(folder, mmap=mmap)) for mmap in (False, True)]
    after = content(embeddings)
    assert len(seen) > 16
    assert seen == [before] * seen.count(before) + [after] * seen.count(after)
    assert seen.count(before)
    assert seen.count(after)


def test_without_vectors_the_folder_is_that_of_an_index(tmp_path: Path) -> None:
    index = bitweigh.Index(24)
    plain = BinaryEmbeddings(24)
    for one, name in ((index, "index"), (plain, "plain")):
        one.add(quantize(X))
        one.save(tmp_path / name)
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("index", "plain")
    ]
    assert files[0] == files[1]


def test_each_class_refuses_the_folders_of_the_others(saved: Path, tmp_path: Path) -> None:
    expected = "holds a collection of embeddings, not "
    with pytest.raises(FileNotFoundError, match=expected + "an index: bitweigh.load reads it"):
        bitweigh.Index.load(saved)
    with pytest.raises(FileNotFoundError, match=expected + "a vector index"):
        bitweigh.VectorIndex.load(saved)
    vectors = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(X)
    vectors.save(tmp_path / "vectors")
    with pytest.raises(FileNotFoundError, match="holds a vector index, not a collection"):
        BinaryEmbeddings.load(tmp_path / "vectors")
    plain = BinaryEmbeddings(24)
    plain.save(tmp_path / "plain")
    for one, folder in ((plain, saved), (vectors, saved), (rescored(X), tmp_path / "plain")):
        with pytest.raises(FileExistsError, match="the folder holds"):
            one.save(folder)


def test_the_index_of_mapped_embeddings_is_pickled_as_their_folder(saved: Path) -> None:
    raw = pickle.dumps(BinaryEmbeddings.load(saved, mmap=True).index)
    assert len(raw) < 1000
    index = pickle.loads(raw)
    assert index.codes_of([3]).tolist() == quantize(X[3:4]).tolist()
    index.verify()


@pytest.mark.parametrize("kind", ["scales", "vectors", "vector_ids", "codes"])
def test_a_damaged_file_is_reported(kind: str, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "damaged")
    (path,) = (tmp_path / "damaged").glob(f"{kind}-*.npy")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(bitweigh.CorruptFileError, match=kind):
        BinaryEmbeddings.load(tmp_path / "damaged")
    if kind in ("scales", "codes"):
        return
    mapped = BinaryEmbeddings.load(tmp_path / "damaged", mmap=True)
    with pytest.raises(bitweigh.CorruptFileError):
        mapped.verify()


@pytest.mark.parametrize("kind", ["scales", "vectors", "vector_ids"])
def test_a_missing_or_short_file_is_reported(kind: str, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "damaged")
    (path,) = (tmp_path / "damaged").glob(f"{kind}-*.npy")
    path.write_bytes(path.read_bytes()[:-1])
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match=kind):
            BinaryEmbeddings.load(tmp_path / "damaged", mmap=mmap)
    path.unlink()
    with pytest.raises(bitweigh.CorruptFileError, match=f"{kind}.*missing"):
        BinaryEmbeddings.load(tmp_path / "damaged")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rescore": "float64"}, "attachments.rescore must be 'int8' or"),
        ({"rescore": None}, "attachments.rescore must be"),
        ({"rescore": "float32"}, "attachments.scales must be null unless rescore is 'int8'"),
        ({"rescore": "float32", "scales": None}, "attachments.vectors must .* a file of float32"),
        ({"scales": None}, "attachments.vectors must be the name of a file of float32"),
        ({"rows": 149}, r"with shape \[149, 24\]"),
        ({"rows": 0}, "its vectors and codes do not fit each other"),
        ({"vectors": None}, "attachments.vectors must be the name of such a file"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(
    changes: dict[str, Any], message: str, saved: Path, tmp_path: Path
) -> None:
    shutil.copytree(saved, tmp_path / "hostile")
    path = tmp_path / "hostile" / "manifest.json"
    body = json.loads(path.read_bytes())
    body["attachments"] |= changes
    path.write_bytes(sealed((json.dumps(body, indent=1) + "\n").encode()))
    with pytest.raises(bitweigh.CorruptFileError, match=message):
        BinaryEmbeddings.load(tmp_path / "hostile")


def test_vectors_that_are_not_finite_are_damage(tmp_path: Path) -> None:
    embeddings = rescored(X, "float32")
    bad = X.copy()
    bad[7, 7] = np.inf
    stored = bitweigh._vectors.store.Vectors.of_arrays(np.arange(150), bad)
    embeddings._state = bitweigh._embeddings.state.EmbeddingsState(
        embeddings._state.index, "float32", stored
    )
    embeddings.save(tmp_path)
    with pytest.raises(bitweigh.CorruptFileError, match="must hold finite numbers"):
        BinaryEmbeddings.load(tmp_path)
    with pytest.raises(bitweigh.CorruptFileError, match="must hold finite numbers"):
        BinaryEmbeddings.load(tmp_path, mmap=True).verify()


def test_the_command_line_shows_and_checks_embeddings(saved: Path) -> None:
    shown = run("info", str(saved))
    assert "150 embeddings of 24 dimensions" in shown.stdout
    assert "bits, then int8 vectors" in shown.stdout
    facts = json.loads(run("info", str(saved), "--json").stdout)
    assert (facts["holds"], facts["rescore"]) == ("embeddings", "int8")
    assert "150 embeddings, nothing is damaged" in run("verify", str(saved)).stdout
    refused = run("compact", str(saved))
    assert refused.exit_code == 1
    assert "bitweigh.BinaryEmbeddings.load opens the folder" in refused.stderr
