"""What a page of another origin may read: everything that receivers need, and nothing that requires a credential."""

import re

import pytest
from support.api.core_client import PROOF, Api
from support.api.core_settings import core_settings
from support.api.operations import list_operations
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.kit.crypto.secret import Secret

PAGE = {"Origin": "https://receiver.example"}
READABLE = {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "RateLimit, RateLimit-Policy, Retry-After, X-Request-Id",
}
UNKNOWN = "/v1/resolve/brd_AAAAAAAAAAAAAAAA"
OPEN = [
    (UNKNOWN, 404),
    ("/v1/resolve/nope", 404),
    ("/v1/keys", 200),
    ("/v1/keys/history", 200),
    ("/v1/deletion-certificates/dct_AAAAAAAAAAAAAAAAAAAAAA", 404),
    ("/v1/decode-certificates/dcc_AAAAAAAAAAAAAAAAAAAAAA", 404),
    ("/v1/log", 200),
    ("/v1/log/checkpoint", 200),
    ("/v1/log/tile/0/000.p/1", 200),
    ("/v1/log/tile/entries/000.p/1", 200),
    ("/v1/log/tile/0/999", 404),
    ("/v1/log/tile/x", 404),
    ("/v1/log/proofs/" + "A" * 43, 404),
    ("/v1/log/proofs/x", 404),
    ("/v1/log/other", 404),
    ("/openapi.json", 200),
    ("/schemas/xr-code-v1.json", 200),
    ("/schemas/unknown.json", 404),
    ("/problems/code_expired", 200),
    ("/problems/unknown", 404),
]
# Beside an open path, or close to one.
CLOSED = ["/", "/docs", "/healthz", "/readyz", "/v1/keys/", "/v1/keys/other", "/v1/resolve", "/schemas", "/problems"]
CLOSED += ["/v1/logs", "/v1/logs/checkpoint"]
OPEN_TEMPLATES = {
    "/v1/resolve/{broadcast_token}",
    "/v1/keys",
    "/v1/keys/history",
    "/v1/deletion-certificates/{certificate_id}",
    "/v1/decode-certificates/{certificate_id}",
    *(operation.path for operation in list_operations() if operation.path.startswith("/v1/log")),
}
# Pages may send to it, with a preflight of its own: tests/core/platform/abuse.
SENT_TO = {"/v1/abuse-reports"}
OPERATIONS = {operation.path for operation in list_operations()} - OPEN_TEMPLATES - SENT_TO


def cross_origin(headers: object) -> dict[str, str]:
    """Return every header that concerns other origins."""
    return {name: value for name, value in dict(headers).items() if name.startswith("access-control-")}  # type: ignore[call-overload]  # httpx2.Headers is a mapping


def asking(method: str = "GET", header: str | None = "x-svc-resolution-proof") -> dict[str, str]:
    """Return the headers of a preflight."""
    sent = {**PAGE, "Access-Control-Request-Method": method}
    return sent if header is None else {**sent, "Access-Control-Request-Headers": header}


@pytest.fixture
def page(api: Api) -> Api:
    """A page of another origin, which calls Core from a person's browser."""
    return api.other(token=None, peer="203.0.113.9")


async def test_an_open_path_may_be_read_by_every_origin(page: Api, subtests: pytest.Subtests) -> None:
    """Whether or not a page asks: a cache may serve one response to both."""
    for path, status in OPEN:
        with subtests.test(path=path, status=status):
            for headers in (PAGE, {}):
                answer = await page.get(path, headers=headers)
                assert answer.status == status
                assert cross_origin(answer.headers) == READABLE


async def test_the_preflight_of_an_open_path_allows_reading_it_with_a_proof(
    page: Api, subtests: pytest.Subtests
) -> None:
    for path, status in OPEN:
        with subtests.test(path=path, status=status):
            assert status, "whatever the path answers"
            answer = await page.call("OPTIONS", path, headers={**asking(), "X-Request-Id": "mine"})
            assert (answer.status, answer.body) == (204, b"")
            assert cross_origin(answer.headers) == {
                "access-control-allow-origin": "*",
                "access-control-allow-methods": "GET",
                "access-control-allow-headers": "X-Svc-Resolution-Proof",
                "access-control-max-age": "86400",
            }
            assert answer.headers["x-request-id"] == "mine"
            assert answer.headers["cache-control"] == "no-store"


