"""The OpenAPI document: valid, complete, and true of what the server answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_cases import ARROW, BASE, PARQUET, TAR, small_api
from tools_needed import skip_or_fail

from bitweigh.server.app import ROUTES
from bitweigh.server.keys import KeyFile
from bitweigh.server.openapi import document

FILES = [ARROW["content-type"], PARQUET["content-type"], TAR["content-type"]]
names = st.sampled_from(["codes", "emb", "vec", "nowhere", "new", "Wrong"])


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    found = document()["paths"]
    return {
        (method.upper(), path): operation
        for path, methods in found.items()
        for method, operation in methods.items()
    }


def test_the_document_lists_exactly_the_routes() -> None:
    assert set(operations()) == {(route.method, route.path) for route in ROUTES}
    names = [operation["operationId"] for operation in operations().values()]
    assert len(set(names)) == len(names)


def test_the_document_is_valid_openapi() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    # As a client gets it.
    OpenAPIV31SpecValidator(json.loads(json.dumps(document()))).validate()


def test_every_route_says_which_scope_it_needs() -> None:
    for route in ROUTES:
        operation = operations()[route.method, route.path]
        assert operation.get("x-scope") == route.scope
        assert ("401" in operation["responses"]) is (route.scope is not None)


@pytest.mark.parametrize("has_keys", [False, True], ids=["open", "with keys"])
@pytest.mark.long
@pytest.mark.timeout(300)
def test_random_requests_get_what_the_document_says(tmp_path: Path, has_keys: bool) -> None:
    try:
        import schemathesis
        from schemathesis import checks
    except ImportError:
        skip_or_fail("schemathesis is missing: pip install 'bitweigh[server-test]'")
    # That a request that a schema allows is accepted cannot be told: schemas know no collections.
    told = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    schemathesis.serializer(*FILES)(lambda _, value: getattr(value, "data", value))
    statuses: Counter[int] = Counter()
    with small_api(tmp_path) as api:
        if has_keys:
            secret = KeyFile(tmp_path / "keys.json").add("all", "admin")
            api.service.store.keys._looked = 0.0
        schema = schemathesis.openapi.from_dict(document())
        schema.app = api.app
        schema.config.update(base_url=BASE)
        for operation in schema.get_all_operations():

            @settings(
                max_examples=100,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.ok().as_strategy(), name=names, keyed=st.booleans())
            def ask(case: Any, name: str, keyed: bool) -> None:
                if "c" in case.path_parameters and case.operation.method != "delete":
                    case.path_parameters["c"] = name
                headers = {"authorization": f"Bearer {secret}"} if has_keys and keyed else {}
                response = case.call(headers=headers)
                statuses[response.status_code] += 1
                case.validate_response(response, checks=told)

            ask()
        assert api.done("GET", "/livez") == {"status": "ok"}
    assert {200, 404, 422} <= set(statuses)
    assert (401 in statuses) is has_keys
