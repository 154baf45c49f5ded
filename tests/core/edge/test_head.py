"""`HEAD` beyond the sweep over the operations: documents, probes, and the one route without it."""

import pytest
from support.api.core_client import Api

DOCUMENTS = ["/openapi.json", "/docs", "/schemas/xr-code-v1.json", "/problems/code_expired", "/healthz", "/readyz", "/"]


async def test_head_has_the_head_of_get(api: Api, subtests: pytest.Subtests) -> None:
    for path in [*DOCUMENTS, "/v1/keys", "/nowhere", "/v1/organizations?limit=0"]:
        for encoding in ["identity", "gzip"]:
            with subtests.test(path=path, encoding=encoding):
                headers = {"x-request-id": "one-for-both", "accept-encoding": encoding}
                got, head = await api.get(path, headers=headers), await api.call("HEAD", path, headers=headers)
                assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")
                if "content-encoding" not in head.headers:
                    assert head.headers["content-length"] == str(len(got.body))


async def test_a_resolution_has_no_head(api: Api) -> None:
    """Each resolution is counted and signed; a head alone would only be a cheaper way of guessing."""
    answer = await api.call("HEAD", "/v1/resolve/brd_AAAAAAAAAAAAAAAA")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/keys", "GET, HEAD"),
        ("/v1/organizations", "GET, HEAD, POST"),
        ("/v1/codes/batch", "POST"),
        ("/openapi.json", "GET, HEAD"),
        ("/healthz", "GET, HEAD"),
    ],
)
async def test_the_response_to_a_wrong_method_lists_head(api: Api, path: str, allowed: str) -> None:
    answer = await api.delete(path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
