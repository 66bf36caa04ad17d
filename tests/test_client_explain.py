"""The client's explanations: by any query, with arrays in the place of lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from running_server import running_server

from bitweigh.client import Client, Collection

VECTORS = np.random.default_rng(0).standard_normal((300, 37)).astype(np.float32)
CODES = np.packbits(VECTORS > 0, axis=1)


@pytest.fixture
def items(tmp_path: Path) -> Iterator[Collection]:
    """A collection without items."""
    with running_server(tmp_path) as url, Client(url) as client:
        yield client.create("a", kind="codes", n_bits=37)


def test_explain_says_what_each_bit_pays(items: Collection) -> None:
    items.add(CODES, ids=np.arange(300))
    found = items.explain(VECTORS[3], k=2, ids=[17])
    assert found["costs"].shape == (37, 2)
    assert set(found["bits"]) == {found["hits"][0]["id"], found["hits"][1]["id"], 17}
    hit = found["hits"][0]
    assert np.isclose(found["bits"][hit["id"]]["pays"].sum(), hit["distance"])


def test_explain_takes_a_key_and_the_number_of_bins(items: Collection) -> None:
    items.add(CODES[:20], keys=[f"item {place}" for place in range(20)])
    found = items.explain(key="item 3", k=2, bins=5)
    assert len(found["histogram"]["counts"]) <= 5
    near = items.search_by_id(keys="item 3", k=2)
    assert [hit["id"] for hit in found["hits"]] == near.ids.tolist()
    assert items.explain(key="item 3", bins=0)["histogram"] is None
    within = items.range_search(key="item 3", radius=0.0)
    assert items.get(keys=["item 3"])[0].id in within.ids.tolist()
