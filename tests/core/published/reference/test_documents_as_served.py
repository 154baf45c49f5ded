"""How Core serves documents: compressed, with entity tags, and never in a frame; responses of the API are not."""

import pytest
from support.api.core_client import Answer, Api
from support.api.world import OPERATIONS
from support.tenancy.tenant import make_tenant

DOCUMENTS = ["/openapi.json", "/docs", "/schemas/xr-code-v1.json", "/problems/code_expired"]
PAGES = ["/docs", "/problems/code_expired"]
PLAIN = {"Accept-Encoding": "identity"}


async def ask(api: Api, path: str, headers: dict[str, str]) -> Answer:
    return await api.other(token=None).get(path, headers=headers)


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_a_document_is_compressed_for_clients_that_accept_it(api: Api, path: str) -> None:
    """The decompressed response is the document."""
    plain, compressed = await ask(api, path, PLAIN), await ask(api, path, {"Accept-Encoding": "gzip"})
    assert (plain.status, compressed.status) == (200, 200)
    assert plain.body == compressed.body
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert int(compressed.headers["content-length"]) < int(plain.headers["content-length"])
    assert plain.headers["vary"] == compressed.headers["vary"] == "Accept-Encoding"
    assert plain.headers["content-type"] == compressed.headers["content-type"]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_the_large_documents_are_small_on_the_wire(api: Api, path: str) -> None:
    """They grow with the operations, each of which may take a kilobyte."""
    answer = await ask(api, path, {"Accept-Encoding": "gzip"})
    bytes_max = 1_000 * len(OPERATIONS)
    assert int(answer.headers["content-length"]) < bytes_max < len(answer.body)


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_a_cached_document_is_not_sent_again(api: Api, path: str) -> None:
    first = await ask(api, path, {})
    again = await ask(api, path, {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert first.headers["cache-control"] == again.headers["cache-control"] == "public, max-age=300"


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_loads_nothing_sends_nothing_and_cannot_be_framed(api: Api, path: str) -> None:
    answer = await ask(api, path, {})
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_answers_of_the_api_are_neither_compressed_nor_tagged(api: Api) -> None:
    """A response may hold a secret beside text that a caller chose, which compression could reveal."""
    tenant = await make_tenant(api)
    code = await tenant.make_code()
    for path, params in (
        ("/v1/keys", {}),
        ("/v1/organizations", {}),
        (f"/v1/codes/{code['xr_id']}", tenant.query),
        (f"/v1/resolve/{code['broadcast_token']}", {}),
        ("/v1/codes", {"limit": "no number"}),
    ):
        answer = await api.get(path, params=params, headers={"Accept-Encoding": "gzip"})
        assert not {"content-encoding", "etag"} & answer.headers.keys(), path


@pytest.mark.parametrize("path", ["/schemas/unknown.json", "/problems/unknown", "/problems/deadline_passed"])
async def test_a_missing_document_is_a_problem(api: Api, path: str) -> None:
    answer = await ask(api, path, {"If-None-Match": "*"})
    assert (answer.status, answer.code) == (404, "not_found")
