"""Descriptions of Debian packages: what apt knows already, or the long ones, which it fetches.

Nothing here needs root or changes what apt keeps: lists are fetched into a folder of our own.
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
    """The packages that apt knows on this machine; none where there is no apt."""
    program = shutil.which("apt-cache")
    return [] if program is None else packages_in(_output(program, "dumpavail"))


def fetched(folder: Path) -> list[Document]:
    """Packages with their long descriptions, from lists that apt fetches into a folder."""
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
    """The packages in the output of `apt-cache dumpavail`, each once.

    Of packages built from one source whose descriptions differ only behind a dash or in brackets,
    such as "sound editor (documentation)", the first stands for all.

    Parameters
    ----------
    text : str
        Stanzas with the fields Package, Section, Description or Description-en, and perhaps Source
        and Description-md5.
    long : mapping of str to str, optional
        Whole descriptions by Description-md5.

    """
    found: dict[str, Document] = {}
    alike = set()
    for fields in _stanzas(text):
        name = fields.get("Package", "")
        short = fields.get("Description-en") or fields.get("Description", "")
        section = fields.get("Section", "").rpartition("/")[2]
        if not name or not short or section in UNWANTED or name in found:
            continue
        whole = (long or {}).get(fields.get("Description-md5", ""), short)
        line, more = _parts(whole)
        source = fields.get("Source", name).split(" ")[0]
        kin = source, re.split(r" -+ | \(|[;,] ", line)[0]
        if kin not in alike:
            alike.add(kin)
            found[name] = Document(name, line, more)
    return list(found.values())


def translations_in(texts: Iterable[str]) -> dict[str, str]:
    """Whole descriptions by their Description-md5, from apt's Translation-en lists."""
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
    """The first line, and the rest as one line; a line with nothing but a dot is empty."""
    first, *rest = description.split("\n")
    return first.strip(), " ".join(line.strip() for line in rest if line.strip() != ".")


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise OSError(f"{Path(command[0]).name} failed: {said[-1]}")
    return done.stdout.decode("utf-8", "replace")
