"""The page in a browser: every view, small and large, light and dark, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from page_browser import VIEWS, Watched
from page_cases import BIG, VECTOR, create, served_page, things

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("browser")]

SHOWN = {
    "search": ".hit .strip",
    "why": ".compare .fill",
    "weights": ".ranking li",
    "how": ".plot canvas",
    "browse": ".hit",
    "import": ".drop",
    "health": ".card table",
}
MAX_BYTES = 200_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("page")) as address:
        yield address


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_itself_without_findings(
    browser: Any, url: str, view: str, width: int, scheme: str
) -> None:
    watched = Watched(browser, width, scheme)
    page = watched.page
    page.goto(f"{url}/#{view}?c=things&q=%230&k=5")
    page.wait_for_selector(SHOWN[view])
    assert page.locator("nav a[aria-current=page]").inner_text().lower() == view
    assert page.locator(".problem").count() == 0
    watched.check(url, view)
    page.locator(".snippet summary").first.click()
    watched.check(url)
    watched.close()


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("collection", "query", "expected"),
    [
        ("one", "#1", {"search": "nothing else to find", "why": "no hits to explain"}),
        ("none", "", {"search": "no items yet", "browse": "no items yet", "health": "items"}),
        ("keyed", "#key 3", {"search": "key 4", "why": "Side by side", "browse": "key 0"}),
        ("books", "#5", {"search": "plan: shards", "why": "Side by side", "how": "3 shards",
                         "weights": "places changed", "browse": "cluster", "import": "cluster",
                         "health": "3 shards \u00d7 1 replica"}),
    ],
)  # fmt: skip
def test_views_of_one_item_of_none_of_keys_and_of_a_cluster(
    browser: Any, url: str, view: str, width: int, collection: str, query: str,
    expected: dict[str, str],
) -> None:  # fmt: skip
    watched = Watched(browser, width)
    address = httpx.URL("/", params={"c": collection, "q": query}).query.decode()
    watched.page.goto(f"{url}/#{view}?{address}")
    watched.page.wait_for_selector("main :is(.card:not(.ghost), .empty, .hits, .drop, .bars)")
    if view in expected:
        watched.page.get_by_text(expected[view]).first.wait_for()
    assert watched.page.locator(".problem").count() == 0
    watched.check(url, f"{view}-{collection}")
    watched.close()


def test_a_narrow_screen_shows_the_times_of_requests_without_scrolling(
    browser: Any, url: str
) -> None:
    watched = Watched(browser, 360)
    watched.page.goto(f"{url}/#health?c=things")
    watched.page.get_by_text("\u2264").first.wait_for()
    table = watched.page.get_by_role("region", name="requests by route")
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0
    watched.close()


def test_items_without_a_title_are_ranked_by_their_ids_on_a_narrow_screen(
    browser: Any, url: str
) -> None:
    watched = Watched(browser, 360)
    page = watched.page
    page.goto(f"{url}/#weights?c=books&q=%235&k=4")
    page.wait_for_selector(".ranking li")
    query = {"id": 5, "k": 4}
    hits = httpx.post(f"{url}/v1/collections/books/search", json=query).json()["hits"]
    names = [one.inner_text() for one in page.locator(".ranking .title").all()]
    assert names == [f"#{hit['id']}" for hit in hits]
    assert all(one.is_visible() for one in page.locator(".ranking .title").all())
    watched.close()


def test_the_page_as_loaded_is_small(watched: Watched, url: str) -> None:
    sizes: list[int] = []
    watched.page.on(
        "response",
        lambda answer: "/v1" in answer.url or sizes.append(len(answer.body())),
    )
    watched.page.goto(f"{url}/#browse?c=things")
    watched.page.wait_for_selector(SHOWN["browse"])
    assert 100_000 < sum(sizes) <= MAX_BYTES


def test_payloads_are_text_and_nothing_foreign_is_loaded(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#browse?c=things")
    page.wait_for_selector(".hit")
    assert page.get_by_text("<script>window.stolen").count() == 1
    assert page.evaluate("window.stolen") is None
    page.get_by_text("a picture that cannot be shown").wait_for()
    page.wait_for_function("() => [...document.images].every((one) => one.complete)")
    assert page.locator("img.thumb").count() == 2
    widths = page.eval_on_selector_all("img.thumb", "all => all.map((one) => one.naturalWidth)")
    assert widths == [32, 32]
    assert page.get_by_text("data:image/svg+xml").count() == 1
    assert page.locator("a[href='https://example.org/cat.png']").count() == 1
    assert page.locator("a[href^='javascript']").count() == 0
    hebrew = page.locator("strong.title", has_text="ספרים")
    assert hebrew.evaluate("one => getComputedStyle(one).direction") == "rtl"
    watched.check(url)


def test_a_click_on_a_value_filters_items_and_searches(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#browse?c=things")
    page.get_by_role("button", name="he", exact=True).click()
    page.locator(".hit").nth(1).wait_for(state="detached")
    page.locator(".id").get_by_text("#1", exact=True).wait_for()
    page.get_by_role("button", name="Remove the filter lang").click()
    page.get_by_text("Item 10", exact=True).wait_for()
    page.get_by_role("button", name="fr", exact=True).first.click()
    page.get_by_text("Item 10", exact=True).wait_for(state="detached")
    page.get_by_role("button", name="More like this #9", exact=True).click()
    page.wait_for_selector(".hit .strip")
    assert set(page.locator(".hit .value").all_inner_texts()) == {"fr"}
    assert page.locator(".hit .strip").count() == 10
    page.get_by_role("link", name="How").click()
    french = sum(item["payload"].get("lang") == "fr" for item in things())
    page.get_by_text(f"{french} items by distance").wait_for()
    watched.check(url)


def test_items_are_browsed_from_an_id_on_and_page_by_page(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#browse?c=things")
    page.get_by_role("button", name="More items").click()
    page.get_by_text("Item 30", exact=True).wait_for()
    assert page.locator(".hit").count() == 40
    page.get_by_label("From").fill("#295")
    page.keyboard.press("Enter")
    page.get_by_text("Item 10", exact=True).wait_for(state="detached")
    titles = page.locator(".hit .id").all_inner_texts()
    assert titles == ["#295", "#296", "#297", "#298", "#299", f"#{BIG}"]
    watched.check(url)


def test_keyboard_alone_searches_and_large_ids_are_not_rounded(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=things")
    page.wait_for_selector("input[type=search]")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "search":
            break
    page.keyboard.type(f"#{BIG}")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert page.locator(".problem").count() == 0
    page.goto(f"{url}/#why?c=things&q=%230")
    page.get_by_label("Why is this item not a hit?").fill(f"#{BIG}")
    page.keyboard.press("Enter")
    page.locator(".id").get_by_text(f"#{BIG}", exact=True).wait_for()
    page.get_by_text("not among the 10").wait_for()
    watched.check(url)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("[1, 2", "A vector is a JSON list of numbers"),
        ("[]", "must have numbers only"),
        ("#", "Type an id or a key"),
        ("words", "no embedder for text"),
        ("[1, 2]", "must have 64 numbers"),
        ("#123456", "123456"),
        ("#99999999999999999999", "no item"),
    ],
)
def test_a_wrong_query_is_explained(watched: Watched, url: str, typed: str, said: str) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=things")
    page.fill("input[type=search]", typed)
    page.keyboard.press("Enter")
    page.locator(".problem", has_text=said).first.wait_for()


def test_the_same_query_is_asked_again(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=things&q=%2310")
    page.wait_for_selector(".hit .strip")
    with page.expect_request("**/search?ids=string"):
        page.get_by_role("button", name="Search").click()


def test_a_collection_that_is_not_there_is_not_replaced_by_another(
    watched: Watched, url: str
) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=gone&q=%2310")
    page.get_by_text("There is no collection gone here").wait_for()
    assert page.locator(".hit").count() == 0
    page.locator("header select").select_option("things")
    page.get_by_text("or start from an item").wait_for()
    watched.check(url)


def test_integers_beyond_doubles_are_shown_as_they_are(watched: Watched, url: str) -> None:
    payload = {"big": 2**53 + 1, "list": [2**60 + 1, 0.5], "small": 7}
    item = {"id": 1, "code": "AAAAAAAAAAA=", "payload": payload}
    create(url, "numbers", [item])
    page = watched.page
    page.goto(f"{url}/#browse?c=numbers")
    page.get_by_text(str(2**53 + 1), exact=True).wait_for()
    page.get_by_text(f"[{2**60 + 1},0.5]", exact=True).wait_for()
    assert page.locator(".hit .value").all_inner_texts() == ["7"]


def test_a_filtered_out_item_and_a_hit_are_told_apart_from_those_too_far(
    watched: Watched, url: str
) -> None:
    page = watched.page
    page.goto(f'{url}/#why?c=things&q=%2310&f={{"lang":"fr"}}')
    page.wait_for_selector(".compare")
    query = {"id": 10, "k": 30, "payload": True}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    nearest = next(hit["id"] for hit in hits if hit["payload"].get("lang") == "de")
    first = next(hit["id"] for hit in hits if hit["payload"].get("lang") == "fr")
    box = page.get_by_label("Why is this item not a hit?")
    box.fill(f"00{nearest}")
    page.keyboard.press("Enter")
    page.get_by_text("left out by the filter").wait_for()
    box.fill(str(first))
    page.keyboard.press("Enter")
    page.get_by_text("it is a hit, rank 1", exact=True).wait_for()
    box.fill("10")
    page.keyboard.press("Enter")
    page.get_by_text("the item that was asked for").wait_for()
    page.fill("input[type=search]", "#12")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("left out by the filter").wait_for(state="detached")


def test_plain_hamming_stands_beside_the_weighted_hits(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=things&q={VECTOR}")
    page.wait_for_selector(".hit .strip")
    weighted = page.locator(".hit .id").all_inner_texts()
    page.get_by_label("Compare with plain Hamming").check()
    page.get_by_text("are weighted hits too").wait_for()
    ids = page.locator(".beside section:nth-child(2) .hit .id").all_inner_texts()
    costs = [[0, 1] if value < 0 else [1, 0] for value in VECTOR]
    query = {"costs": costs, "k": 10}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    assert ids == [f"#{hit['id']}" for hit in hits]
    shared = set(ids) & set(weighted)
    assert 0 < len(shared) < 10
    for side in ("first", "last"):
        section = page.locator(f".beside section:{side}-child")
        assert section.get_by_text("only here").count() == 10 - len(shared)
    page.locator(".beside section:nth-child(2) .strip").nth(9).wait_for()
    watched.check(url, "plain")


def test_what_the_bits_of_a_hit_pay_is_listed_and_two_hits_are_compared(
    watched: Watched, url: str
) -> None:
    page = watched.page
    page.goto(f"{url}/#why?c=things&q=%230")
    page.wait_for_selector(".compare")
    first = page.locator(".hit").first
    label = str(first.locator("svg").get_attribute("aria-label"))
    differs = re.search(r"differs from the query in (\d+) of 64 bits", label)
    assert differs is not None
    first.locator("summary").click()
    first.locator("tbody tr").first.wait_for()
    assert first.locator("tbody tr").count() == int(differs[1])
    assert first.locator(".distance").inner_text().split()[-1] == differs[1]
    page.get_by_label("the other item").select_option(index=5)
    page.get_by_text("is nearer by").wait_for()
    box = first.locator("svg").bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 5)
    page.get_by_text(re.compile(r"bit \d+ · weight 1 · query [01], item [01]")).wait_for()
    watched.check(url)


def test_bits_that_pay_are_those_that_differ_whatever_the_best_code_pays(
    watched: Watched, url: str
) -> None:
    page = watched.page
    page.goto(f"{url}/#why?c=things&q={VECTOR}&k=5")
    page.wait_for_selector(".compare")
    query = {"vector": VECTOR, "k": 5}
    why = httpx.post(f"{url}/v1/collections/things/explain", json=query).json()
    said = [one.get_attribute("aria-label") for one in page.locator(".hit svg").all()]
    for hit, label in zip(why["hits"], said, strict=True):
        bits = why["bits"][str(hit["id"])]["bits"]
        differ = sum(
            bit != str(int(costs[1] < costs[0]))
            for bit, costs in zip(bits, why["costs"], strict=True)
        )
        assert f"differs from the query in {differ} of 64 bits" in str(label)
    base = sum(min(costs) for costs in why["costs"])
    page.get_by_text(f"No code can be nearer than {base:.2f}").wait_for()


def test_a_slow_answer_does_not_take_the_place_of_the_newest(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#search?c=things")
    page.wait_for_selector("input[type=search]")
    first: list[Any] = []

    def answer(route: Any) -> None:
        if first:
            route.continue_()
        else:
            first.append(route)

    page.route("**/search?ids=string", answer)
    with page.expect_request("**/search?ids=string"):
        page.fill("input[type=search]", "#10")
        page.keyboard.press("Enter")
    for query in ("#11", "#12"):
        page.fill("input[type=search]", query)
        page.keyboard.press("Enter")
    page.wait_for_url("**#search*%2312*")
    first[0].continue_()
    body = {"id": 12, "k": 10}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=body).json()["hits"]
    page.locator(".hit .id").first.get_by_text(f"#{hits[0]['id']}", exact=True).wait_for()
    page.wait_for_selector(".hit .strip")
    shown = page.locator(".hit .id").all_inner_texts()
    assert shown == [f"#{hit['id']}" for hit in hits]


def test_muted_and_drawn_bits_change_the_ranking(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#weights?c=things&q=%230&k=10")
    page.get_by_text("0 of 10 places changed").wait_for()
    page.locator(".bar").first.focus()
    for _ in range(20):
        page.keyboard.press("m")
        page.keyboard.press("ArrowRight")
    page.get_by_text("20 muted").wait_for()
    page.get_by_text(re.compile(r"[1-9]\d* of 10 places changed")).wait_for()
    assert (
        page.get_by_role("slider", name="bit 0", exact=True).get_attribute("aria-valuetext")
        == "muted"
    )
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("0 of 10 places changed").wait_for()
    box = page.locator(".bars").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.25 * box["height"], steps=40)
    page.mouse.up()
    page.get_by_text(re.compile(r"3\d bits changed, 0 muted")).wait_for()
    page.locator(".bar").last.click()
    page.get_by_text("1 muted").wait_for()
    watched.check(url, "drawn")


def test_contrast_zero_ranks_by_plain_hamming(watched: Watched, url: str) -> None:
    page = watched.page
    page.goto(f"{url}/#weights?c=things&q={VECTOR}")
    page.get_by_text("0 of 10 places changed").wait_for()
    page.get_by_label("Contrast").fill("0")
    page.get_by_text("0: plain Hamming").wait_for()
    costs = [[0, 1] if value < 0 else [1, 0] for value in VECTOR]
    query = {"costs": costs, "k": 10}
    hits = httpx.post(f"{url}/v1/collections/things/search", json=query).json()["hits"]
    last = page.locator(".ranking li").last
    last.get_by_text(f"#{hits[-1]['id']}", exact=True).wait_for()
    assert page.locator(".ranking .id").all_inner_texts() == [f"#{hit['id']}" for hit in hits]
