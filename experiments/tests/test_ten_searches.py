"""What docs/page.md says of ten searches of the shipped texts, found again by the same requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from bitweigh import server
from bitweigh_experiments.demo import serving
from bitweigh_experiments.demo.collection import as_unit
from bitweigh_experiments.demo.documents import shipped
from bitweigh_experiments.demo.model import load_model

Post = Callable[[str, dict[str, Any]], dict[str, Any]]
SORT = "sort a list by key"
LOWER = "convert text to lower case"
RUN = "run a program and wait until it ends"
BROWSER = "open a web page in a browser"
RANDOM = "random number between two values"


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    """Sends a request for hits to a server that has the texts."""
    pytest.importorskip("wordllama")
    folder = tmp_path_factory.mktemp("ten") / "data"
    model = load_model()
    documents = shipped()
    texts = [document.embedded for document in documents.documents]
    serving.fill(folder, documents, texts, model, 128)
    app = server.app(folder, embedder=lambda asked: as_unit(model.embed(asked)))
    with TestClient(app, base_url="http://127.0.0.1") as client:

        def answer(route: str, body: dict[str, Any]) -> dict[str, Any]:
            given = {"k": 10, "payload": True, **body}
            path = f"/v1/collections/{serving.NAME}/{route}"
            found = client.post(path, json=given)
            assert found.status_code == 200, found.text
            answered: dict[str, Any] = found.json()
            return answered

        yield answer
    app.service.close()


class Why:
    """A query explained: its hits, what bits weigh, and what items pay."""

    def __init__(self, post: Post, query: dict[str, Any], ids: tuple[int, ...] = ()) -> None:
        self.post = post
        found = post("explain", {**query, "ids": list(ids), "bins": 0})
        self.hits: list[dict[str, Any]] = found["hits"]
        self.costs: list[list[float]] = found["costs"]
        self.bits = found["bits"]
        self.weights = [abs(zero - one) for zero, one in self.costs]
        self.order = sorted(range(len(self.weights)), key=lambda bit: -self.weights[bit])

    def pays(self, id_: int) -> list[float]:
        """What each bit of an item pays, heaviest first."""
        paid = self.bits[str(id_)]["pays"]
        return [paid[bit] - min(self.costs[bit]) for bit in self.order]

    def differs(self, id_: int) -> int:
        """In how many bits an item differs from the query."""
        return sum(paid > 0 for paid in self.pays(id_))

    def by(self, weigh: Callable[[int, float], float]) -> list[str]:
        """The ranking with other weights, given by place from heavy to light."""
        costs = [list(pair) for pair in self.costs]
        for place, bit in enumerate(self.order):
            low = min(costs[bit])
            high = low + weigh(place, self.weights[bit])
            costs[bit] = [low, high] if self.costs[bit][0] <= self.costs[bit][1] else [high, low]
        return names(self.post("search", {"costs": costs})["hits"])

    def plain(self) -> list[dict[str, Any]]:
        """The hits by plain Hamming distance."""
        costs = [[0, 1] if zero <= one else [1, 0] for zero, one in self.costs]
        hits: list[dict[str, Any]] = self.post("search", {"costs": costs})["hits"]
        return hits

    def contrasted(self, power: float) -> list[str]:
        """The ranking with weights raised to a power, with the same sum."""
        scale = sum(self.weights) / sum(weight**power for weight in self.weights)
        return self.by(lambda _, weight: scale * weight**power)

    def muted(self) -> list[str]:
        """The ranking without the ten heaviest bits."""
        return self.by(lambda place, weight: 0.0 if place < 10 else weight)


def names(hits: list[dict[str, Any]]) -> list[str]:
    """Of the items, without modules."""
    return [".".join(hit["payload"]["name"].split(".")[-2:]) for hit in hits]


def id_of(hits: list[dict[str, Any]], name: str) -> int:
    """Of a hit."""
    return int(hits[names(hits).index(name)]["id"])


def test_sorted_is_before_what_differs_in_fewer_bits(post: Post) -> None:
    why = Why(post, {"text": SORT})
    first = why.hits[0]["id"]
    assert names(why.hits)[0] == "builtins.sorted"
    assert names(why.plain())[:3] == ["OrderedDict.fromkeys", "list.sort", "builtins.sorted"]
    assert (why.differs(first), sum(why.pays(first)[:12])) == (36, 0)
    assert names(why.hits)[7] == "MH.iterkeys"
    assert why.muted()[0] == "MH.iterkeys"


def test_plain_hamming_finds_what_pays_heavy_bits(post: Post) -> None:
    why = Why(post, {"text": LOWER})
    plain = why.plain()
    assert len({hit["id"] for hit in why.hits} & {hit["id"] for hit in plain}) == 5
    assert names(plain)[2] == "tix.ScrolledText"
    third = Why(post, {"text": LOWER}, (plain[2]["id"],))
    assert sum(paid > 0 for paid in third.pays(plain[2]["id"])[:12]) == 5
    assert names(why.hits)[0] == "str.swapcase"
    assert sum(paid > 0 for paid in why.pays(why.hits[0]["id"])[:7]) == 2
    assert why.contrasted(1.5).index("str.lower") == 1
    assert why.contrasted(1.5).index("str.swapcase") == 3


def test_many_light_bits_are_nearer_than_few_heavy_ones(post: Post) -> None:
    why = Why(post, {"text": RUN})
    assert why.differs(id_of(why.hits, "Popen.wait")) == 43
    plain = why.plain()
    assert (names(plain)[1], plain[1]["distance"]) == ("scheduler.run", 37)
    assert "scheduler.run" not in names(why.hits)
    assert Why(post, {"text": RUN}, (plain[1]["id"],)).pays(plain[1]["id"])[0] > 0


def test_what_an_item_that_is_no_hit_pays(post: Post) -> None:
    why = Why(post, {"text": "remove a directory and all its files"}, (4930,))
    assert "shutil.rmtree" not in names(why.hits)
    first, other = why.pays(why.hits[0]["id"]), why.pays(4930)
    apart = [place for place in range(128) if (first[place] > 0) != (other[place] > 0)]
    assert len(apart) == 41
    assert all(other[place] > 0 for place in apart[:6])


def test_hits_that_are_equally_near_and_hits_that_are_not_near(post: Post) -> None:
    why = Why(post, {"text": RANDOM})
    assert names(why.hits)[:3] == ["Random.uniform", "Random.sample", "Random.randint"]
    assert why.hits[2]["distance"] - why.hits[0]["distance"] < 0.007
    assert max(why.weights) > 0.06
    browser = Why(post, {"text": BROWSER})
    plain = {hit["id"] for hit in browser.plain()}
    assert len({hit["id"] for hit in browser.hits} & plain) == 9
    assert browser.muted()[:6] == names(browser.hits)[:6]
    parts = [
        sum(one.pays(one.hits[0]["id"])) / sum(one.weights)
        for one in (Why(post, {"text": text}) for text in (SORT, LOWER, RUN, RANDOM, BROWSER))
    ]
    assert all(0.075 < part < 0.215 for part in parts)
    far = Why(post, {"text": "how long did it take"})
    assert names(far.hits)[0] == "calendar.leapdays"
    assert 0.245 < sum(far.pays(far.hits[0]["id"])) / sum(far.weights) < 0.255


def test_more_like_an_item(post: Post) -> None:
    hits = post("search", {"id": 4995})["hits"]
    modules = [hit["payload"]["name"].split(".")[0] for hit in hits]
    assert modules == ["random"] * 9 + ["secrets"]
    assert [hit["distance"] for hit in (hits[0], hits[8], hits[9])] == [15, 22, 23]
