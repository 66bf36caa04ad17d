"""Modules of the page: the requests it shows work, and parquet files are read as by pyarrow."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_browser import Watched, launched
from page_cases import choose_file, parquet, served_page

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("modules")) as address:
        yield address


@pytest.fixture(scope="module")
def page(url: str) -> Iterator[Any]:
    with launched() as browser:
        page = Watched(browser).page
        page.goto(f"{url}/#health?c=things")
        yield page


def commands(page: Any, url: str, address: str, folder: Path) -> tuple[str, str]:
    """What curl and Python print when the commands of a view are run."""
    page.goto("about:blank")
    page.goto(f"{url}/#{address}")
    if address.startswith("import"):
        (folder / "rows.parquet").write_bytes(parquet())
        choose_file(page)
    page.get_by_text("as curl and Python").first.click()
    page.locator(".code button").nth(1).wait_for()
    curl, python = page.locator(".code pre").all_inner_texts()
    (folder / "shown.py").write_text(python)
    run = {"cwd": folder, "capture_output": True, "text": True, "check": True, "timeout": 60}
    said = subprocess.run(["bash", "-ec", curl.replace("curl", "curl -sSf")], **run).stdout
    return said, subprocess.run([sys.executable, "-W", "error", "shown.py"], **run).stdout


@pytest.mark.parametrize(
    "address",
    [
        "search?c=things&q=%2310",
        'search?c=things&q=%2311&k=3&f={"lang":"fr"}',
        f"search?c=things&q={[0.5, -1.5] * 32}",
        "search?c=keyed&q=%23key 3",
        "search?c=books&q=%235",
    ],
)
def test_a_search_as_curl_and_python_finds_what_the_page_shows(
    page: Any, url: str, address: str, tmp_path: Path
) -> None:
    curl, python = commands(page, url, address, tmp_path)
    shown = [text.removeprefix("#") for text in page.locator(".hit .id").all_inner_texts()]
    assert len(shown) > 2
    assert [str(hit["id"]) for hit in json.loads(curl)["hits"]] == shown
    assert [line.split()[0] for line in python.splitlines()] == shown


@pytest.mark.parametrize(
    ("address", "bins"),
    [
        ("why?c=keyed&q=%23key 3", 0),
        ("how?c=things&q=%2310", 60),
        (f"why?c=things&q={[0.5, -1.5] * 32}", 0),
    ],
)
def test_an_explanation_as_curl_and_python_has_the_plan(
    page: Any, url: str, address: str, bins: int, tmp_path: Path
) -> None:
    curl, python = commands(page, url, address, tmp_path)
    assert json.loads(curl.splitlines()[0].replace("}{", "}\n{").splitlines()[0])["plan"]
    assert "'plan': 'scan'" in python
    assert f"bins={bins}" in (tmp_path / "shown.py").read_text()


def test_changed_weights_as_curl_and_python_rank_as_the_page_does(
    page: Any, url: str, tmp_path: Path
) -> None:
    address = f"weights?c=things&q={[0.5, -1.5] * 32}&k=4"
    curl, python = commands(page, url, address, tmp_path)
    shown = [text.removeprefix("#") for text in page.locator(".ranking .id").all_inner_texts()]
    assert [str(hit["id"]) for hit in json.loads(curl)["hits"]] == shown
    assert [line.split()[0] for line in python.splitlines()] == shown


def test_items_as_curl_and_python_are_those_of_the_page(
    page: Any, url: str, tmp_path: Path
) -> None:
    curl, python = commands(page, url, 'browse?c=things&f={"lang":"de"}', tmp_path)
    shown = [text.removeprefix("#") for text in page.locator(".hit .id").all_inner_texts()]
    assert [str(item["id"]) for item in json.loads(curl)["items"]] == shown
    assert len(python.splitlines()) == len(shown)


def test_an_import_as_curl_and_python_writes_the_rows(page: Any, url: str, tmp_path: Path) -> None:
    curl, python = commands(page, url, "import?c=none", tmp_path)
    assert json.loads(curl)["collection"] == "none"
    assert "ImportReport(rows=50, written=49" in python.replace("n_rows", "rows")


def test_the_state_as_curl_and_python_is_that_of_the_page(
    page: Any, url: str, tmp_path: Path
) -> None:
    curl, python = commands(page, url, "health?c=things", tmp_path)
    assert '"items":300' in curl
    assert "bitweigh_requests_total" in curl
    assert "'items': 300" in python
    assert "bitweigh_requests_total" in python


def read_by_page(page: Any, content: bytes) -> dict[str, Any]:
    read: dict[str, Any] = page.evaluate(
        """async (bytes) => {
            const { schemaOfFile } = await import("/page/parquet.js");
            try {
                return await schemaOfFile(new File([new Uint8Array(bytes)], "a.parquet"));
            } catch (error) {
                return { error: error.message };
            }
        }""",
        list(content),
    )
    return read


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_columns_of_a_parquet_file_are_read_as_pyarrow_names_them(page: Any, rows: int) -> None:
    nested = [{"a": 1, "b": {"c": [1.5]}}] * rows
    inner = pa.struct([("c", pa.list_(pa.float32()))])
    outer = pa.struct([("a", pa.int32()), ("b", inner)])
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "vector": pa.array([[1.0, 2.0]] * rows, pa.list_(pa.float32())),
        "fixed": pa.array([[1.0, 2.0]] * rows, pa.list_(pa.float64(), 2)),
        "code": pa.array([b"12345678"] * rows, pa.binary(8)),
        "ünï": pa.array(["x"] * rows, pa.string()),
        "nested": pa.array(nested, outer),
        "map": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
        "flag": pa.array([True] * rows),
        "day": pa.array([1] * rows, pa.date32()),
        "created": pa.array([1] * rows, pa.timestamp("us")),
        "price": pa.array([Decimal("1.50")] * rows, pa.decimal128(9, 2)),
        "unsigned": pa.array([1] * rows, pa.uint64()),
    }  # fmt: skip
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    read = read_by_page(page, out.getvalue())
    assert read["rows"] == rows
    assert [one["name"] for one in read["columns"]] == list(columns)
    types = {one["name"]: one["type"] for one in read["columns"]}
    assert types["id"] == "int64"
    assert types["vector"] == "list of float"
    assert types["fixed"] == "list of double"
    assert types["code"] == "fixed binary"
    assert types["ünï"] == "text"
    assert (types["day"], types["created"], types["price"]) == ("date", "timestamp", "decimal")
    assert types["unsigned"] == "int64"
    assert (types["nested"], types["map"]) == ("struct", "map")


def test_a_column_whose_name_begins_with_a_byte_order_mark_keeps_it(page: Any) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"\ufeffid": [1], "code": [b"12345678"]}), out)
    columns = read_by_page(page, out.getvalue())["columns"]
    assert [one["name"] for one in columns] == ["\ufeffid", "code"]


@pytest.mark.parametrize("key", ["17", "two words", "a\u2028b", '"'])
def test_a_key_in_quotes_is_that_key(page: Any, key: str) -> None:
    typed = f'#"{key}"'
    read = "async (typed) => (await import('/page/query.js')).queryOf(typed, false)"
    assert page.evaluate(read, typed) == {"key": key}


def test_damaged_parquet_files_are_refused_with_a_message(page: Any) -> None:
    whole = parquet()
    rng = np.random.default_rng(0)
    for cut in range(1, 300, 7):
        damaged = whole[: -8 - cut] + rng.bytes(cut) + whole[-8:]
        read = read_by_page(page, damaged)
        assert "columns" in read or "a.parquet is damaged" in read["error"]
    for content in (b"", b"PAR1", whole[:-1], whole[:-8] + b"\xff\xff\xff\xffPAR1"):
        assert "a.parquet is" in read_by_page(page, content)["error"]


def test_a_footer_that_claims_millions_of_columns_is_refused(page: Any) -> None:
    footer = b"\x15\x02\x19\xfc" + b"\xc0\x84\x3d" + bytes(1_000_000) + b"\x00"
    content = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert "too many columns" in read_by_page(page, content)["error"]


def test_quantiles_are_read_from_the_buckets_of_a_route(page: Any) -> None:
    text = "\n".join(
        [
            'bitweigh_requests_total{route="GET /v1",status="200"} 98.0',
            'bitweigh_requests_total{route="GET /v1",status="500"} 2.0',
            'bitweigh_request_seconds_bucket{route="GET /v1",le="0.001"} 98.0',
            'bitweigh_request_seconds_bucket{route="GET /v1",le="0.01"} 99.0',
            'bitweigh_request_seconds_bucket{route="GET /v1",le="+Inf"} 100.0',
            'bitweigh_requests_total{route="POST /a\\\\"b",status="200"} 1.0',
        ]
    )
    found = page.evaluate("async (text) => (await import('/page/metrics.js')).routesOf(text)", text)
    assert found[0] == {"route": "GET /v1", "count": 100, "failed": 2, "p99": 0.01}
    assert len(found) == 2


def test_contrast_keeps_the_sum_and_the_order_of_weights(page: Any) -> None:
    found = page.evaluate(
        """async (costs) => {
            const { contrast, reweighed, weightOf } = await import("/page/costs.js");
            return [0.1, 0.5, 1, 2, 3].map((power) => {
                const changed = reweighed(costs, contrast(costs, power));
                const low = changed.map((pair) => Math.min(...pair));
                return { weights: changed.map(weightOf), low };
            });
        }""",
        [[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [0.0, 0.25]],
    )
    for one in found:
        assert sum(one["weights"]) == pytest.approx(4.25)
        assert one["weights"][1] > one["weights"][0] > one["weights"][3] > one["weights"][2] == 0
        assert one["low"] == [0.0, -1.0, 0.5, 0.0]
    spread = [one["weights"][1] / one["weights"][3] for one in found]
    assert spread == sorted(spread)
    assert found[2]["weights"] == [1.0, 3.0, 0.0, 0.25]


def test_weights_that_stay_leave_costs_as_they_are_to_the_last_bit(page: Any) -> None:
    given = [[0.1, 0.7], [-1.0, 1e-17], [1e-17, -1.0], [2.0, -1e16]]
    changed = page.evaluate(
        """async (costs) => {
            const { contrast, reweighed } = await import("/page/costs.js");
            return reweighed(costs, contrast(costs, 1));
        }""",
        given,
    )
    assert changed == given


def test_the_benchmark_of_the_page_sees_hits_and_then_their_bits(url: str) -> None:
    options = ["--url", url, "--collection", "things", "--query", "#10", "--visits", "1"]
    command = [sys.executable, "-m", "benchmarks.server", "page", *options]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    ready, hits, bits = (int(found) for found in re.findall(r"median (\d+) ms", said))
    assert 0 < hits <= bits
    assert ready > 0
