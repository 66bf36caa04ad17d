"""What the page says is true: ranks, reasons, counts; and it fits where there is little room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from page_browser import VIEWS
from page_cases import VECTOR, choose_file, create, served_page

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("page")) as address:
        yield address


@pytest.fixture(scope="module")
def reranked(url: str) -> str:
    """A collection whose hits are ranked again by vectors, in another order than by codes."""
    vectors = np.random.default_rng(3).standard_normal((400, 16))
    here = f"{url}/v1/collections/reranked"
    options = {"kind": "vectors", "dim": 16, "n_bits": 16, "rerank": "float32", "fit_after": 400}
    httpx.put(here, json=options).raise_for_status()
    items = [{"id": id_, "vector": row.tolist()} for id_, row in enumerate(vectors)]
    httpx.put(f"{here}/items", json={"items": items}).raise_for_status()
    return here


def ids_of(hits: list[dict[str, Any]]) -> list[str]:
    return [str(hit["id"]) for hit in hits]


def test_ranks_by_vectors_are_not_called_weighted(page: Any, url: str, reranked: str) -> None:
    page.goto(f"{url}/#search?c=reranked&q=%235")
    page.get_by_label("Compare with plain Hamming").check()
    page.get_by_text("are vector hits too").wait_for()
    hits = ids_of(httpx.post(f"{reranked}/search", json={"id": 5, "k": 10}).json()["hits"])
    why = httpx.post(f"{reranked}/explain", json={"id": 5, "k": 10, "bins": 0}).json()
    assert hits != ids_of(why["hits"])
    shown = page.locator(".beside section:last-child .hit")
    seen = 0
    for row in shown.all():
        id_ = row.locator(".title").inner_text().removeprefix("#")
        mark = row.locator(".mark").inner_text()
        assert mark == (f"vector rank {hits.index(id_) + 1}" if id_ in hits else "only here")
        seen += id_ in hits
    page.get_by_text(f"{seen} of 10 are vector hits too").wait_for()


@pytest.mark.usefixtures("reranked")
@pytest.mark.parametrize("view", ["why", "weights", "how"])
def test_views_of_codes_say_that_vectors_rank_again(page: Any, url: str, view: str) -> None:
    page.goto(f"{url}/#{view}?c=reranked&q=%235")
    page.get_by_text("Search ranks them again by the vectors").wait_for()
    page.goto(f"{url}/#{view}?c=things&q=%2310")
    page.get_by_text("Search ranks them again by the vectors").wait_for(state="detached")


@pytest.mark.parametrize(("view", "row"), [("why", ".hit"), ("weights", ".ranking li")])
def test_hits_are_followed_by_a_line_of_what_else_they_say(
    page: Any, url: str, view: str, row: str
) -> None:
    query = {"id": 10, "k": 100, "payload": True}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    page.goto(f"{url}/#{view}?c=things&q=%2310&k=100")
    page.locator(f"{row} .summary").first.wait_for()
    shown = [one.inner_text() for one in page.locator(f"{row} .summary").all()]
    expected = [
        hit["payload"]["lang"] for hit in hits if hit["payload"]["title"].startswith("Item")
    ]
    assert [text for text in shown if text in ("de", "fr")] == expected


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("search", "The nearest items"),
        ("why", "Why each hit is near"),
        ("weights", "What each bit weighs"),
        ("how", "among all distances"),
    ],
)
def test_a_view_without_a_query_introduces_itself(
    page: Any, url: str, view: str, said: str
) -> None:
    page.goto(f"{url}/#{view}?c=things")
    page.locator(".empty", has_text=said).wait_for()
    page.goto(f"{url}/#{view}?c=things&q=%2310")
    page.locator(".empty", has_text=said).wait_for(state="detached")


def test_the_only_item_that_meets_a_filter_is_not_denied(page: Any, url: str) -> None:
    page.goto(f'{url}/#search?c=things&q=%231&f={{"lang":"he"}}')
    page.get_by_text("No other item has these values").wait_for()
    page.goto(f'{url}/#search?c=things&q={VECTOR}&f={{"lang":"xx"}}')
    page.get_by_text("No item has these values").wait_for()


def test_a_filter_that_leaves_fewer_hits_is_why_others_are_none(page: Any, url: str) -> None:
    codes = ["AAAAAAAAAAA=", "AAAAAAAAAAE=", "//////////8="]
    items = [
        {"id": id_, "code": code, "payload": {"kept": id_ < 2}} for id_, code in enumerate(codes)
    ]
    create(url, "few", items)
    page.goto(f'{url}/#why?c=few&q=%230&f={{"kept":true}}')
    page.get_by_label("Why is this item not a hit?").fill("2")
    page.keyboard.press("Enter")
    page.get_by_text("left out by the filter").wait_for()


def test_contrast_counts_as_a_change_of_all_weights(page: Any, url: str) -> None:
    page.goto(f"{url}/#weights?c=things&q={VECTOR}")
    page.get_by_text("0 bits changed, 0 muted").wait_for()
    page.get_by_label("Contrast").fill("2")
    weights = {abs(value) for value in VECTOR}
    page.get_by_text(re.compile(r"[56]\d bits changed, 0 muted")).wait_for()
    assert len(weights) > 1


def test_muting_a_bit_that_weighs_nothing_is_no_change_of_weights(page: Any, url: str) -> None:
    page.goto(f"{url}/#weights?c=things&q={[*VECTOR[:-1], 0]}")
    page.get_by_text("0 bits changed, 0 muted").wait_for()
    page.locator(".bar").last.press("m")
    page.get_by_text("0 bits changed, 1 muted").wait_for()
    page.locator(".bar").first.press("m")
    page.get_by_text("0 bits changed, 2 muted").wait_for()
    page.locator(".bar").nth(1).press("ArrowDown")
    page.get_by_text("1 bit changed, 2 muted").wait_for()


def test_a_fast_drag_draws_every_bar_on_its_way_and_light_bars_reach_the_top(
    page: Any, url: str
) -> None:
    page.goto(f"{url}/#weights?c=things&q={VECTOR}")
    page.get_by_text("0 bits changed").wait_for()
    box = page.locator(".bars").bounding_box()
    top, bottom = box["y"] + 8, box["y"] + box["height"] - 8
    page.mouse.move(box["x"] + 3, bottom)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3, top)
    page.mouse.up()
    fills = page.locator(".bar .fill")
    heights = [float(one.evaluate("one => parseFloat(one.style.height)")) for one in fills.all()]
    assert heights == sorted(heights)
    assert heights[0] < 10
    assert heights[-1] > 90
    assert page.locator(".bar:not(.changed)").count() <= 2


def test_a_filter_far_down_shows_its_chip_and_the_first_hit(page: Any, url: str) -> None:
    page.goto(f"{url}/#search?c=things&q=%2310&k=100")
    page.locator(".hit .strip").nth(80).scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 1000
    page.locator(".hit").nth(80).get_by_role("button", name=re.compile("^(de|fr)$")).click()
    page.get_by_role("button", name="Remove the filter lang").wait_for()
    page.wait_for_function("() => scrollY === 0")


def test_a_collection_that_is_new_to_the_page_is_shown(page: Any, url: str) -> None:
    page.goto(f"{url}/#browse?c=things")
    page.wait_for_selector(".hit")
    create(url, "later", [{"id": 3, "code": "AAAAAAAAAAA="}])
    page.evaluate("location.hash = '#browse?c=later'")
    page.locator(".hit", has_text="#3").wait_for()
    page.get_by_text("1 item by id").wait_for()


def test_items_that_others_have_written_are_counted_in_the_next_view(page: Any, url: str) -> None:
    create(url, "growing", [{"id": 3, "code": "AAAAAAAAAAA="}])
    page.goto(f"{url}/#browse?c=growing")
    page.get_by_text("1 item by id").wait_for()
    body = {"items": [{"id": 4, "code": "AAAAAAAAAAA="}]}
    httpx.put(f"{url}/v1/collections/growing/items", json=body).raise_for_status()
    page.get_by_role("link", name="Search").click()
    page.get_by_role("link", name="Browse").click()
    page.get_by_text("2 items by id").wait_for()


def test_a_refused_filter_leaves_no_items_that_do_not_meet_it(page: Any, url: str) -> None:
    page.goto(f"{url}/#browse?c=things")
    page.wait_for_selector(".hit")
    page.evaluate("""location.hash = '#browse?c=things&f={"a":[1]}'""")
    page.locator(".problem").wait_for()
    page.wait_for_function("() => !document.querySelector('.hit')")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 200, "body": "<html>login</html>"}, "not valid JSON"),
        ({"status": 500, "body": "<html>oops</html>"}, "The server answered with status 500."),
    ],
)
@pytest.mark.parametrize("view", ["search", "why", "browse"])
def test_an_answer_of_something_in_between_is_said(
    page: Any, url: str, view: str, answer: dict[str, Any], said: str
) -> None:
    page.route(re.compile("/(search|explain|items)[?]"), lambda route: route.fulfill(**answer))
    page.goto(f"{url}/#{view}?c=things&q=%2310")
    page.locator(".problem", has_text=said).wait_for()


def test_hits_whose_bits_cannot_be_had_come_with_the_reason(page: Any, url: str) -> None:
    gone = {"status": 404, "json": {"detail": "there is no item 9"}}
    page.route("**/explain?*", lambda route: route.fulfill(**gone))
    page.goto(f"{url}/#search?c=things&q=%2310")
    page.locator(".problem", has_text="there is no item 9").wait_for()
    assert page.locator(".hit").count() == 10


def test_an_import_ends_when_only_the_request_without_the_file_is_answered(
    page: Any, url: str
) -> None:
    page.route(
        "**/import?*",
        lambda route: route.abort() if route.request.post_data_buffer else route.fulfill(body=""),
    )
    page.goto(f"{url}/#import?c=none")
    choose_file(page)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_text("may be too large").wait_for()
    assert page.get_by_role("button", name="Import 50 rows").is_enabled()


def test_an_import_is_stopped(page: Any, url: str) -> None:
    states = ["running"]

    def state(route: Any) -> None:
        if route.request.method == "DELETE":
            states.append("cancelled")
        route.fulfill(json={**route.fetch(method="GET").json(), "state": states[-1]})

    page.route("**/v1/jobs/*", state)
    page.goto(f"{url}/#import?c=none")
    choose_file(page)
    page.get_by_role("button", name="Import 50 rows").click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("heading", name="The import was stopped").wait_for()


def test_another_collection_is_created_from_the_import_view(page: Any, url: str) -> None:
    page.goto(f"{url}/#import?c=none")
    page.get_by_text("Create another collection").click()
    page.get_by_label("Name").fill("another")
    page.get_by_label("Items are").select_option("codes")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("another (0)").wait_for(state="attached")
    page.wait_for_url("**#import?c=another")


def test_a_command_is_copied_as_it_stands(browser: Any, url: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{url}/#search?c=things&q=%2310")
    page.get_by_text("as curl and Python").click()
    page.get_by_role("button", name="Copy Python").click()
    page.get_by_role("button", name="Copied").wait_for()
    shown = page.locator("pre").nth(1).inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == shown
    context.close()


def test_the_metrics_that_a_key_may_not_read_are_asked_for_once(page: Any, url: str) -> None:
    asked: list[Any] = []

    def refuse(route: Any) -> None:
        asked.append(route)
        route.fulfill(status=403, json={"detail": "not with this key"})

    page.route("**/metrics", refuse)
    page.goto(f"{url}/#health?c=things")
    page.get_by_text("may not read the metrics").wait_for()
    for _ in range(2):
        with page.expect_response("**/v1/collections/things?*"):
            pass
    assert len(asked) == 1


def test_the_histogram_is_drawn_again_for_another_scheme_and_width(page: Any, url: str) -> None:
    page.goto(f"{url}/#how?c=things&q=%2310")
    page.wait_for_selector(".plot canvas")
    drawn = "() => document.querySelector('.plot canvas').toDataURL()"
    light = page.evaluate(drawn)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => ({drawn})() !== light", arg=light)
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_function("() => document.querySelector('.plot canvas').clientWidth < 500")


@pytest.mark.parametrize(("width", "font"), [(320, 16), (360, 32)])
@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_on_the_smallest_screens_and_with_text_twice_as_large(
    page: Any, url: str, view: str, width: int, font: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{url}/#{view}?c=things&q=%230&k=5")
    page.wait_for_selector("main :is(.hit, .bars, canvas, .drop, .card table)")
    page.evaluate(f"document.documentElement.style.fontSize = '{font}px'")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_long_keys_are_broken(page: Any, url: str) -> None:
    items = [
        {"key": letter * 300, "code": "AAAAAAAAAAA=", "payload": {"title": letter}}
        for letter in "kl"
    ]
    create(url, "long-keys", items)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"{url}/#search?c=long-keys&q=%23{'k' * 300}")
    page.wait_for_selector(".hit .strip")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_strip_of_a_long_code_says_that_it_is_not_all(page: Any, url: str) -> None:
    code = "A" * 171 + "="
    create(url, "long", [{"id": id_, "code": code} for id_ in range(3)], n_bits=1024)
    page.goto(f"{url}/#why?c=long&q=%231")
    page.get_by_text("The first 512 bits are shown").wait_for()
    page.goto(f"{url}/#why?c=things&q=%2310")
    page.get_by_text("The first 512 bits are shown").wait_for(state="detached")


def test_a_null_stands_for_items_without_the_field(page: Any, url: str) -> None:
    page.goto(f"{url}/#browse?c=things")
    assert (
        page.get_by_role("button", name="null").get_attribute("title") == "Only items without none"
    )
