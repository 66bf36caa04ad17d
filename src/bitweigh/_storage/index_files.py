"""The data of an index, converted between memory and the files of its folder.

To files: the fields of the manifest, and the arrays of every part. To memory: parts, from a
function that reads the arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args
from weakref import WeakKeyDictionary

import numpy as np

from bitweigh import _core
from bitweigh._checks import MAX_BITS, MAX_K
from bitweigh._index.bands import Band, BandChoice, BandOptions, EvidenceSource
from bitweigh._index.row_layout import LayoutReason
from bitweigh._index.segments import COUNTED_IDS_END, LiveSegment, Segment
from bitweigh._index.state import State
from bitweigh._storage import folder as folders
from bitweigh._storage.arrays import (
    DAMAGED,
    PART_KINDS,
    Array,
    ArrayData,
    ArrayFile,
    array_data,
    digest_of,
    header_of,
    load_array,
    part_lengths,
)
from bitweigh._storage.formats import EMBEDDINGS, INDEX, VECTORS
from bitweigh._storage.manifest import (
    MANIFEST,
    MAX_BYTES,
    Fields,
    Manifest,
    parse,
    read_manifest,
    sealed,
)
from bitweigh._storage.note import NO_NOTE, note_from, note_text
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder

__all__ = [
    "READERS",
    "Content",
    "Source",
    "described",
    "described_part",
    "from_files",
    "link_when_saved",
    "load",
    "load_codes",
    "read_content",
    "refuse_too_many_parts",
    "save",
    "save_described",
    "stored_index",
    "to_files",
]

ArrayReader = Callable[[ArrayFile], Array]
Bands = tuple[tuple[int, ...], ...]
"""The bits of each band."""

_MAX_NEXT_ID = 2**63
# The fields of a part in the order in which they are written. Each names a file of that kind, but
# for `rows`, `first_id` and `bands`.
_PART_FIELDS = (
    "rows",
    "codes",
    "ids",
    "first_id",
    "by_id",
    "bands",
    "starts",
    "band_rows",
    "band_codes",
    "removed",
)
# Files by kind, for arrays that were hashed or loaded before. Segments and parts never change.
_known_files: WeakKeyDictionary[Segment | LiveSegment, dict[str, ArrayFile]] = WeakKeyDictionary()
# Folders with the files of segments, which saves elsewhere may link.
_link_folders: WeakKeyDictionary[Segment, Path] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The data of an index."""

    n_bits: int
    bitorder: BitOrder
    options: BandOptions
    state: State
    note: str = NO_NOTE


class Source(NamedTuple):
    """The folder that an index was loaded from."""

    folder: Path
    checksum: str
    """The checksum of the folder's manifest."""
    mapped: State | None
    """The state that was mapped, or None if it was read into memory."""
    note: str = NO_NOTE

    def is_still_there(self) -> bool:
        """Whether the folder still holds the same index."""
        try:
            return read_manifest(self.folder).checksum == self.checksum
        except (OSError, CorruptFileError):
            return False


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part as the manifest describes it."""

    rows: int
    first_id: int | None
    """The first id if each id is one more than the one before, else None."""
    bands: Bands
    lean: bool
    """Whether rows are lean: they store only the bits that their keys do not imply."""
    layout_reason: LayoutReason | None
    choice: BandChoice | None
    files: dict[str, ArrayFile]
    """The files of the part by kind."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index as the manifest describes it: everything but the arrays."""

    n_bits: int
    bitorder: BitOrder
    next_id: int
    options: BandOptions
    tail: StoredPart | None
    segments: tuple[StoredPart, ...]
    note: str


def save(content: Content, path: str | os.PathLike[str]) -> None:
    """Make the folder hold this index, or leave it as it was."""
    save_described(path, *described(content))


def save_described(
    path: str | os.PathLike[str], fields: dict[str, Any], arrays: dict[str, ArrayData]
) -> None:
    """The same for the fields of the manifest and the arrays by name, as from `described`."""
    manifest = sealed(fields, INDEX, _version_of(fields))
    refuse_too_many_parts(fields, manifest)
    folders.save(path, INDEX, manifest, arrays)


