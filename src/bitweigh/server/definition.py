"""What a collection is: its kind and the options of its index, as the record keeps them."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

import msgspec

from bitweigh.server.payload_filters import json_path
from bitweigh.server.problems import Problem
from bitweigh.typing import BitOrder, Metric, RescoreDtype, VectorDtype

__all__ = ["Definition", "Kind", "check_name"]

Kind = Literal["codes", "embeddings", "vectors"]
HasherName = Literal["itq", "lsh", "sign", "scalar", "levels", "auto"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# Options that only some kinds have.
_OWN = {
    "codes": ("n_bits", "bitorder"),
    "embeddings": ("dim", "rescore"),
    "vectors": ("dim", "n_bits", "hasher", "weigher", "metric", "rerank", "seed", "fit_after"),
}
_COMMON = ("kind", "bands", "band_bits", "memory_limit", "indexes")


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What ``PUT /v1/collections/{name}`` takes."""

    kind: Kind
    n_bits: int | None = None
    """Bits of a code; of kind "codes" required."""
    dim: int | None = None
    """Numbers of a vector; of kinds "embeddings" and "vectors" required."""
    bitorder: BitOrder = "big"
    rescore: RescoreDtype | None = None
    """Of kind "embeddings": the dtype that vectors are kept in, to rank the best again."""
    hasher: HasherName = "itq"
    weigher: Literal["asym", "wh", "inner_product", "decoded"] | None = None
    metric: Metric = "euclidean"
    rerank: VectorDtype | None = None
    seed: int = 0
    fit_after: int = 1_000
    """Of kind "vectors": how many there must be before the hasher is fitted by itself."""
    bands: int | None = None
    band_bits: int | None = None
    memory_limit: int | None = None
    indexes: list[str] = []
    """Payload fields that filters should find quickly."""

    def check(self) -> Self:
        """Raise Problem 422 for options that do not go together; return self."""
        allowed = (*_COMMON, *_OWN[self.kind])
        for name, value in msgspec.structs.asdict(self).items():
            if name not in allowed and value != _DEFAULTS[name]:
                raise _wrong(f"{name} is not for collections of kind {self.kind!r}")
        for name in ("n_bits",) if self.kind == "codes" else ("dim",):
            if getattr(self, name) is None:
                raise _wrong(f"{name} is required for collections of kind {self.kind!r}")
        if self.kind == "embeddings" and self.rescore == "int8":
            raise _wrong("rescore must be 'float16' or 'float32' here: 'int8' needs a calibration")
        if self.fit_after < 1:
            raise _wrong(f"fit_after must be at least 1, got {self.fit_after}")
        if self.dim is not None and not 1 <= self.dim <= 65_536:
            raise _wrong(f"dim must be from 1 to 65536, got {self.dim}")
        for field in self.indexes:
            json_path(field)
        if len(self.indexes) > 16:
            raise _wrong(f"indexes must be at most 16 fields, got {len(self.indexes)}")
        return self

    def bands_options(self) -> dict[str, Any]:
        """Arguments that every kind of index takes."""
        return {
            "bands": self.bands,
            "band_bits": self.band_bits,
            "memory_limit": self.memory_limit,
            "build": "manual",
        }

    def to_json(self) -> str:
        """As the record keeps it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From what the record kept."""
        return msgspec.json.decode(text, type=cls)


_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Definition)}
_DEFAULTS["indexes"] = []


def check_name(name: str) -> str:
    """Raise Problem 422 for what cannot be the name of a collection, and of its folder."""
    if _NAME.fullmatch(name) is None:
        raise _wrong(
            "names of collections must be 1 to 64 characters of a-z, 0-9, _ and -, and start with "
            f"a letter or digit, got {name!r:.100}"
        )
    return name


def _wrong(detail: str) -> Problem:
    return Problem(422, "invalid-collection", detail)
