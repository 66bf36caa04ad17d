"""The paper's data sets, from files that you have, and generators of stand-ins."""

from bitweigh_experiments.datasets.code_files import CodeFiles, CodeSource, write_pieces
from bitweigh_experiments.datasets.dataset import Dataset
from bitweigh_experiments.datasets.generator import MixtureGenerator
from bitweigh_experiments.datasets.mixture_codes import MixtureCodes
from bitweigh_experiments.datasets.named import gist1m, places205, sift1b, sift1m
from bitweigh_experiments.datasets.real import cifar, dsift, dsift512, glove
from bitweigh_experiments.datasets.synthetic import descriptors

__all__ = [
    "CodeFiles",
    "CodeSource",
    "Dataset",
    "MixtureCodes",
    "MixtureGenerator",
    "cifar",
    "descriptors",
    "dsift",
    "dsift512",
    "gist1m",
    "glove",
    "places205",
    "sift1b",
    "sift1m",
    "write_pieces",
]