def load(path: str | os.PathLike[str], mapped: bool, verify: bool) -> tuple[Content, Source]:
    """The index in a folder; raises CorruptFileError if it is damaged."""
    return folders.load(path, INDEX, partial(_read, mapped=mapped, verify=verify))


def load_codes(path: str | os.PathLike[str], mapped: bool, verify: bool) -> tuple[Content, Source]:
    """The index of codes in a folder of any format."""
    known = folders.folder_format(path)
    return folders.load(path, known, partial(_read, mapped=mapped, verify=verify))


def link_when_saved(segment: Segment, folder: Path) -> None:
    """Let saves link the files of a segment, which was loaded from this folder, not copy them.

    The folder must exist as long as the segment. Links to the files of an index that a user owns
    would be a surprise, so this is for folders of our own.
    """
    _link_folders[segment] = folder


def to_files(content: Content) -> dict[str, bytes]:
    """The files of an index by name, as in its folder, for pickles."""
    fields, arrays = described(content)
    files = {name: b"".join(array.data()) for name, array in arrays.items()}
    return {MANIFEST: sealed(fields, INDEX, _version_of(fields)), **files}


def _version_of(fields: dict[str, Any]) -> int:
    """The version of the format that can hold an index."""
    return 2 if any("lean" in part for part in fields["segments"]) else 1


def from_files(files: dict[str, bytes]) -> Content:
    """The index in such files; its arrays share their memory."""
    manifest = parse(files[MANIFEST], Path(MANIFEST))
    return content_from(stored_index(manifest), partial(_array_in, files), Path())


def described(content: Content) -> tuple[dict[str, Any], dict[str, ArrayData]]:
    """The fields of an index's manifest, and its arrays by the names of their files."""
    arrays: dict[str, ArrayData] = {}
    state, options = content.state, content.options
    fields = {
        **({"note": note_from(content.note)} if content.note else {}),
        "n_bits": content.n_bits,
        "bitorder": content.bitorder,
        "next_id": state.next_id,
        "bands": options.bands,
        "band_bits": options.band_bits,
        "memory_limit": options.memory_limit,
        "tail": None if state.tail is None else described_part(state.tail, arrays),
        "segments": [described_part(part, arrays) for part in state.segments],
        "files": {name: arrays[name].file.facts() for name in sorted(arrays)},
    }
    return fields, arrays


def refuse_too_many_parts(fields: dict[str, Any], manifest: bytes) -> None:
    """Raise ValueError for an index whose manifest would be too large to be read."""
    if len(manifest) > MAX_BYTES:
        parts = len(fields["segments"]) + (fields["tail"] is not None)
        raise ValueError(f"the index has {parts} parts, too many to be saved: call compact()")


def described_part(part: LiveSegment, arrays: dict[str, ArrayData]) -> dict[str, Any]:
    """The fields of a part; its arrays are added to `arrays`, by the names of their files."""
    segment = part.segment
    bands = tuple(tuple(band.bits.tolist()) for band in segment.bands)
    lean = segment.lean_order is not None
    lengths = part_lengths(len(segment), segment.n_bits, bands, lean)
    fields: dict[str, Any] = dict.fromkeys(_PART_FIELDS)
    if lean:
        fields["lean"] = True
    if segment.layout_reason is not None:
        fields["layout_reason"] = segment.layout_reason
    fields["rows"] = len(segment)
    fields["bands"] = [list(bits) for bits in bands]
    if isinstance(segment.ids, range):
        fields["first_id"] = segment.ids.start
    if segment.choice is not None:
        gains = {name: round(getattr(segment.choice, name), 3) for name in ("gain", "copies")}
        fields["choice"] = segment.choice._asdict() | gains
    found = _arrays_of(part)
    for kind in PART_KINDS:
        pieces = found[kind.name]
        if pieces:
            known = _known_files.setdefault(part if kind.name == "removed" else segment, {})
            file = known.get(kind.name)
            stored = (
                array_data(kind, pieces[0].dtype, pieces, lengths)
                if file is None
                else ArrayData(file, pieces, _linked(segment, file))
            )
            known[kind.name] = stored.file
            arrays[stored.file.name] = stored
            fields[kind.name] = stored.file.name
    return fields


