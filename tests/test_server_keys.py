"""Keys: what each may do, and that a wrong one is told nothing, at no other pace than another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_cases import Api, check_problem, code64, small_api

from bitweigh.server import Limits, Settings
from bitweigh.server.app import ROUTES
from bitweigh.server.asking import Asked
from bitweigh.server.keys import KeyFile
from bitweigh.server.problems import Problem

KEYS = [
    ("reader", "read", ()),
    ("writer", "write", ()),
    ("admin", "admin", ()),
    ("emb-reader", "read", ("emb",)),
    ("emb-admin", "admin", ("emb",)),
]
RANKS = {"read": 0, "write": 1, "admin": 2}
# Routes that any key may use; what they show depends on the key.
_OPEN = {"/v1", "/v1/cluster", "/v1/collections", "/v1/jobs", "/v1/jobs/{j}", "/openapi.json"}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("served")
    with small_api(folder):
        pass
    keys = KeyFile(folder / "keys.json")
    made = {name: keys.add(name, scope, of) for name, scope, of in KEYS}  # type: ignore[arg-type]
    with Api(folder) as api:
        yield api, made


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def wrong_keys(right: str) -> dict[str, dict[str, str]]:
    """Headers that must not let anybody in, by what is wrong with them."""
    other = right[:-1] + ("A" if right[-1] != "A" else "B")
    return {
        "none": {},
        "empty": bearer(""),
        "of the right length": bearer("bw_" + "x" * (len(right) - 3)),
        "right but for its end": bearer(other),
        "right but for its start": bearer("x" + right[1:]),
        "cut off": bearer(right[:-1]),
        "longer": bearer(right + "A"),
        "with a space": bearer(" " + right),
        "upper case": bearer(right.upper()),
        "very long": bearer("bw_" + "x" * 50_000),
        "not ASCII": {"authorization": "Bearer bw_ä".encode("latin-1").decode("latin-1")},
        "of another kind": {"authorization": f"Basic {right}"},
        "without its kind": {"authorization": right},
        "as a parameter": {"x-api-key": right},
    }


@pytest.mark.parametrize("wrong", list(wrong_keys("bw_abc")))
def test_a_wrong_key_reads_nothing_and_writes_nothing(
    secrets: tuple[Api, dict[str, str]], wrong: str
) -> None:
    api, made = secrets
    headers = wrong_keys(made["admin"])[wrong]
    answers = set()
    for route in ROUTES:
        path = route.path.format(c="codes", id="1", j="x", s="x")
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = api.client.request(route.method, path, headers=raw)
        if route.scope is None:
            assert answer.status_code == 200
            continue
        check_problem(answer, 401, "a valid key is needed")
        assert answer.headers["www-authenticate"] == "Bearer"
        answers.add(answer.content)
    assert len(answers) == 1
    assert api.service.store["codes"].count() == 20


@pytest.mark.parametrize("name", [key[0] for key in KEYS])
@pytest.mark.parametrize("collection", ["codes", "emb"])
def test_a_key_may_do_what_its_scope_says(
    secrets: tuple[Api, dict[str, str]], name: str, collection: str
) -> None:
    """Requests without a body are enough: a key is checked before anything is read."""
    api, made = secrets
    _, scope, of = next(key for key in KEYS if key[0] == name)
    for route in ROUTES:
        if route.method == "DELETE" and route.path == "/v1/collections/{c}":
            continue
        path = route.path.format(c=collection, id="1", j="x", s="x")
        answer = api.client.request(route.method, path, headers=bearer(made[name]))
        here = not of or ("{c}" in route.path and collection in of)
        allowed = route.scope is None or (here and RANKS[scope] >= RANKS[route.scope])
        if allowed or route.path in _OPEN:
            assert answer.status_code not in (401, 403), (route, answer.text)
        else:
            check_problem(answer, 403, f"no {route.scope} access")
    if scope != "admin" or (of and collection not in of):
        answer = api.ask("DELETE", collection, headers=bearer(made[name]))
        check_problem(answer, 403, "no admin access")
    assert api.service.store[collection].count() == 20


def test_a_key_of_one_collection_sees_no_other(secrets: tuple[Api, dict[str, str]]) -> None:
    api, made = secrets
    headers = bearer(made["emb-reader"])
    listed = api.done("GET", "/v1/collections", headers=headers)["collections"]
    assert [one["name"] for one in listed] == ["emb"]
    check_problem(api.ask("GET", "/metrics", headers=headers), 403, "no read access")
    parquet = {"content-type": "application/vnd.apache.parquet"}
    job = api.done(
        "POST", "codes/import", content=b"x", headers={**parquet, **bearer(made["admin"])}
    )
    assert api.done("GET", "/v1/jobs", headers=headers)["jobs"] == []
    check_problem(api.ask("GET", f"/v1/jobs/{job['id']}", headers=headers), 404, "no job")
    answer = api.ask("DELETE", f"/v1/jobs/{job['id']}", headers=bearer(made["reader"]))
    check_problem(answer, 403, "no write access")
    api.headers = bearer(made["admin"])
    try:
        assert api.ended(job["id"])["state"] == "failed"
    finally:
        api.headers = {}


def test_keys_are_found_by_their_hash_alone(
    secrets: tuple[Api, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time does not depend on the key: each is hashed once, and only hashes are compared."""
    api, made = secrets
    keys = api.service.store.keys
    hashed: list[str] = []
    compared: list[str] = []

    class Compared(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            compared.append(name)
            return super().get(name, default)

    from bitweigh.server import keys as module

    true_hash = module._hash
    monkeypatch.setattr(module, "_hash", lambda secret: hashed.append(secret) or true_hash(secret))
    monkeypatch.setattr(keys, "_keys", Compared(keys._keys))
    wrong = ["bw_" + "x" * 43, made["admin"][:-1] + "~", "", "nonsense"]
    assert all(keys.find(secret) is None for secret in wrong)
    found = keys.find(made["admin"])
    assert found is not None
    assert found.name == "admin"
    assert hashed == [*wrong, made["admin"]]
    assert len(compared) == len(hashed)
    assert all(len(name) == 64 for name in compared)


def test_a_file_of_keys_is_for_its_owner_and_has_no_secret(
    secrets: tuple[Api, dict[str, str]],
) -> None:
    api, made = secrets
    path = api.service.store.folder / "keys.json"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert not any(secret in text or secret[3:] in text for secret in made.values())


def test_a_damaged_file_of_keys_lets_nobody_new_in(tmp_path: Path) -> None:
    secret = KeyFile(tmp_path / "keys.json").add("one", "admin")
    with Api(tmp_path) as api:
        (tmp_path / "keys.json").write_text("{")
        api.service.store.keys._looked = 0.0
        check_problem(api.ask("GET", "/v1", headers=bearer("bw_other")), 401, "a valid key")
        assert api.ask("GET", "/v1", headers=bearer(secret)).status_code == 200


def test_without_its_last_key_a_server_lets_nobody_in(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        assert api.ask("GET", "/v1").status_code == 200
        keys = KeyFile(tmp_path / "keys.json")
        secret = keys.add("one", "read")
        api.service.store.keys._looked = 0.0
        assert api.ask("GET", "/v1").status_code == 401
        keys.revoke("one")
        api.service.store.keys._looked = 0.0
        assert api.ask("GET", "/v1").status_code == 401
        assert api.ask("GET", "/v1", headers=bearer(secret)).status_code == 401


def test_a_key_may_make_so_many_requests_a_second(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    hasty, calm = keys.add("hasty", "read"), keys.add("calm", "read")
    with Api(tmp_path, Settings(limits=Limits(rate=3))) as api:
        answers = [api.ask("GET", "/v1", headers=bearer(hasty)) for _ in range(20)]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(refused) >= 15
        check_problem(refused[0], 429, "3 requests a second")
        assert int(refused[0].headers["retry-after"]) >= 1
        assert api.ask("GET", "/v1", headers=bearer(calm)).status_code == 200
        assert api.ask("GET", "/livez").status_code == 200


def test_a_search_past_its_deadline_gets_a_504(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_api(tmp_path) as api:
        late = Asked.__new__

        def already_late(cls: type, *fields: Any) -> Asked:
            return late(cls, *fields)._replace(deadline=time.monotonic() - 1)

        monkeypatch.setattr(Asked, "__new__", already_late)
        for more in ({}, {"filter": {"n": {"gte": 0}}}):
            answer = api.ask("POST", "codes/search", {"code": code64([1, 0]), **more})
            check_problem(answer, 504, "longer than its timeout")


def test_more_waiting_searches_than_allowed_get_a_429(tmp_path: Path) -> None:
    with small_api(tmp_path):
        pass
    with Api(tmp_path, Settings(limits=Limits(waiting=0))) as api:
        answer = api.ask("POST", "codes/search", {"code": code64([1, 0])})
        check_problem(answer, 429, "waiting already")
        assert answer.headers["retry-after"] == "1"


def test_a_server_that_stops_says_that_it_is_not_ready(tmp_path: Path) -> None:
    with Api(tmp_path) as api:
        api.service.draining = True
        check_problem(api.ask("GET", "/readyz"), 503, "stopping")
        assert api.ask("GET", "/livez").status_code == 200


def test_requests_for_a_collection_that_is_deleted_meanwhile_get_a_404(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_api(tmp_path) as api:
        collection = api.service.store["codes"]

        def deleted() -> Any:
            api.service.store.delete("codes")
            raise RuntimeError("closed")

        monkeypatch.setattr(collection, "searchable", deleted)
        answer = api.ask("POST", "codes/search", {"code": code64([1, 0])})
        check_problem(answer, 404, "no collection")
        with pytest.raises(Problem, match="being closed"):
            collection.writer.do(lambda: None)
