"""What a build has finished: a small JSON file in its folder, replaced in one step.

Only finished work is recorded, after its files are on disk. So a build that ends at any moment, or
whose machine does, continues from the last record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bitweigh._disk.reading import read_plain
from bitweigh._disk.writing import write_file
from bitweigh._streaming.spool import SPOOL_FILES
from bitweigh.errors import CorruptFileError

__all__ = ["JOURNAL", "Journal", "remove_leftovers"]

JOURNAL = "journal.json"
_MAX_BYTES = 1 << 28
_VERSION = 1


def remove_leftovers(folder: Path) -> None:
    """Delete files that a build was writing when it was ended.

    Raises FileExistsError if the folder has something else than a build.
    """
    for name in ("*.tmp", "marks"):
        for path in folder.glob(name):
            path.unlink()
    others = (path for path in folder.iterdir() if path.name not in SPOOL_FILES)
    if not (folder / JOURNAL).exists() and any(others):
        raise FileExistsError(f"{folder} is not empty, and not the folder of a build")


class Journal:
    """The facts of a build by name: its plan, then finished pieces and ranges by number."""

    def __init__(self, folder: Path) -> None:
        """Read the journal of a folder; empty if there is none."""
        self._path = folder / JOURNAL
        self._facts: dict[str, Any] = {}
        if self._path.exists():
            self._facts = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            facts = json.loads(read_plain(self._path, _MAX_BYTES))
        except ValueError as error:
            raise CorruptFileError(self._path, f"is not JSON: {error}") from None
        if not isinstance(facts, dict) or facts.get("version") != _VERSION:
            raise CorruptFileError(self._path, f"must be a journal of version {_VERSION}")
        return facts

    def __contains__(self, name: str) -> bool:
        """Whether a fact is recorded."""
        return name in self._facts

    def get(self, name: str) -> Any:  # noqa: ANN401 any JSON
        """A recorded fact, or None."""
        return self._facts.get(name)

    def record(self, **facts: Any) -> None:  # noqa: ANN401 any JSON
        """Record facts, all in one step."""
        self._write(self._facts | facts)

    def finished(self, stage: str) -> dict[int, Any]:
        """The facts of the finished parts of a stage, by number."""
        return {int(number): fact for number, fact in self._facts.get(stage, {}).items()}

    def record_part(self, stage: str, number: int, fact: Any) -> None:  # noqa: ANN401 any JSON
        """Record that a part of a stage is finished."""
        finished = self._facts.get(stage, {}) | {str(number): fact}
        self._write(self._facts | {stage: finished})

    def _write(self, facts: dict[str, Any]) -> None:
        """Write all facts; without room for them, those of before remain."""
        raw = json.dumps({"version": _VERSION} | facts).encode()
        write_file(self._path, [memoryview(raw)])
        self._facts = facts
