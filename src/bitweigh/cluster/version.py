"""A version of the shards: which folders hold which rows, as an immutable JSON file.

docs/cluster.md describes the fields. Reading a version trusts nothing, as reading a manifest does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from bitweigh import _core
from bitweigh._checks import as_choice, as_optional_integer
from bitweigh._index.bands import BandOptions
from bitweigh._storage.manifest import MAX_BYTES, Fields
from bitweigh._storage.sealed_json import matching_checksum, seal
from bitweigh._system import __version__
from bitweigh.cluster.partition import Partition, partition_from
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder, RowLayout

__all__ = ["Kind", "ShardOptions", "StoredShard", "Version"]

Kind: TypeAlias = Literal["codes", "vectors", "embeddings"]
"""What rows are; shards are folders of `Index`, `VectorIndex` or `BinaryEmbeddings`."""

FORMAT = "bitweigh-shards"
FORMAT_VERSION = 2
MAX_VERSION = 10**20 - 1
_MAX_ID = 2**63 - 1
_HEXADECIMAL = set("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """The options of :class:`bitweigh.Index` that all shards are built with."""

    bands: int | None = None
    band_bits: int | None = None
    memory_limit: int | None = None
    layout: RowLayout | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for options that no index accepts."""
        as_optional_integer(self.bands, "bands", 0, 8192)
        as_optional_integer(self.band_bits, "band_bits", 1, _core.max_band_bits)
        as_optional_integer(self.memory_limit, "memory_limit", 0, 2**62)
        if self.layout is not None:
            as_choice(self.layout, "layout", get_args(RowLayout))

    def band_options(self) -> BandOptions:
        """The options of bands; no bands are a memory limit of 0, as in files of format 1."""
        if self.bands == 0:
            return BandOptions(None, self.band_bits, 0)
        return BandOptions(self.bands, self.band_bits, self.memory_limit)

    def facts(self) -> dict[str, Any]:
        """The options as JSON."""
        return {
            "bands": self.bands,
            "band_bits": self.band_bits,
            "memory_limit": self.memory_limit,
            "layout": self.layout,
        }


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard as a version lists it."""

    folder: str
    """The name of its folder: the checksum of its manifest."""
    rows: int
    first_id: int | None
    last_id: int | None
    """The smallest and the largest id; None if it has no rows."""
    n_bytes: int
    """Bytes of its files."""

    def facts(self) -> dict[str, Any]:
        """The shard as JSON."""
        return {
            "folder": self.folder,
            "rows": self.rows,
            "first_id": self.first_id,
            "last_id": self.last_id,
            "bytes": self.n_bytes,
        }


@dataclass(frozen=True, slots=True)
class Version:
    """An immutable state of all shards.

    Attributes
    ----------
    number : int
        From 1 on; the highest is the newest.
    parent : int or None
        The version that this one was made from.
    n_bits, bitorder
        As in :class:`bitweigh.Index`.
    next_id : int
        The id that the next row without one would get.
    partition : HashPartition or RangePartition
        Which shard an id belongs to.
    options : ShardOptions
        What the files of a shard depend on besides its rows.
    shards : tuple of StoredShard
        The folders.
    created : str
        UTC, as ISO 8601.
    kind : str
        What rows are: "codes", "vectors" or "embeddings".
    template : str or None
        For vectors and embeddings: the folder of an empty index that all shards are like. It has
        the hasher and the weigher.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bitweigh import cluster
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     codes = np.arange(200, dtype=np.uint8).reshape(-1, 1)  # (200, 1)
    ...     version = cluster.build(codes, f"{folder}/shards", shards=2)
    >>> version.number, version.rows, len(version.shards)
    (1, 200, 2)

    """

    number: int
    parent: int | None
    n_bits: int
    bitorder: BitOrder
    next_id: int
    partition: Partition
    options: ShardOptions
    shards: tuple[StoredShard, ...]
    created: str
    kind: Kind = "codes"
    template: str | None = None

    @property
    def folders(self) -> list[str]:
        """The folders of all shards, and of the template."""
        folders = [shard.folder for shard in self.shards]
        return folders if self.template is None else [*folders, self.template]

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def n_bytes(self) -> int:
        """Bytes of the files of all shards."""
        return sum(shard.n_bytes for shard in self.shards)

    def to_json(self) -> bytes:
        """The content of the file of this version."""
        # Codes alone are written as in format 1, which knows nothing else.
        more = {} if self.kind == "codes" else {"kind": self.kind, "template": self.template}
        return seal(
            {"format": FORMAT, "version": 2 if more else 1},
            {
                "writer": f"bitweigh {__version__}",
                "number": self.number,
                "parent": self.parent,
                "created": self.created,
                "n_bits": self.n_bits,
                "bitorder": self.bitorder,
                "next_id": self.next_id,
                "rows": self.rows,
                "partition": self.partition.facts(),
                "options": self.options.facts(),
                "shards": [shard.facts() for shard in self.shards],
                **more,
            },
        )

    @classmethod
    def from_json(cls, raw: bytes, where: str) -> Version:
        """Read what `to_json` wrote; raises CorruptFileError naming `where` for anything else."""
        fields = _fields(raw, where)
        partition = partition_from(fields.object("partition"))
        options = fields.object("options")
        version = cls(
            fields.integer("number", 1, MAX_VERSION),
            fields.optional_integer("parent", 1, MAX_VERSION),
            fields.integer("n_bits", 1, 8192),
            fields.choice("bitorder", get_args(BitOrder)),
            fields.integer("next_id", 0, _MAX_ID + 1),
            partition,
            ShardOptions(
                options.optional_integer("bands", 0, 8192),
                options.optional_integer("band_bits", 1, _core.max_band_bits),
                options.optional_integer("memory_limit", 0, 2**62),
                options.choice("layout", (None, *get_args(RowLayout))),
            ),
            tuple(_shard_from(shard) for shard in fields.objects("shards")),
            str(fields.value("created")),
            *_kind_from(fields),
        )
        if len(version.shards) != partition.shards:
            fields.fail(f"shards must have {partition.shards} shards, as partition says")
        if fields.value("rows") != version.rows:
            fields.fail("rows must be those of all shards")
        return version


def _fields(raw: bytes, where: str) -> Fields:
    path = Path(where)
    if len(raw) > MAX_BYTES:
        raise CorruptFileError(path, f"must have at most {MAX_BYTES} bytes, has {len(raw)}")
    checksum = matching_checksum(raw)
    if checksum is None:
        raise CorruptFileError(path, "not a version of shards, or damaged")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"not a version of shards: {error}") from None
    fields = Fields(path, body, "", {})
    if fields.value("format") != FORMAT or fields.value("checksum") != checksum:
        fields.fail("not a version of shards")
    written_as = fields.integer("version", 1, 10**9)
    if written_as > FORMAT_VERSION:
        fields.fail(
            f"written in format {written_as}; this version of bitweigh reads up to {FORMAT_VERSION}"
        )
    return fields


def _kind_from(fields: Fields) -> tuple[Kind, str | None]:
    if fields.integer("version", 1, FORMAT_VERSION) == 1:
        return "codes", None
    kind: Kind = fields.choice("kind", ("vectors", "embeddings"))
    return kind, _folder_from(fields, "template")


def _folder_from(fields: Fields, name: str) -> str:
    folder = fields.value(name)
    if not isinstance(folder, str) or len(folder) != 32 or not set(folder) <= _HEXADECIMAL:
        fields.fail_at(name, "must be the checksum of a manifest")
    return str(folder)


def _shard_from(fields: Fields) -> StoredShard:
    return StoredShard(
        _folder_from(fields, "folder"),
        fields.integer("rows", 0, 2**62),
        fields.optional_integer("first_id", 0, _MAX_ID),
        fields.optional_integer("last_id", 0, _MAX_ID),
        fields.integer("bytes", 0, 2**62),
    )
