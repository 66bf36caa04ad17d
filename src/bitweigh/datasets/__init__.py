"""Vectors to hash and search: readers of files, the paper's data sets, and a generator.

Nothing is ever downloaded: readers take files and loaders take folders that you have.
"""

from bitweigh.datasets.bins import read_fbin, read_i8bin, read_u8bin
from bitweigh.datasets.dataset import Dataset
from bitweigh.datasets.files import read, read_npy, read_npz
from bitweigh.datasets.generator import MixtureGenerator
from bitweigh.datasets.hdf5 import AnnBenchmarks, read_ann_benchmarks, read_hdf5
from bitweigh.datasets.named import gist1m, places205, sift1b, sift1m
from bitweigh.datasets.parquet import read_parquet
from bitweigh.datasets.real import cifar, dsift, dsift512, glove
from bitweigh.datasets.vecs import read_bvecs, read_fvecs, read_ivecs

__all__ = [
    "AnnBenchmarks",
    "Dataset",
    "MixtureGenerator",
    "cifar",
    "dsift",
    "dsift512",
    "gist1m",
    "glove",
    "places205",
    "read",
    "read_ann_benchmarks",
    "read_bvecs",
    "read_fbin",
    "read_fvecs",
    "read_hdf5",
    "read_i8bin",
    "read_ivecs",
    "read_npy",
    "read_npz",
    "read_parquet",
    "read_u8bin",
    "sift1b",
    "sift1m",
]