def _linked(segment: Segment, file: ArrayFile) -> Path | None:
    """The file to link instead of writing the array, if there is one."""
    folder = _link_folders.get(segment)
    return None if folder is None or file.kind == "removed" else folder / file.name


def _arrays_of(part: LiveSegment) -> dict[str, list[Array]]:
    """The arrays of a part by kind, each as its pieces in memory; [] if the part has none."""
    segment = part.segment
    return {
        "codes": [segment.blocks],
        "ids": [] if isinstance(segment.ids, range) else [segment.ids],
        "by_id": [] if segment.by_id is None else [segment.by_id],
        "starts": [band.starts for band in segment.bands],
        "band_rows": [band.rows for band in segment.bands if band.rows is not None],
        "band_codes": [band.blocks for band in segment.bands[1:]],
        "removed": [part.removed_masks()] if part.removed_rows else [],
    }


def _read(folder: Path, manifest: Manifest, mapped: bool, verify: bool) -> tuple[Content, Source]:
    content = read_content(folder, stored_index(manifest), mapped, verify)
    mapped_state = content.state if mapped else None
    return content, Source(folder.resolve(), manifest.checksum, mapped_state, content.note)


def read_content(folder: Path, stored: StoredIndex, mapped: bool, verify: bool) -> Content:
    """The index that a folder holds, with its arrays."""
    return content_from(stored, partial(load_array, folder, mapped=mapped, verify=verify), folder)


def stored_index(manifest: Manifest) -> StoredIndex:
    """The index that a manifest describes, with every field checked; nothing is allocated yet."""
    return READERS[manifest.format.name, manifest.version](manifest.fields())


def _array_in(files: dict[str, bytes], file: ArrayFile) -> Array:
    raw = files.get(file.name, b"")
    if len(raw) != file.size or digest_of(raw) != file.checksum:
        raise CorruptFileError(file.name, DAMAGED)
    start = len(header_of(file.dtype, file.shape))
    return np.frombuffer(raw, file.dtype, offset=start).reshape(file.shape)


def _read_fields_1(fields: Fields, *, lean: bool = False) -> StoredIndex:
    bitorder: BitOrder = fields.choice("bitorder", ("big", "little"))
    n_bits = fields.integer("n_bits", 1, MAX_BITS)
    options = BandOptions(
        fields.optional_integer("bands", 1, n_bits),
        fields.optional_integer("band_bits", 1, _core.max_band_bits),
        fields.optional_integer("memory_limit", 0, 2**62),
    )
    next_id = fields.integer("next_id", 0, _MAX_NEXT_ID)
    tail = None if fields.value("tail") is None else _read_part(fields.object("tail"), n_bits)
    segments = tuple(_read_part(part, n_bits, lean) for part in fields.objects("segments"))
    return StoredIndex(n_bits, bitorder, next_id, options, tail, segments, _read_note(fields))


def _read_note(fields: Fields) -> str:
    """The note; a manifest without one has no such field."""
    note = fields.value("note")
    try:
        return NO_NOTE if note is None else note_text(note)
    except (TypeError, ValueError) as error:
        fields.fail(str(error))


def _read_part(fields: Fields, n_bits: int, may_be_lean: bool = False) -> StoredPart:
    rows = fields.integer("rows", 1, _core.max_segment_rows - 1)
    bands = _read_bands(fields, n_bits)
    lean = may_be_lean and fields.value("lean") is not None
    if lean:
        _check_lean(fields, n_bits, bands)
    lengths = part_lengths(rows, n_bits, bands, lean)
    found = {kind.name: fields.array(kind, lengths) for kind in PART_KINDS}
    files = {name: file for name, file in found.items() if file is not None}
    first_id = None
    if "ids" not in files:
        first_id = fields.integer("first_id", 0, COUNTED_IDS_END - rows)
    choice = None if fields.value("choice") is None else _read_choice(fields.object("choice"))
    reason = fields.value("layout_reason")
    # For information only: a later version may have others.
    reason = reason if reason in get_args(LayoutReason) else None
    return StoredPart(rows, first_id, bands, lean, reason, choice, files)