async def test_a_preflight_allows_the_same_whatever_it_asks_for(page: Api, subtests: pytest.Subtests) -> None:
    """The browser compares; a credential is never allowed."""
    for header in ["authorization", "x-svc-organization-id", None]:
        for method in ["GET", "POST", "DELETE"]:
            with subtests.test(header=header, method=method):
                for path in (UNKNOWN, "/v1/keys"):
                    answer = await page.call("OPTIONS", path, headers=asking(method, header))
                    assert answer.status == 204
                    assert answer.headers["access-control-allow-methods"] == "GET"
                    assert answer.headers["access-control-allow-headers"] == "X-Svc-Resolution-Proof"
                    assert "access-control-allow-credentials" not in answer.headers


async def test_options_that_is_no_preflight_is_not_allowed(page: Api, subtests: pytest.Subtests) -> None:
    for name, headers in {"none": {}, "page": PAGE, "asked": {"Access-Control-Request-Method": "GET"}}.items():
        for path in [UNKNOWN, "/v1/keys", "/openapi.json", "/schemas/xr-code-v1.json"]:
            with subtests.test(name, path=path):
                answer = await page.call("OPTIONS", path, headers=headers)
                assert (answer.status, answer.code) == (405, "method_not_allowed")
                assert cross_origin(answer.headers) == READABLE


async def test_no_other_path_allows_other_origins(page: Api, subtests: pytest.Subtests) -> None:
    for path in [*CLOSED, *sorted(OPERATIONS)]:
        with subtests.test(path=path):
            for method, headers in (("GET", PAGE), ("POST", PAGE), ("OPTIONS", asking())):
                answer = await page.call(method, re.sub(r"{\w+(:path)?}", "x", path), headers=headers)
                assert cross_origin(answer.headers) == {}
                assert method != "OPTIONS" or answer.status in {404, 405}


@pytest.mark.parametrize(("method", "path", "status"), [("POST", UNKNOWN, 405), ("DELETE", "/v1/keys", 405)])
async def test_a_refused_method_may_be_read_too(page: Api, method: str, path: str, status: int) -> None:
    answer = await page.call(method, path, headers=PAGE)
    assert (answer.status, cross_origin(answer.headers)) == (status, READABLE)


async def test_every_answer_of_a_resolution_may_be_read(api: Api, page: Api) -> None:
    """A page must be able to tell its user whether a Code is over, refused or found."""
    tenant = await make_tenant(api)
    code, expired = await tenant.make_code(), await tenant.make_code(lifetime_s=60)
    api.clock.advance(seconds=61)
    found = await page.resolve(code["broadcast_token"], headers=PAGE)
    over = await page.resolve(expired["broadcast_token"], headers=PAGE)
    refused = await page.resolve(code["broadcast_token"], headers={**PAGE, **PROOF, "X-Svc-Resolution-Proof": "x"})
    assert [answer.status for answer in (found, over, refused)] == [200, 410, 422]
    assert [cross_origin(answer.headers) for answer in (found, over, refused)] == [READABLE] * 3


async def test_a_refused_page_may_read_when_to_try_again(database_url: Secret) -> None:
    """Its preflights do not count, since it cannot avoid sending them."""
    async with running_core(core_settings(database_url, resolve_rate_limit="1")) as api:
        for _ in range(5):
            assert (await api.call("OPTIONS", UNKNOWN, headers=asking())).status == 204
        assert (await api.get(UNKNOWN, headers=PAGE)).status == 404
        refused = await api.get(UNKNOWN, headers=PAGE)
    assert (refused.status, cross_origin(refused.headers)) == (429, READABLE)
    assert refused.headers["retry-after"]


async def test_an_internal_error_may_be_read_too(page: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that sees no response cannot tell a broken service from a broken network."""

    async def fail(_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("soundmark.core.store.codes.signing_keys.list_all", fail)
    answer = await page.get("/v1/keys", headers=PAGE)
    assert (answer.status, cross_origin(answer.headers)) == (500, READABLE)
