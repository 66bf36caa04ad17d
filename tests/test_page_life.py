"""The page and a server that changes: imports, keys, new collections, and a server that ends."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_browser import Watched
from page_cases import choose_file, codes, create, parquet, things
from running_server import running_server, started_server, stop

import bitweigh.cluster

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("page")) as address:
        create(address, "none", [])
        yield address


def test_a_parquet_file_is_imported_with_errors_by_row(watched: Watched, url: str) -> None:
    create(url, "new", [])
    page = watched.page
    page.goto(f"{url}/#import?c=new")
    choose_file(page)
    page.get_by_text("50 rows, 3 columns").wait_for()
    assert page.get_by_label("Vectors or codes").input_value() == "code"
    watched.check(url, "columns")
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_text("49 of 50 rows written").wait_for()
    page.get_by_role("heading", name="Imported").wait_for()
    assert page.locator("tbody tr").all_inner_texts()[0].startswith("7")
    page.get_by_text("new (49)").wait_for(state="attached")
    watched.check(url, "imported")
    choose_file(page, b"no parquet at all")
    page.get_by_text("is not a parquet file").wait_for()
    damaged = parquet()[:-40] + b"\xff" * 32 + parquet()[-8:]
    choose_file(page, damaged)
    page.get_by_text("is damaged").wait_for()


def test_a_column_of_ids_or_values_is_no_payload_whichever_was_suggested(
    watched: Watched, url: str
) -> None:
    columns = {
        "id": ["a", "b"],
        "number": [1, 2],
        "vector": [[1.0], [2.0]],
        "other": [[3.0], [4.0]],
        "picture": [b"1", b"2"],
        "a,b": ["x", "y"],
        "note": ["x", "y"],
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    page = watched.page
    page.goto(f"{url}/#import?c=none")
    choose_file(page, out.getvalue())
    page.get_by_text("This request as curl").click()
    curl = page.locator("pre").first
    curl.get_by_text("import?key=id&value=vector&payload=number%2Cother%2Cnote").wait_for()
    page.get_by_label("Items are named by").select_option("id")
    page.locator(".fields select").nth(1).select_option("number")
    page.get_by_label("Vectors or codes").select_option("other")
    curl.get_by_text("import?id=number&value=other&payload=note").wait_for()


def test_a_dropped_file_is_taken(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#import?c=none")
    page.wait_for_selector(".drop")
    dropped = page.evaluate_handle(
        """bytes => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "dropped.parquet"));
            return data;
        }""",
        list(parquet()),
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    page.get_by_role("heading", name="dropped.parquet").wait_for()


def test_holders_of_a_cluster_are_shown_by_shard_and_replica(
    watched: Watched, tmp_path: Path
) -> None:
    bitweigh.cluster.build(codes(500), str(tmp_path / "shards"), shards=3)
    cluster = ("--cluster", f"books={tmp_path / 'shards'}")
    with running_server(tmp_path / "data", *cluster) as address:
        facts = httpx.get(f"{address}/v1/collections/books").json()
        counts = ("queued", "answered", "batches", "hedges", "failovers", "second_rounds")
        facts["cluster"].update(dict.fromkeys(counts, 7))
        facts["cluster"]["groups"] = [
            {"shards": [0, 2], "holders": ["0-0", "0-1"], "suspects": ["0-1"]},
            {"shards": [1], "holders": ["1-0"], "suspects": []},
        ]
        page = watched.page
        page.route("**/v1/collections/books?*", lambda route: route.fulfill(json=facts))
        page.goto(f"{address}/#health?c=books")
        page.get_by_text("3 shards \u00d7 2 replicas").wait_for()
        rows = [row.inner_text().split() for row in page.locator(".grid tbody tr").all()]
        assert rows[0][2:] == ["open", "0-0", "open", "1-0", "open", "0-0"]
        assert rows[1][2:] == ["suspect", "0-1", "missing", "suspect", "0-1"]
        watched.check(address, "holders")


def test_a_key_for_reading_may_not_import_and_a_wrong_one_is_refused(
    browser: Any, tmp_path: Path
) -> None:
    from bitweigh.server.keys import KeyFile

    process, address = started_server(str(tmp_path), "--quiet")
    create(address, "things", things())
    stop(process)
    secret = KeyFile(tmp_path / "keys.json").add("reader", "read", ["things"])
    process, address = started_server(str(tmp_path), "--quiet")
    watched = Watched(browser, refused="401")
    page = watched.page
    try:
        page.goto(address)
        page.get_by_label("Key").fill("bw_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("does not know this key").wait_for()
        watched.check(address, "key")
        page.get_by_label("Key").fill(secret)
        page.keyboard.press("Enter")
        page.get_by_text("or start from an item").wait_for()
        page.reload()
        page.get_by_text("or start from an item").wait_for()
        assert page.evaluate("localStorage.length") == 0
        page.goto(f"{address}/#health?c=things")
        page.get_by_text("may not read the metrics").wait_for()
        page.goto(f"{address}/#import?c=things")
        choose_file(page)
        page.get_by_role("button", name="Import 50 rows").click()
        page.get_by_text("the key has no write access here").wait_for()
        page.get_by_text("as curl and Python").click()
        page.locator("pre").nth(1).wait_for()
        text = "".join(page.locator("pre").all_inner_texts())
        assert secret not in text
        assert text.count("BITWEIGH_KEY") == 2
        page.get_by_role("button", name="Forget the key").click()
        page.get_by_text("This server asks for a key").wait_for()
        watched.close()
    finally:
        stop(process)


def lose_files(page: Any) -> None:
    """Let connections break while files are sent, as they may if a server refuses one early."""
    page.route(
        "**/import?*",
        lambda route: route.abort() if route.request.post_data_buffer else route.continue_(),
    )


def test_a_file_that_is_refused_on_its_way_is_refused_for_the_true_reason(
    browser: Any, tmp_path: Path
) -> None:
    from bitweigh.server.keys import KeyFile

    process, address = started_server(str(tmp_path), "--quiet")
    create(address, "new", [])
    stop(process)
    secret = KeyFile(tmp_path / "keys.json").add("reader", "read", [])
    process, address = started_server(str(tmp_path), "--quiet")
    watched = Watched(browser)
    page = watched.page
    lose_files(page)
    try:
        page.goto(f"{address}/#import?c=new")
        page.get_by_label("Key").fill(secret)
        page.keyboard.press("Enter")
        choose_file(page)
        page.get_by_role("button", name="Import 50 rows").click()
        page.get_by_text("no write access here").wait_for()
        watched.close()
    finally:
        stop(process)


def test_a_file_that_the_server_does_not_take_may_be_too_large(watched: Watched, url: str) -> None:
    page = watched.page
    lose_files(page)
    page.goto(f"{url}/#import?c=none")
    choose_file(page)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_text("may be too large").wait_for()


def test_a_collection_is_created_where_there_is_none(browser: Any, tmp_path: Path) -> None:
    process, address = started_server(str(tmp_path), "--quiet")
    watched = Watched(browser)
    page = watched.page
    try:
        page.goto(address)
        page.get_by_label("Items are").select_option("codes")
        page.get_by_label("Bits in a code").fill("64")
        name = page.get_by_label("Name")
        name.fill("First")
        page.get_by_role("button", name="Create").click()
        # The browser says what is wrong, and nothing is sent.
        assert name.evaluate("one => one.matches(':focus:invalid') && one.title !== ''")
        assert httpx.get(f"{address}/v1/collections").json()["collections"] == []
        name.fill("first")
        watched.check(address, "create")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("first (0)").wait_for(state="attached")
        choose_file(page)
        page.get_by_role("button", name="Import 50 rows").click()
        page.get_by_text("49 of 50 rows written").wait_for()
        watched.check(address)
        watched.close()
    finally:
        stop(process)


def test_an_import_that_a_restart_has_ended_is_said_to_have_failed(
    browser: Any, tmp_path: Path
) -> None:
    process, address = started_server(str(tmp_path), "--quiet")
    create(address, "new", [])
    watched = Watched(browser)
    page = watched.page
    try:
        # As from a server that was restarted and does not know the job.
        page.route("**/v1/jobs/*", lambda route: route.fulfill(status=404, body="{}"))
        page.goto(f"{address}/#import?c=new")
        choose_file(page)
        page.get_by_role("button", name="Import 50 rows").click()
        page.get_by_text("The import failed").wait_for()
        assert page.get_by_role("button", name="Import 50 rows").is_enabled()
        watched.close()
    finally:
        stop(process)


def test_the_page_says_that_the_server_is_gone_and_recovers(browser: Any, tmp_path: Path) -> None:
    process, address = started_server(str(tmp_path), "--quiet")
    create(address, "things", things())
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{address}/#search?c=things&q=%230")
    page.wait_for_selector(".hit")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    page.fill("input[type=search]", "#1")
    page.keyboard.press("Enter")
    page.get_by_text("This page tries again").wait_for()
    port = address.rpartition(":")[2]
    process, _ = started_server(str(tmp_path), "--quiet", "--port", port)
    try:
        page.get_by_text("This page tries again").wait_for(state="detached")
        page.wait_for_selector(".hit .strip")
        assert page.locator(".problem").count() == 0
        watched.close()
    finally:
        stop(process)
