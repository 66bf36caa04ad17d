"""The page when a request fails, things change under it, or the keyboard's place goes away."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_browser import Watched
from page_cases import choose_file, create, parquet, served_page
from running_server import running_server

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]

PROBLEM = {"status": 429, "json": {"detail": "too many requests"}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("page")) as address:
        yield address


@pytest.mark.parametrize("id_", ["12345", "9" * 22])
def test_after_an_id_that_is_not_there_the_hits_come_back(page: Any, url: str, id_: str) -> None:
    page.goto(f"{url}/#why?c=things&q=%230")
    page.get_by_label("Why is this item not a hit?").fill(id_)
    page.keyboard.press("Enter")
    page.locator(".problem").wait_for()
    page.get_by_role("button", name="Back to the hits").click()
    page.wait_for_selector(".hit .strip")
    assert page.locator(".problem").count() == 0


def test_items_with_the_same_code_are_each_left_out_of_their_own_ranking(
    page: Any, url: str
) -> None:
    items = [{"id": id_, "code": "AAAAAAAAAAA="} for id_ in (5, 6)]
    create(url, "twins", [*items, {"id": 7, "code": "AAAAAAAAAAE="}])
    page.goto(f"{url}/#weights?c=twins&q=%235")
    page.wait_for_selector(".ranking")
    ids = page.locator(".ranking li")
    assert [one.get_attribute("data-id") for one in ids.all()] == ["6", "7"]
    page.fill("input[type=search]", "#6")
    page.keyboard.press("Enter")
    page.wait_for_selector(".ranking li[data-id='5']")
    assert [one.get_attribute("data-id") for one in ids.all()] == ["5", "7"]


def test_a_ranking_that_cannot_be_compared_says_why(page: Any, url: str) -> None:
    asked: list[Any] = []

    def refuse_the_second(route: Any) -> None:
        asked.append(route)
        route.continue_() if len(asked) == 1 else route.fulfill(**PROBLEM)

    page.route("**/search?*", refuse_the_second)
    page.goto(f"{url}/#weights?c=things&q=%230")
    page.locator(".problem", has_text="too many requests").wait_for()


def held_searches(page: Any, of_costs: bool) -> list[Any]:
    """Where searches wait from now on: those by costs, or all."""
    held: list[Any] = []

    def hold(route: Any) -> None:
        waits = not of_costs or "costs" in route.request.post_data_json
        held.append(route) if waits else route.continue_()

    page.route("**/search?*", hold)
    return held


def until(page: Any, held: list[Any], count: int) -> None:
    """Wait until so many requests are held."""
    for _ in range(200):
        if len(held) >= count:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{len(held)} requests, expected {count}")


def test_a_ranking_is_compared_only_with_that_of_its_own_query(page: Any, url: str) -> None:
    page.goto(f"{url}/#weights?c=things&q=%239")
    page.get_by_text("0 of 10 places changed").wait_for()
    held = held_searches(page, of_costs=True)
    page.fill("input[type=search]", "#40")
    page.keyboard.press("Enter")
    until(page, held, 2)
    query = {"id": 40, "k": 10}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    for route in held[:2]:
        assert page.get_by_text("Ranking\u2026").count() == 1
        route.continue_()
        page.locator(f".ranking li:first-child[data-id='{hits[0]['id']}']").wait_for()
    page.get_by_text("0 of 10 places changed").wait_for()


def test_plain_hits_of_the_query_before_do_not_stand_beside_the_new_ones(
    page: Any, url: str
) -> None:
    page.goto(f"{url}/#search?c=things&q=%239")
    page.wait_for_selector(".hit .strip")
    held = held_searches(page, of_costs=True)
    page.get_by_label("Compare with plain Hamming").check()
    until(page, held, 1)
    page.fill("input[type=search]", "#40")
    page.keyboard.press("Enter")
    first = page.locator(".beside section:first-child .hit .id").first
    query = {"id": 40, "k": 10}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    first.get_by_text(f"#{hits[0]['id']}", exact=True).wait_for()
    page.wait_for_selector(".beside section:first-child .strip")
    held[0].continue_()
    until(page, held, 2)
    assert page.locator(".beside section:nth-child(2) .hit").count() == 0
    held[1].continue_()
    page.get_by_text("10 of 10 are weighted hits too").wait_for()


def test_rows_that_were_looked_at_are_counted_once(page: Any, url: str) -> None:
    counters = {
        "rows_scanned": 96, "rows_scanned_wide": 96, "blocks_probed": 3, "probes": 5,
        "rows_scored_directly": 4, "verified": 20,
    }  # fmt: skip

    def change(route: Any) -> None:
        answer = route.fetch().json()
        answer["plan"]["counters"].update(counters)
        answer["plan"]["segments"][0].update(bands=4, band_bits=16)
        route.fulfill(json=answer)

    page.route("**/explain?*", change)
    page.goto(f"{url}/#how?c=things&q=%239")
    page.get_by_text("100 (33.3 %)", exact=True).wait_for()
    page.get_by_text("24 (8 %)", exact=True).wait_for()
    page.get_by_text("they let the search skip 66.7 % of the items").wait_for()
    page.get_by_text("Segment of 300 rows, 4 bands of up to 16 bits").wait_for()
    # All rows are scanned, and a sample of them is scored twice.
    counters.update(rows_scanned=300, rows_scored_directly=256, verified=290)
    page.get_by_role("button", name="Search").click()
    page.get_by_text("300 (100 %)", exact=True).nth(1).wait_for()


def test_a_restart_between_two_looks_gives_no_negative_rate(page: Any, url: str) -> None:
    counts = itertools.chain([1000], itertools.count(900, -1))

    def shrink(route: Any) -> None:
        line = 'bitweigh_requests_total{route="GET /v1",status="200"}'
        route.fulfill(body=f"{line} {next(counts)}")

    page.route("**/metrics", shrink)
    page.goto(f"{url}/#health?c=things")
    page.get_by_role("cell", name="1,000").wait_for()
    page.get_by_role("cell", name="900", exact=True).wait_for()
    assert page.get_by_role("heading", name="Requests").inner_text() == "Requests"


@pytest.mark.parametrize("address", ["#constructor?c=things", "#__proto__?c=things", "#?c=things"])
def test_a_view_that_is_none_is_search(page: Any, url: str, address: str) -> None:
    page.goto(f"{url}/{address}")
    page.get_by_text("or start from an item").wait_for()
    assert page.title() == "Search \u00b7 bitweigh"


def test_an_address_may_have_question_marks(page: Any, url: str) -> None:
    page.goto(f'{url}/#search?c=things&q=why?&f={{"lang":"de"}}')
    page.get_by_role("button", name="Remove the filter lang").wait_for()
    assert page.locator("input[type=search]").input_value() == "why?"


def test_the_keyboard_stays_in_the_content_when_a_button_goes(page: Any, url: str) -> None:
    page.goto(f'{url}/#browse?c=things&f={{"lang":"de"}}')
    page.get_by_role("button", name="Remove the filter lang").press("Enter")
    page.get_by_text("Item 10", exact=True).wait_for()
    page.locator("main:focus").wait_for()
    more = page.get_by_role("button", name="More items")
    more.press("Enter")
    page.get_by_text("Item 30", exact=True).wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("Item 50", exact=True).wait_for()
    page.goto(f"{url}/#weights?c=things&q=%230")
    page.get_by_role("slider", name="bit 0", exact=True).press("m")
    page.get_by_text("1 muted").wait_for()
    page.get_by_role("button", name="Reset").press("Enter")
    page.get_by_text("0 muted").wait_for()
    page.locator("button:focus", has_text="Reset").wait_for()


def test_a_wrong_key_leaves_the_keyboard_in_the_box_for_keys(browser: Any, tmp_path: Path) -> None:
    from bitweigh.server.keys import KeyFile

    KeyFile(tmp_path / "keys.json").add("reader", "read", [])
    page = Watched(browser).page
    with running_server(tmp_path) as address:
        page.goto(address)
        for typed in ("bw_wrong", "bw_wronger"):
            page.locator("input[type=password]:focus").wait_for()
            page.keyboard.type(typed)
            page.keyboard.press("Enter")
            page.get_by_text("does not know this key").wait_for()
        page.close()


def test_a_file_that_is_refused_while_another_view_is_open_is_said_later(
    page: Any, url: str
) -> None:
    held: list[Any] = []
    page.route("**/import?*", lambda route: held.append(route))
    page.goto(f"{url}/#import?c=none")
    choose_file(page)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_text("Sending the file").wait_for()
    page.get_by_role("link", name="Browse").click()
    page.get_by_text("This collection has no items yet").wait_for()
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_text("Sending the file").wait_for()
    choose_file(page)
    assert not page.get_by_role("button", name="Import 50 rows").is_enabled()
    page.get_by_role("link", name="Browse").click()
    page.get_by_text("This collection has no items yet").wait_for()
    held[0].fulfill(**PROBLEM)
    page.get_by_role("link", name="Import", exact=True).click()
    page.locator(".problem", has_text="too many requests").wait_for()
    assert len(held) == 1


def test_a_file_that_changed_under_its_name_is_read_again(
    page: Any, url: str, tmp_path: Path
) -> None:
    page.goto(f"{url}/#import?c=none")
    path = tmp_path / "rows.parquet"
    for rows in (50, 60):
        path.write_bytes(parquet(rows))
        with page.expect_file_chooser() as chooser:
            page.locator("input[type=file]").click()
        chooser.value.set_files(path)
        page.get_by_role("button", name=f"Import {rows} rows").wait_for()


def test_items_are_named_by_keys_where_no_column_was_suggested(page: Any, url: str) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"score": [0.5], "num": [1.5], "code": [b"12345678"]}), out)
    page.goto(f"{url}/#import?c=none")
    choose_file(page, out.getvalue())
    assert page.get_by_role("button", name="Import 1 row").is_disabled()
    page.get_by_label("Items are named by").select_option("key")
    page.locator(".fields select").nth(1).select_option("num")
    page.get_by_text("as curl and Python").first.click()
    page.get_by_text("import?key=num&value=code&payload=score").wait_for()


def test_an_import_that_runs_stays_in_sight_when_another_file_is_chosen(
    page: Any, url: str
) -> None:
    def run_on(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "state": "running"})

    page.route("**/v1/jobs/*", run_on)
    page.goto(f"{url}/#import?c=one")
    choose_file(page)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_role("heading", name="Importing").wait_for()
    choose_file(page, name="other.parquet")
    page.get_by_role("heading", name="other.parquet").wait_for()
    assert page.get_by_role("heading", name="Importing").count() == 1
    assert not page.get_by_role("button", name="Import 50 rows").is_enabled()


def test_a_deleted_collection_leaves_the_list(page: Any, url: str) -> None:
    create(url, "short-lived", [])
    page.goto(f"{url}/#health?c=short-lived")
    page.get_by_role("heading", name="Collection short-lived").wait_for()
    httpx.delete(f"{url}/v1/collections/short-lived").raise_for_status()
    page.get_by_text("There is no collection short-lived here").wait_for()
    assert "short-lived" not in page.locator("header select").inner_text()


def test_names_that_are_too_long_for_filters_are_no_buttons(page: Any, url: str) -> None:
    payload = {"n" * 300: "long", "short": "a value"}
    create(url, "names", [{"id": 1, "code": "AAAAAAAAAAA=", "payload": payload}])
    page.goto(f"{url}/#browse?c=names")
    page.wait_for_selector(".hit .value")
    assert page.locator(".hit .value").all_inner_texts() == ["a value"]


def test_numbers_that_filters_would_round_are_no_buttons(page: Any, url: str) -> None:
    payload = {"huge": 1e20, "half": 0.5, "whole": 7.0}
    create(url, "floats", [{"id": 1, "code": "AAAAAAAAAAA=", "payload": payload}])
    page.goto(f"{url}/#browse?c=floats")
    page.wait_for_selector(".hit .value")
    assert page.locator(".hit .value").all_inner_texts() == ["0.5", "7"]
