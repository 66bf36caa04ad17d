"""The documents of the demo: apt's output, the shipped file, and a file of the user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bitweigh_experiments.demo import debian, documents, samples, stdlib
from bitweigh_experiments.demo.document import Document

DUMP = """\
Package: fdupes
Version: 1:2.2.1-1
Section: utils
Description: identifies duplicate files within given directories
Description-md5: 11
Homepage: https://example.org/

Package: fdupes
Version: 1:1.0
Section: utils
Description: an older version
Description-md5: 12

Package: libold1
Section: oldlibs
Description: transitional package

Package: ktouch-dbg
Section: contrib/debug
Description: debugging symbols for ktouch

Package: ktouch
Section: kde
Description-en: touch typing tutor for KDE
 It helps you to learn to type.
 .
 And it is fun.
Description-md5: 13

Package: nothing
Section: misc

Package: ktouch-data
Section: kde
Description: touch typing tutor for KDE
"""
TRANSLATION = """\
Package: fdupes
Description-md5: 11
Description-en: identifies duplicate files within given directories
 FDupes compares sizes first,
 then MD5 signatures.

Package: broken
Description-md5: 99
"""


def fake_apt(folder: Path, **programs: str) -> None:
    """Write shell scripts under the names of apt's programs."""
    for name, script in programs.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


def test_packages_are_read_once_without_old_and_debugging_ones() -> None:
    found = debian.packages_in(DUMP)
    assert [document.name for document in found] == ["fdupes", "ktouch", "ktouch-data"]
    assert found[0].text == "identifies duplicate files within given directories"


def test_packages_of_one_source_that_are_described_alike_count_once() -> None:
    described = {
        "snd": "sound editor",
        "snd-doc": "sound editor (documentation)",
        "snd-gtk": "sound editor - with a window",
        "snd-tools": "tools of the sound editor",
    }
    stanza = "Package: {}\nSource: snd (1.2)\nSection: sound\nDescription: {}\n"
    dump = "\n".join(stanza.format(name, text) for name, text in described.items())
    other = "\nPackage: other\nSection: sound\nDescription: sound editor (free)\n"
    found = [document.name for document in debian.packages_in(dump + other)]
    assert found == ["snd", "snd-tools", "other"]


def test_the_long_part_of_a_description_is_embedded_but_not_shown() -> None:
    ktouch = debian.packages_in(DUMP)[1]
    assert ktouch.text == "touch typing tutor for KDE"
    assert ktouch.more == "It helps you to learn to type. And it is fun."
    assert ktouch.embedded.endswith("for KDE It helps you to learn to type. And it is fun.")


def test_long_descriptions_join_by_their_checksum() -> None:
    long = debian.translations_in([TRANSLATION])
    assert list(long) == ["11"]
    fdupes = debian.packages_in(DUMP, long)[0]
    assert fdupes.more == "FDupes compares sizes first, then MD5 signatures."


def test_a_machine_without_apt_has_no_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.available() == []


def test_an_apt_that_fails_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_apt(tmp_path, apt_cache="echo first >&2; echo E: lists are locked >&2; exit 100")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(OSError, match=r"^apt-cache failed: E: lists are locked$"):
        debian.available()


def test_fetching_reads_the_lists_that_apt_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lists = tmp_path / "lists"
    (tmp_path / "dump").write_text(DUMP)
    (tmp_path / "translation").write_text(TRANSLATION)
    fake_apt(
        tmp_path,
        apt_get=f"cp {tmp_path}/translation {lists}/x_i18n_Translation-en",
        apt_cache=f"cat {tmp_path}/dump",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = debian.fetched(lists)
    assert found[0].more.startswith("FDupes compares")
    assert (lists / "partial").is_dir()  # apt does not make it


def test_fetching_needs_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="--fetch needs apt-get"):
        debian.fetched(tmp_path)


def test_packages_with_the_same_text_count_once() -> None:
    packages = documents.debian_packages(debian.packages_in(DUMP), "debian", "")
    assert sorted(document.name for document in packages.documents) == ["fdupes", "ktouch"]


def test_few_packages_give_way_to_the_shipped_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = [Document(f"p{i}", f"text {i}") for i in range(documents.MIN_PACKAGES)]
    monkeypatch.setattr(debian, "available", lambda: packages)
    assert documents.choose().kind == "debian"
    assert documents.choose(python=True).kind == "python"
    packages.pop()
    assert documents.choose().kind == "python"


def test_the_shipped_documents_are_many_and_distinct() -> None:
    shipped = documents.shipped().documents
    assert len(shipped) >= 2000
    assert len({document.text for document in shipped}) == len(shipped)
    assert all(document.name for document in shipped)


def test_the_shipped_documents_name_their_licence() -> None:
    folder = Path(documents.__file__).parent / "texts"
    head = [line for line in (folder / "python.txt").read_text().splitlines() if line[0] == "#"]
    assert any("PSF-2.0" in line for line in head)
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in (folder / "LICENSE-PSF.txt").read_text()


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("Return the square root of x. More.", "Return the square root of x."),
        ("sqrt(x) -> float\n\nReturn the\n    root.", "Return the root."),
        ("dict() -> new empty dictionary", ""),
        (None, ""),
    ],
)
def test_a_summary_is_the_first_sentence_behind_a_signature(
    docstring: str | None, sentence: str
) -> None:
    assert stdlib.first_sentence(docstring) == sentence


def test_a_file_has_a_document_per_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("one  fish\n\n two fish \none fish\nred fish", encoding="utf-8")
    found = documents.choose(file)
    assert sorted(document.text for document in found.documents) == [
        "one fish",
        "red fish",
        "two fish",
    ]
    assert set(found.queries) == {"one fish", "red fish", "two fish"}
    assert found.documents[0].embedded == found.documents[0].text


@pytest.mark.parametrize(
    ("content", "says"), [(b"\n \n", "no line with text"), (b"ok\n\xff\n", "UTF-8 text")]
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=says):
        documents.choose(file)


@pytest.mark.parametrize("queries", [samples.DEBIAN, samples.PYTHON])
def test_there_are_ten_sample_queries(queries: tuple[str, ...]) -> None:
    assert len(set(queries)) == len(queries) == samples.N_SAMPLES
