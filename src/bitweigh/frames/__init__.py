"""Codes or vectors with their ids from data frames; `SearchResult.to_frame` is the way back.

A source is a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a dict of arrays, a
parquet file or a folder of parquet files. No conversion may change a value, and no row is left
out. Needs pyarrow for all but dicts of plain arrays, from the extra
``bitweigh[frames]``.
"""

from bitweigh.frames._reading import (
    code_batches,
    codes_and_ids,
    vector_batches,
    vectors_and_ids,
)

__all__ = ["code_batches", "codes_and_ids", "vector_batches", "vectors_and_ids"]
