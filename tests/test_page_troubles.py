"""The page when a request fails, things change under it, or the keyboard's place goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from page_browser import Watched, launched
from page_cases import create, parquet, served_page
from running_server import running_server

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]

PROBLEM = {"status": 429, "json": {"detail": "too many requests"}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("page")) as address:
        yield address


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    watched = Watched(browser)
    yield watched.page
    watched.close()


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
    file = {"name": "rows.parquet", "mimeType": "", "buffer": parquet()}
    page.set_input_files("input[type=file]", file)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_text("sending a file").wait_for()
    page.get_by_role("link", name="Browse").click()
    page.get_by_text("This collection has no items yet").wait_for()
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_text("sending a file").wait_for()
    page.set_input_files("input[type=file]", file)
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


def test_a_deleted_collection_leaves_the_list(page: Any, url: str) -> None:
    create(url, "short-lived", [])
    page.goto(f"{url}/#health?c=short-lived")
    page.get_by_role("heading", name="Collection short-lived").wait_for()
    httpx.delete(f"{url}/v1/collections/short-lived").raise_for_status()
    page.get_by_text("There is no collection short-lived here").wait_for()
    assert "short-lived" not in page.locator("header select").inner_text()


def test_numbers_that_filters_would_round_are_no_buttons(page: Any, url: str) -> None:
    payload = {"huge": 1e20, "half": 0.5, "whole": 7.0}
    create(url, "floats", [{"id": 1, "code": "AAAAAAAAAAA=", "payload": payload}])
    page.goto(f"{url}/#browse?c=floats")
    page.wait_for_selector(".hit .value")
    assert page.locator(".hit .value").all_inner_texts() == ["0.5", "7"]
