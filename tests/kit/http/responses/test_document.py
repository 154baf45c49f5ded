"""Documents: one text, its compressed form and its entity tag, chosen by the request's headers."""

import asyncio
import gzip
import threading

import pytest
from starlette.requests import Request
from starlette.responses import Response

from soundmark.kit.http.responses.document import Document, DocumentSet
from soundmark.kit.http.responses.problems import NotFound

TEXT = "Grüße! " * 200
DOCUMENT = Document(TEXT, "text/plain", {"cache-control": "public, max-age=300"})


def ask(document: Document = DOCUMENT, **headers: str | list[str]) -> Response:
    """Return the response to a request with these headers; a list is a header that is sent several times."""
    sent = [
        (name.replace("_", "-").encode(), each.encode())
        for name, value in headers.items()
        for each in ([value] if isinstance(value, str) else value)
    ]
    return document.answer(Request({"type": "http", "method": "GET", "path": "/", "headers": sent}))


TAG = ask().headers["etag"]


def test_the_response_carries_what_a_cache_needs() -> None:
    answer = ask()
    assert (answer.status_code, bytes(answer.body).decode()) == (200, TEXT)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert "content-encoding" not in answer.headers


def test_a_client_that_accepts_gzip_gets_it(subtests: pytest.Subtests) -> None:
    for accepted in ["GZIP", "x-gzip", "deflate, gzip;q=0.1, br", "gzip; q=1.000", "*", "br;q=1, *;q=0.5"]:
        with subtests.test(accepted=accepted):
            answer = ask(accept_encoding=accepted)
            assert answer.headers["content-encoding"] == "gzip"
            assert gzip.decompress(bytes(answer.body)).decode() == TEXT
            assert answer.headers["content-length"] == str(len(answer.body))
            assert len(answer.body) < len(TEXT) / 10
            assert (answer.headers["vary"], answer.headers["etag"]) == ("Accept-Encoding", TAG)


def test_a_client_that_does_not_accept_gzip_gets_plain_text(subtests: pytest.Subtests) -> None:
    for accepted in ["", "br", "gzip;q=0.000", "gzip;q=0, *", "*;q=0", "gzipped", "gzip;q=2", "gzip;level=1"]:
        with subtests.test(accepted=accepted):
            answer = ask(accept_encoding=accepted)
            assert "content-encoding" not in answer.headers
            assert bytes(answer.body).decode() == TEXT


def test_several_headers_are_one_list() -> None:
    assert "content-encoding" in ask(accept_encoding=["br", "gzip"]).headers


def test_a_client_with_the_current_version_is_not_sent_it_again(subtests: pytest.Subtests) -> None:
    """Compressed or not: one tag covers both."""
    for condition in (TAG.removeprefix("W/"), f'W/"other",{TAG} , "more"', "*", ['W/"other"', TAG]):
        with subtests.test(condition=condition):
            for accepted in ("identity", "gzip"):
                answer = ask(if_none_match=condition, accept_encoding=accepted)
                assert (answer.status_code, answer.body) == (304, b"")
                assert answer.headers["etag"] == TAG
                assert answer.headers["vary"] == "Accept-Encoding"
                assert answer.headers["cache-control"] == "public, max-age=300"
                assert not {"content-type", "content-length", "content-encoding"} & set(answer.headers)


def test_a_client_with_another_version_gets_this_one(subtests: pytest.Subtests) -> None:
    for condition in ["", '"other"', TAG[3:-1], TAG[:-2] + '"', f"{TAG}x"]:
        with subtests.test(condition=condition):
            assert ask(if_none_match=condition).status_code == 200


def test_the_tag_depends_on_the_text_alone() -> None:
    """Every process sends the same tag for the same text, and another for another text."""
    same, other = (ask(Document(text, "text/plain", {})).headers["etag"] for text in (TEXT, TEXT + "!"))
    assert same == TAG != other
    assert TAG.startswith('W/"')


async def test_documents_are_rendered_once_and_only_when_one_is_requested() -> None:
    rendered = 0

    def render() -> dict[str, Document]:
        nonlocal rendered
        rendered += 1
        return {"greeting": DOCUMENT}

    documents = DocumentSet(render)
    assert rendered == 0
    for _ in range(2):
        assert await documents.get("greeting") is DOCUMENT
    with pytest.raises(NotFound):
        await documents.get("farewell")
    assert rendered == 1


async def test_a_process_answers_others_while_documents_are_rendered() -> None:
    """Otherwise the first reader of the documents would delay every resolution."""
    going_on = threading.Event()

    def render() -> dict[str, Document]:
        assert going_on.wait(30)
        return {"greeting": DOCUMENT}

    documents = DocumentSet(render)
    readers = [asyncio.create_task(documents.get("greeting")) for _ in range(3)]
    await asyncio.sleep(0)
    readers[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await readers[0]
    going_on.set()
    assert await asyncio.gather(*readers[1:]) == [DOCUMENT, DOCUMENT]
