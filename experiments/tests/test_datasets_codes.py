"""MixtureCodes: the same pieces for any n and any threads, distributed like hashed vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bitweigh.hashers import ITQ, LSH
from bitweigh_experiments.datasets import CodeFiles, MixtureCodes, MixtureGenerator, write_pieces
from bitweigh_experiments.datasets.mixture_codes import _projected_factors, _quantiles

PIECE = 5000


def world(n: int, seed: int, d: int = 24) -> NDArray[np.float32]:
    """Draw rows of 20 clusters that overlap."""
    centres = np.random.default_rng(7).standard_normal((20, d)) * 1.5
    turns = np.random.default_rng(8).standard_normal((20, d, d)) / np.sqrt(d)
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 20, n)
    noise = np.einsum("ni,nij->nj", rng.standard_normal((n, d)), turns[which])
    return (centres[which] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def mixture() -> MixtureGenerator:
    return MixtureGenerator(n_clusters=20, seed=3).fit(world(20_000, 1))


def codes_of(mixture: MixtureGenerator, bits: int, rows: int, seed: int = 0) -> MixtureCodes:
    return MixtureCodes(
        mixture, LSH(bits, seed=5).fit(world(2000, 2)), rows, seed=seed, piece_rows=PIECE
    )


@pytest.mark.parametrize("bits", [7, 16, 24, 40])
def test_pieces_depend_neither_on_rows_nor_on_threads(mixture: MixtureGenerator, bits: int) -> None:
    short, long = codes_of(mixture, bits, PIECE + 17), codes_of(mixture, bits, 7 * PIECE)
    ahead = list(long.pieces(threads=3))
    assert [len(piece) for piece in short.pieces()] == [PIECE, 17]
    assert len(ahead) == long.n_pieces == 7
    for number, piece in enumerate(ahead):
        assert np.array_equal(piece, long.piece(number))
    assert np.array_equal(short.piece(0), ahead[0])
    assert np.array_equal(short.piece(1), ahead[1][:17])
    assert np.array_equal(long.with_rows(PIECE + 17).piece(1), short.piece(1))


def test_pieces_and_seeds_differ(mixture: MixtureGenerator) -> None:
    source = codes_of(mixture, 24, 2 * PIECE)
    assert not np.array_equal(source.piece(0), source.piece(1))
    assert not np.array_equal(source.piece(0), codes_of(mixture, 24, PIECE, seed=1).piece(0))


def test_sources_of_the_same_sequence_share_a_fingerprint(mixture: MixtureGenerator) -> None:
    source = codes_of(mixture, 24, PIECE)
    assert source.fingerprint == codes_of(mixture, 24, 3 * PIECE).fingerprint
    others = [codes_of(mixture, 24, PIECE, seed=1), codes_of(mixture, 16, PIECE)]
    others.append(MixtureCodes(mixture, LSH(24, seed=6).fit(world(2000, 2)), PIECE))
    assert len({source.fingerprint, *(other.fingerprint for other in others)}) == 4


def pair_shares(codes: NDArray[np.uint8], bits: int) -> NDArray[np.float64]:
    """Return how often each two bits are both set; on the diagonal, how often each is."""
    ones = np.unpackbits(codes, axis=1, count=bits).astype(np.float64)
    return np.asarray(ones.T @ ones / len(ones))


@pytest.mark.parametrize("bits", [16, 40])
def test_bits_are_distributed_as_those_of_hashed_vectors(
    mixture: MixtureGenerator, bits: int
) -> None:
    source = codes_of(mixture, bits, 12 * PIECE)
    drawn = np.concatenate(list(source.pieces()))
    hashed = LSH(bits, seed=5).fit(world(2000, 2)).transform(mixture.sample(len(drawn)))
    # The standard error of a share is at most 0.5 / sqrt(60,000) = 0.002, of a gap 0.003.
    gaps = np.abs(pair_shares(drawn, bits) - pair_shares(hashed, bits))
    assert gaps.max() < 0.015
    assert gaps.mean() < 0.004


@pytest.mark.parametrize("bits", [10, 40])
def test_clusters_have_the_covariance_of_their_projected_rows(bits: int) -> None:
    # Few rows a cluster: the pooled covariance has a large share.
    mixture = MixtureGenerator(n_clusters=20, seed=3).fit(world(300, 1))
    projection = LSH(bits, seed=5).fit(world(2000, 2)).projection_
    for number, factor in enumerate(_projected_factors(mixture, projection)):
        parts = [mixture.factors_[number], mixture.pooled_scales_[number] * mixture.pooled_factor_]
        expected = sum((part @ projection).T @ (part @ projection) for part in parts)
        assert np.allclose(factor.T @ factor, expected, atol=1e-4 * np.abs(expected).max())


def test_as_many_codes_are_equal_as_among_hashed_vectors(mixture: MixtureGenerator) -> None:
    source = codes_of(mixture, 16, 12 * PIECE)
    drawn = np.concatenate(list(source.pieces()))
    hashed = LSH(16, seed=5).fit(world(2000, 2)).transform(mixture.sample(len(drawn)))
    seen = [
        np.square(np.bincount(codes.view(np.uint16)[:, 0]).astype(float)).sum() / len(codes)
        for codes in (drawn, hashed)
    ]
    assert seen[0] == pytest.approx(seen[1], rel=0.05)


def test_first_rows_are_of_all_clusters(mixture: MixtureGenerator) -> None:
    source = codes_of(mixture, 16, PIECE)
    gaps = pair_shares(source.piece(0)[:1000], 16) - pair_shares(source.piece(0), 16)
    assert np.abs(gaps).max() < 0.08


def test_queries_have_the_bits_of_codes(mixture: MixtureGenerator) -> None:
    source = codes_of(mixture, 16, 12 * PIECE)
    ones = (source.queries(20_000) > source.thresholds).mean(axis=0)
    expected = np.diagonal(pair_shares(np.concatenate(list(source.pieces())), 16))
    assert np.abs(ones - expected).max() < 0.02
    assert np.array_equal(source.queries(10), source.queries(50)[:10])
    assert not np.array_equal(source.queries(10), source.sample(10))


def test_normal_numbers_have_the_moments_of_a_normal_distribution() -> None:
    values = _quantiles().astype(np.float64)
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert np.square(values).mean() == pytest.approx(1, abs=1e-6)
    assert (values**4).mean() == pytest.approx(3, abs=0.01)
    assert (np.diff(values) > 0).all()


def test_codes_of_itq_follow_its_bit_order(mixture: MixtureGenerator) -> None:
    big, little = (
        MixtureCodes(mixture, ITQ(12, bitorder=order).fit(world(2000, 2)), 100, piece_rows=128)
        for order in ("big", "little")
    )
    bits = [
        np.unpackbits(source.piece(0), axis=1, count=12, bitorder=order)
        for source, order in ((big, "big"), (little, "little"))
    ]
    assert np.array_equal(*bits)


def test_a_hasher_of_other_vectors_is_refused(mixture: MixtureGenerator) -> None:
    with pytest.raises(ValueError, match="24 dimensions, the hasher 5"):
        MixtureCodes(mixture, LSH(8).fit(world(100, 1)[:, :5]), 10)


def test_pieces_are_written_once_and_read_back(mixture: MixtureGenerator, tmp_path: Path) -> None:
    source = codes_of(mixture, 24, 3 * PIECE + 9)
    seen: list[int] = []
    files = write_pieces(source, tmp_path / "codes", threads=2, report=seen.append)
    assert sum(seen) == source.rows == files.rows
    for number in range(4):
        assert np.array_equal(files.piece(number), source.piece(number))
    (tmp_path / "codes" / "codes-000001.npy").unlink()
    (tmp_path / "codes" / "codes-000002.partial").write_bytes(b"half")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "codes").glob("*.npy")}
    again = write_pieces(source, tmp_path / "codes")
    assert np.array_equal(again.piece(1), source.piece(1))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_longer_source_completes_the_last_piece(
    mixture: MixtureGenerator, tmp_path: Path
) -> None:
    write_pieces(codes_of(mixture, 24, PIECE + 9), tmp_path)
    files = write_pieces(codes_of(mixture, 24, 2 * PIECE), tmp_path)
    assert [len(piece) for piece in files.pieces()] == [PIECE, PIECE]
    assert [len(piece) for piece in CodeFiles(tmp_path, 24, PIECE + 3).pieces()] == [PIECE, 3]


def test_a_gap_or_another_width_is_refused(mixture: MixtureGenerator, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no files"):
        CodeFiles(tmp_path, 24)
    write_pieces(codes_of(mixture, 24, 3 * PIECE), tmp_path)
    with pytest.raises(ValueError, match="expected uint8 of 4 columns"):
        CodeFiles(tmp_path, 32)
    (tmp_path / "codes-000001.npy").unlink()
    with pytest.raises(FileNotFoundError, match="missing before codes-000002"):
        CodeFiles(tmp_path, 24)
