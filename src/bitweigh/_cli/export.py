"""`bitweigh export`: write the codes or vectors of an index, with their ids, to a file."""

from __future__ import annotations

import io
import time
import zipfile
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import VectorIndex
from bitweigh._cli.folders import AnyIndex, codes_in, kind_of, open_index, stored_parts, stored_rows
from bitweigh._cli.options import Folder
from bitweigh._cli.output import Json, counted, report
from bitweigh._cli.writers import open_output, pyarrow_for_parquet
from bitweigh._progress import ProgressBar
from bitweigh.typing import Ids

__all__ = ["export_command"]


def export_command(
    folder: Folder,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="File to write: .npy .npz .parquet."),
    ],
    codes: Annotated[
        bool, typer.Option("--codes", help="Write the codes of an index of vectors.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write all codes or vectors of an index to a file, in ascending order of their ids.

    An index of vectors that keeps them (built with --rerank) writes its vectors, else its codes.

    Example: bitweigh export index -o exported.npz
    """
    start = time.perf_counter()
    kind = _FORMATS.get(Path(out).suffix.lower())
    if kind is None:
        raise ValueError(f"{out}: the name must end in one of {' '.join(_FORMATS)}")
    index = open_index(folder)
    source: AnyIndex = index
    if isinstance(index, VectorIndex) and (codes or index.rerank is None):
        source = codes_in(index)
    if len(source) == 0:
        raise ValueError(f"{folder} is empty: there is nothing to export")
    ids = source.ids
    if kind is _Npy and ids[-1] != len(ids) - 1:
        raise ValueError(
            f"{out}: an npy file has no room for ids, and those of {folder} are not 0 to "
            f"{len(ids) - 1}: write .npz or .parquet"
        )
    with (
        open_output(out) as file,
        ProgressBar("exporting", len(ids), unit="rows") as bar,
    ):
        first = stored_rows(source, ids[:1])
        with closing(kind(file, kind_of(source), ids, first.dtype, first.shape[1])) as writer:
            for part, rows in stored_parts(source, ids):
                writer.write(part, rows)
                bar.advance(len(part))
    seconds = time.perf_counter() - start
    report(
        f"{out}: {counted(len(ids), kind_of(source))} of {folder}, in {seconds:.1f} s",
        {"file": out, "holds": f"{kind_of(source)}s", "rows": len(ids), "seconds": seconds},
        as_json,
    )


class _Writer(ABC):
    """Writer of rows of one width and dtype, batch by batch."""

    def __init__(
        self, file: BinaryIO, kind: str, ids: Ids, dtype: np.dtype[Any], width: int
    ) -> None:
        """Begin a file of rows with these ids; `kind` is "code" or "vector"."""
        self.file = file
        self.kind = kind
        self.ids = ids
        self.dtype = dtype
        self.width = width

    @abstractmethod
    def write(self, ids: Ids, rows: NDArray[Any]) -> None:
        """Write the next rows."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file. Also called after an error, when the file is about to be removed."""


class _Npy(_Writer):
    """The rows alone; their ids are their row numbers."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments)
        self.array = self.open()
        self.array.write(_npy_header((len(self.ids), self.width), self.dtype))

    def open(self) -> Any:  # noqa: ANN401
        return self.file

    def write(self, ids: Ids, rows: NDArray[Any]) -> None:  # noqa: ARG002
        self.array.write(np.ascontiguousarray(rows).data)

    def close(self) -> None:
        pass


class _Npz(_Npy):
    """The arrays `codes` or `vectors`, and `ids`."""

    def open(self) -> Any:  # noqa: ANN401
        self.archive = zipfile.ZipFile(self.file, "w")
        return self.archive.open(f"{self.kind}s.npy", "w", force_zip64=True)

    def close(self) -> None:
        with self.archive:
            self.array.close()
            with self.archive.open("ids.npy", "w", force_zip64=True) as array:
                array.write(_npy_header(self.ids.shape, self.ids.dtype))
                array.write(np.ascontiguousarray(self.ids).data)


class _Parquet(_Writer):
    """The columns `id`, and `code` or `vector`, as `build` reads them."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments)
        self.pyarrow = pyarrow = pyarrow_for_parquet()
        value = (
            pyarrow.binary(self.width)
            if self.kind == "code"
            else pyarrow.list_(pyarrow.from_numpy_dtype(self.dtype), self.width)
        )
        schema = pyarrow.schema([("id", pyarrow.int64()), (self.kind, value)])
        self.parquet = pyarrow.parquet.ParquetWriter(self.file, schema)

    def write(self, ids: Ids, rows: NDArray[Any]) -> None:
        value = self.parquet.schema.field(self.kind).type
        flat = np.ascontiguousarray(rows).reshape(-1)
        if self.kind == "code":
            buffers = [None, self.pyarrow.py_buffer(flat)]
            column = self.pyarrow.Array.from_buffers(value, len(rows), buffers)
        else:
            column = self.pyarrow.FixedSizeListArray.from_arrays(
                self.pyarrow.array(flat), self.width
            )
        columns = [self.pyarrow.array(ids), column]
        self.parquet.write_table(self.pyarrow.table(columns, schema=self.parquet.schema))

    def close(self) -> None:
        self.parquet.close()


_FORMATS: dict[str, type[_Writer]] = {".npy": _Npy, ".npz": _Npz, ".parquet": _Parquet}


def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    header = io.BytesIO()
    facts = {
        "shape": shape,
        "fortran_order": False,
        "descr": np.lib.format.dtype_to_descr(dtype),
    }
    np.lib.format.write_array_header_1_0(header, facts)
    return header.getvalue()
