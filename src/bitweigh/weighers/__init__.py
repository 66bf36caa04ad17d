"""Weighers: from a query's projections to costs, which say how much each bit of a code counts.

A weigher is fitted on a hasher's projections of training rows, and turns the projections of queries
into the costs that a search takes.
"""

import os

from bitweigh.hashers import _files
from bitweigh.typing import WeigherName
from bitweigh.weighers._asym import Asym
from bitweigh.weighers._base import Weigher
from bitweigh.weighers._decoded import Decoded
from bitweigh.weighers._inner_product import InnerProduct
from bitweigh.weighers._wh import Wh

__all__ = ["Asym", "Decoded", "InnerProduct", "Weigher", "Wh", "load"]

BY_NAME: dict[WeigherName, type[Weigher]] = {
    "asym": Asym,
    "wh": Wh,
    "inner_product": InnerProduct,
    "decoded": Decoded,
}


def load(path: str | os.PathLike[str]) -> Weigher:
    """Load a weigher from the file that its `save` wrote.

    Raises
    ------
    CorruptFileError
        If the file is damaged or does not hold a weigher.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bitweigh import weighers
    >>> weigher = weighers.Asym().fit(np.array([[-1.0], [2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     weigher.save(Path(folder) / "weigher.npz")
    ...     weighers.load(Path(folder) / "weigher.npz").costs(np.array([0.5]))
    array([[2.25, 2.25]])

    """
    return _files.read(path, tuple(BY_NAME.values()))
