"""Tables in, tables out: codes or vectors with their ids from data frames, answers as data frames.

A source is a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a dict of arrays, a
parquet file or a folder of parquet files. Nothing is converted that could change a value, and
nothing is left out. Needs pyarrow for all but dicts of plain arrays, from the extra
``bitweigh[frames]``.
"""

from bitweigh.frames._output import to_frame
from bitweigh.frames._reading import (
    code_batches,
    codes_and_ids,
    vector_batches,
    vectors_and_ids,
)

__all__ = ["code_batches", "codes_and_ids", "to_frame", "vector_batches", "vectors_and_ids"]
