"""Readers of vector files: .npy, .fvecs and .bvecs, .fbin and its kin, HDF5, parquet.

Nothing is ever downloaded: readers open local files.
"""

from bitweigh.io._bins import read_fbin, read_i8bin, read_u8bin
from bitweigh.io._files import read, read_npy, read_npz
from bitweigh.io._hdf5 import AnnBenchmarks, read_ann_benchmarks, read_hdf5
from bitweigh.io._parquet import read_parquet
from bitweigh.io._vecs import read_bvecs, read_fvecs, read_ivecs

__all__ = [
    "AnnBenchmarks",
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
]