def _check_lean(fields: Fields, n_bits: int, bands: Bands) -> None:
    if fields.value("lean") is not True:
        fields.fail_at("lean", "must be true")
    if n_bits > _core.max_lean_bits:
        fields.fail_at("lean", f"needs codes of at most {_core.max_lean_bits} bits")
    if len({len(bits) for bits in bands}) != 1:
        fields.fail_at("bands", "must all have as many bits where rows are lean")
    if fields.value("by_id") is not None:
        fields.fail_at("by_id", "must be null where rows are lean")


def _read_choice(fields: Fields) -> BandChoice:
    return BandChoice(
        bands=fields.integer("bands", 1, MAX_BITS),
        band_bits=fields.integer("band_bits", 1, _core.max_band_bits),
        gain=fields.number("gain"),
        copies=fields.number("copies"),
        queries=fields.integer("queries", 1, 2**31),
        k=fields.integer("k", 1, MAX_K),
        source=fields.choice("source", get_args(EvidenceSource)),
    )


def _read_bands(fields: Fields, n_bits: int) -> Bands:
    value = fields.value("bands")
    if not isinstance(value, list) or not all(isinstance(bits, list) for bits in value):
        fields.fail_at("bands", "must be lists of bits")
    seen: set[int] = set()
    for bits in value:
        if not 1 <= len(bits) <= _core.max_band_bits:
            fields.fail_at("bands", f"must have 1 to {_core.max_band_bits} bits each")
        for bit in bits:
            if type(bit) is not int or not 0 <= bit < n_bits or bit in seen:
                fields.fail_at("bands", "must name bits of the code, each once")
            seen.add(bit)
    return tuple(map(tuple, value))


READERS: dict[tuple[str, int], Callable[[Fields], StoredIndex]] = {
    (INDEX.name, 1): _read_fields_1,
    (INDEX.name, 2): partial(_read_fields_1, lean=True),
    (VECTORS.name, 2): _read_fields_1,
    (EMBEDDINGS.name, 1): _read_fields_1,
}
"""The functions that read the fields of an index in a manifest, by format and version."""


def content_from(stored: StoredIndex, read: ArrayReader, folder: Path) -> Content:
    """The index of the arrays that `read` returns.

    Raises CorruptFileError, with `folder` in its path, for a part whose rows were all removed: an
    index drops such parts, and no other code expects one.
    """
    tail = stored.tail
    state = State(
        tuple([_part_from(part, stored, read, folder) for part in stored.segments]),
        None if tail is None else _part_from(tail, stored, read, folder),
        stored.next_id,
    )
    return Content(stored.n_bits, stored.bitorder, stored.options, state, stored.note)


def _part_from(
    stored: StoredPart, index: StoredIndex, read: ArrayReader, folder: Path
) -> LiveSegment:
    found: dict[str, Any] = {kind: read(file) for kind, file in stored.files.items()}
    ids = (
        found["ids"]
        if stored.first_id is None
        else range(stored.first_id, stored.first_id + stored.rows)
    )
    segment = Segment(
        index.n_bits,
        found["codes"],
        ids,
        found.get("by_id"),
        _bands_from(stored, found),
        choice=stored.choice,
        lean_order=index.bitorder if stored.lean else None,
        layout_reason=stored.layout_reason,
    )
    removed = stored.files.get("removed")
    masks = None if removed is None else _core.RowMask(found["removed"], stored.rows)
    part = LiveSegment(segment, masks)
    if removed is not None and not len(part):
        raise CorruptFileError(folder / removed.name, "must leave a row of its part")
    _known_files[segment] = {kind: file for kind, file in stored.files.items() if kind != "removed"}
    if removed is not None:
        _known_files[part] = {"removed": removed}
    return part


def _bands_from(stored: StoredPart, found: dict[str, Any]) -> tuple[Band, ...]:
    bands = []
    first = 0
    for number, bits in enumerate(stored.bands):
        end = first + 2 ** len(bits) + 1
        starts = found["starts"][first:end]
        # The first band has no arrays of rows and codes: the part is in its order.
        rows = found["band_rows"][number - 1] if number else None
        blocks = found["band_codes"][number - 1] if number else found["codes"]
        bands.append(Band(np.array(bits, dtype=np.uint16), starts, rows, blocks))
        first = end
    return tuple(bands)
