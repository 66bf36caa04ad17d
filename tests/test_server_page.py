"""The page at "/": its files, their sizes and checksums, what they may load, who may see them."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from server_cases import Api
from tools_needed import skip_or_fail

from bitweigh.server.keys import KeyFile
from bitweigh.server.page_files import PAGE_FOLDER, page_routes

MAX_BYTES = 200_000
# htm 3.1.1 (htm/preact/standalone.module.js) and uPlot 1.6.32, as npm has them.
VENDORED = {
    "LICENSE-htm.txt": "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
    "LICENSE-preact.txt": "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
    "LICENSE-uPlot.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "standalone.module.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
}
OWN = sorted([*PAGE_FOLDER.glob("*.js"), *PAGE_FOLDER.glob("views/*.js")])
TYPES = PAGE_FOLDER / "types.d.ts"
STANDALONE = PAGE_FOLDER / "vendor" / "standalone.module.js"


def test_every_file_is_served_with_its_type_and_policy(tmp_path: Path) -> None:
    types = {
        ".html": "text/html",
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".txt": "text/plain",
    }
    with Api(tmp_path) as api:
        for path, file in page_routes().items():
            answer = api.ask("GET", path)
            assert answer.status_code == 200
            assert answer.content == file.read_bytes()
            assert answer.headers["content-type"].startswith(types[file.suffix])
            policy = answer.headers["content-security-policy"].split("; ")
            assert policy[:2] == ["default-src 'self'", "img-src 'self' data:"]
            assert not any("unsafe" in part or "http" in part for part in policy)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert api.ask("HEAD", path).content == b""


@pytest.mark.parametrize(
    "path", ["/page", "/page/", "/page/none.js", "/page/../app.py", "/page/%2e%2e/app.py",
             "/page/vendor/standalone.module.d.ts", "/page/types.d.ts"]
)  # fmt: skip
def test_nothing_else_is_served(tmp_path: Path, path: str) -> None:
    with Api(tmp_path) as api:
        assert api.ask("GET", path).status_code == 404


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("br, GZip;q=0.5", "gzip"),
        ("gzip;q=0, br", None),
        ("gzip; q=0.00", None),
        ("identity", None),
        ("x-gzippy", None),
    ],
)
def test_files_are_compressed_for_browsers_that_take_it(
    tmp_path: Path, accepted: str, encoding: str | None
) -> None:
    with Api(tmp_path) as api:
        path = "/page/vendor/uPlot.iife.min.js"
        answer = api.ask("GET", path, headers={"accept-encoding": accepted})
        assert answer.headers.get("content-encoding") == encoding
        assert answer.headers["vary"] == "accept-encoding"
        assert answer.content == page_routes()[path].read_bytes()
        sent = int(answer.headers["content-length"])
        assert (sent < len(answer.content) / 2) == (encoding is not None)


def test_the_page_is_only_read(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        assert api.ask("POST", "/", {}).status_code in (404, 405)


def test_the_page_needs_no_key_but_data_do(tmp_path: Path) -> None:
    KeyFile(tmp_path / "keys.json").add("reader", "read", [])
    with Api(tmp_path) as api:
        assert api.ask("GET", "/").status_code == 200
        assert api.ask("GET", "/page/app.js").status_code == 200
        assert api.ask("GET", "/v1/collections").status_code == 401


def test_the_page_is_small() -> None:
    # A browser loads everything but the licences; tests/test_page_browser.py counts what it loads.
    loaded = {path for path in page_routes().values() if path.suffix != ".txt"}
    assert sum(path.stat().st_size for path in loaded) <= MAX_BYTES


def test_vendored_files_are_those_of_npm() -> None:
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (PAGE_FOLDER / "vendor").iterdir()
        if not path.name.endswith(".d.ts")
    }
    assert found == VENDORED


def test_modules_are_checked_and_import_only_each_other() -> None:
    for path in OWN:
        text = path.read_text()
        assert text.startswith("// @ts-check\n// "), path
        for wanted in re.findall(r'from "(.+?)"', text):
            assert wanted.startswith("."), (path, wanted)
            assert (path.parent / wanted).resolve() in page_routes().values(), (path, wanted)
        assert not re.search(r"innerHTML|eval\(|document\.write|https?://\w", text), path


def test_the_html_has_nothing_inline_and_nothing_foreign() -> None:
    text = (PAGE_FOLDER / "index.html").read_text()
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|https?://", text)
    for path in re.findall(r'(?:src|href)="(.+?)"', text):
        assert path in page_routes(), path


def test_every_module_is_named_in_the_header_of_the_page(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        links = api.ask("GET", "/").headers["link"].split(", ")
        assert "link" not in api.ask("GET", "/page/app.js").headers
    modules = [path for path, file in page_routes().items() if file in [*OWN, STANDALONE]]
    assert sorted(links) == sorted(f"<{path}>; rel=modulepreload" for path in modules)
    assert len(links) > 20


@pytest.mark.tools
def test_the_types_of_the_modules_are_right() -> None:
    tsc = shutil.which("tsc")
    if tsc is None:
        skip_or_fail("tsc is missing: `make tools` installs it")
    options = "--noEmit --allowJs --strict --skipLibCheck --target es2022 --module es2022"
    # What is thrown is always an Error.
    more = "--useUnknownInCatchVariables false --lib es2022,dom,dom.iterable"
    done = subprocess.run(
        [tsc, *options.split(), *more.split(), str(TYPES), *map(str, OWN)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
