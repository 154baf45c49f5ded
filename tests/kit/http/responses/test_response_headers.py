"""Headers of every response: the request id, caching, and no guessing of content types."""

import httpx2
import pytest


@pytest.mark.parametrize("own", ["a", "A-Z_09", "x" * 64])
async def test_the_callers_request_id_is_kept(client: httpx2.AsyncClient, own: str) -> None:
    for path in ("/v1/notes", "/nowhere", "/v1/broken"):
        answer = await client.get(path, headers={"x-request-id": own})
        assert answer.headers.get_list("x-request-id") == [own]


@pytest.mark.parametrize("own", ["", "a b", "x" * 65, "a.b", "ä".encode(), b"a\tb", "a,b"])
async def test_a_request_id_of_another_shape_is_replaced(client: httpx2.AsyncClient, own: str | bytes) -> None:
    """It goes into the log and to private components, so its characters are restricted."""
    answer = await client.get("/v1/notes", headers=[(b"x-request-id", own.encode() if isinstance(own, str) else own)])
    assert answer.headers["x-request-id"].startswith("req_")


async def test_every_request_has_its_own_id(client: httpx2.AsyncClient) -> None:
    ids = {(await client.get("/v1/notes")).headers["x-request-id"] for _ in range(10)}
    assert len(ids) == 10


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/notes?limit=0", "/v1/nowhere", "/v1/broken", "/v1/refused"])
async def test_nothing_below_v1_is_stored(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.headers.get_list("cache-control") == ["no-store"]


async def test_a_wrong_method_below_v1_is_not_stored_either(client: httpx2.AsyncClient) -> None:
    assert (await client.delete("/v1/notes")).headers["cache-control"] == "no-store"


async def test_a_route_may_allow_caching(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/cached")).headers.get_list("cache-control") == ["public, max-age=60"]


async def test_other_paths_have_no_cache_header(client: httpx2.AsyncClient) -> None:
    assert "cache-control" not in (await client.get("/plain")).headers


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/broken", "/plain", "/nowhere"])
async def test_no_browser_guesses_a_type(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.get(path)).headers["x-content-type-options"] == "nosniff"
