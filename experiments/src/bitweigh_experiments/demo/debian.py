"""Descriptions of Debian packages: those apt already has, or the long ones, which it fetches.

Nothing here needs root or changes apt's own files: lists are fetched into a separate folder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bitweigh_experiments.demo.document import Document

__all__ = ["available", "fetched", "packages_in", "translations_in"]

# Packages that nobody looks for: transitional ones and debugging symbols.
UNWANTED = ("oldlibs", "debug")

_FIELD = re.compile(
    r"^(Package|Source|Section|Description(?:-en)?|Description-md5):[ \t]*(.*(?:\n[ \t].*)*)",
    re.MULTILINE,
)


def available() -> list[Document]:
    """Return the packages that apt knows on this machine; none without apt."""
    program = shutil.which("apt-cache")
    return [] if program is None else packages_in(_output(program, "dumpavail"))


def fetched(folder: Path) -> list[Document]:
    """Return packages with long descriptions, from lists that apt fetches into `folder`."""
    programs = [shutil.which(name) for name in ("apt-get", "apt-cache")]
    if None in programs:
        raise OSError("--fetch needs apt-get and apt-cache, which this machine does not have")
    get, cache = map(str, programs)
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    lists = ("-o", f"Dir::State::lists={folder}", "-o", f"Dir::Cache={folder}")
    plain = ("-o", "Acquire::Languages=en", "-o", "Acquire::GzipIndexes=false")
    _output(get, "-q", *lists, *plain, "update")
    files = sorted(folder.glob("*_Translation-en"))
    long = translations_in(file.read_text(encoding="utf-8") for file in files)
    return packages_in(_output(cache, *lists, "dumpavail"), long)


def packages_in(text: str, long: Mapping[str, str] | None = None) -> list[Document]:
    """Return the packages in the output of `apt-cache dumpavail`, each once.

    Of packages built from one source whose descriptions differ only after a dash or in brackets,
    such as "sound editor (documentation)", only the first is returned.

    Parameters
    ----------
    text : str
        Stanzas with the fields Package, Section, Description or Description-en, and perhaps Source
        and Description-md5.
    long : mapping of str to str, optional
        Whole descriptions by Description-md5.

    """
    found: dict[str, Document] = {}
    seen = set()
    for fields in _stanzas(text):
        name = fields.get("Package", "")
        short = fields.get("Description-en") or fields.get("Description", "")
        section = fields.get("Section", "").rpartition("/")[2]
        if not name or not short or section in UNWANTED or name in found:
            continue
        description = (long or {}).get(fields.get("Description-md5", ""), short)
        line, more = _parts(description)
        source = fields.get("Source", name).split(" ")[0]
        family = source, re.split(r" -+ | \(|[;,] ", line)[0]
        if family not in seen:
            seen.add(family)
            found[name] = Document(name, line, more)
    return list(found.values())


def translations_in(texts: Iterable[str]) -> dict[str, str]:
    """Return whole descriptions by their Description-md5, from apt's Translation-en lists."""
    return {
        fields["Description-md5"]: fields["Description-en"]
        for text in texts
        for fields in _stanzas(text)
        if fields.keys() >= {"Description-md5", "Description-en"}
    }


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    for stanza in re.split(r"\n{2,}", text):
        yield dict(_FIELD.findall(stanza))


def _parts(description: str) -> tuple[str, str]:
    """Split off the first line; join the rest into one line, without lines of a single dot."""
    first, *rest = description.split("\n")
    return first.strip(), " ".join(line.strip() for line in rest if line.strip() != ".")


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        errors = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise OSError(f"{Path(command[0]).name} failed: {errors[-1]}")
    return done.stdout.decode("utf-8", "replace")
