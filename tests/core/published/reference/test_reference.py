"""The reference page of a small document with one of everything, and the page of one problem."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from soundmark.core.published.reference import render_problem, render_reference

HOSTILE = "<script>alert(1)</script>"
BODY_TYPE, PROBLEM_TYPE = "application/json", "application/problem+json"

OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Kites & Co", "version": "1.2.3", "description": "First **strong** `code`.\n\nSecond " + HOSTILE},
    "servers": [{"url": "https://kites.example"}],
    "tags": [{"name": "Kites", "description": "What flies."}, {"name": "Unused"}],
    "paths": {
        "/v1/kites/{kite_id}": {
            "parameters": [{"name": "kite_id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "tags": ["Kites"],
                "operationId": "get_kite",
                "summary": "Get kite",
                "x-svc-access": {"public": True, "roles": [], "mfa": False, "key_scope": None},
                "responses": {"200": {"description": "Successful Response"}},
            },
            "patch": {
                "tags": ["Kites"],
                "operationId": "update_kite",
                "summary": "Update kite",
                "description": "Change it & keep it.",
                "x-svc-access": {"public": False, "roles": ["owner", "admin"], "mfa": True, "key_scope": None},
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "description": "How many.",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50},
                    }
                ],
                "requestBody": {
                    "content": {
                        BODY_TYPE: {
                            "schema": {"$ref": "#/components/schemas/Kite"},
                            "example": {"name": HOSTILE, "tail": None, "price": -1.5, "says": 'a "quoted": word'},
                        }
                    }
                },
                "responses": {
                    "200": {
                        "description": "Changed.",
                        "headers": {"ETag": {"schema": {"type": "string"}, "description": "Its version."}},
                        "content": {BODY_TYPE: {"schema": {"$ref": "#/components/schemas/Kite"}}},
                    },
                    "404": {
                        "description": "Missing",
                        "content": {PROBLEM_TYPE: {"examples": {"kite_not_found": {"summary": "No such kite."}}}},
                    },
                    "409": {
                        "description": "Conflict",
                        "content": {
                            PROBLEM_TYPE: {
                                "examples": {"kite_torn": {"summary": "Torn."}, "kite_lost": {"summary": "Lost."}}
                            }
                        },
                    },
                },
            },
        },
        "/v1/winds": {
            "post": {
                "summary": HOSTILE,
                "x-svc-access": {"public": False, "roles": [], "mfa": False, "key_scope": "winds:write"},
                "responses": {"201": {"description": ""}},
            }
        },
    },
    "components": {
        "schemas": {
            "Kite": {
                "type": "object",
                "description": "A thing with a tail.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 160, "pattern": "^[^<&]+$"},
                    "colour": {"enum": ["red", "blue", None, 3]},
                    "tail": {"anyOf": [{"$ref": "#/components/schemas/Tail"}, {"type": "null"}]},
                    "flown_at": {"type": ["string", "null"], "format": "date-time"},
                    "kites": {"type": "array", "maxItems": 5, "items": {"$ref": "#/components/schemas/Kite"}},
                    "version": {"const": 1},
                    "code": {"type": "string", "minLength": 8, "maxLength": 8},
                    "extra": {},
                },
            },
            "Tail": {
                "type": "object",
                "required": ["length_m"],
                "properties": {"length_m": {"type": "number", "exclusiveMinimum": 0, "description": "In metres."}},
            },
        }
    },
}


class Page(HTMLParser):
    """The words of a page, by row and paragraph, and its tags, all of which must be closed."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in {"td", "span"}:
            self.words.append(" ")  # Elements that a browser separates.

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.seen if name in attributes]


@pytest.fixture(scope="module")
def html() -> str:
    """The reference page as HTML."""
    return render_reference(OPENAPI)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    """The page under test."""
    return Page(html)


def test_the_page_is_well_formed_and_loads_nothing(html: str, page: Page) -> None:
    """Its content security policy allows inline styles and nothing else."""
    assert page.open == []
    assert not {"script", "img", "iframe", "object", "form"} & {tag for tag, _ in page.seen}
    assert not any(name.startswith("on") for _, attributes in page.seen for name in attributes)
    assert page.attributes("src") + re.findall(r"url\(|@import", html) == []
    assert [attributes["href"] for tag, attributes in page.seen if tag == "link"] == ["data:,"]


def test_text_of_the_document_is_never_markup(html: str, page: Page) -> None:
    assert HOSTILE not in html
    assert page.text.count(HOSTILE) >= 3
    assert "Kites & Co API" in page.text


def test_prose_may_have_paragraphs_code_and_strong(html: str) -> None:
    assert "<p>First <strong>strong</strong> <code>code</code>.</p>\n<p>Second &lt;script&gt;" in html


def test_every_link_within_the_page_leads_somewhere(page: Page) -> None:
    anchors = page.attributes("id")
    assert len(anchors) == len(set(anchors))
    inner = {href[1:] for href in page.attributes("href") if href.startswith("#")}
    assert {"get-kite", "update-kite", "post-v1-winds", "content"} <= inner <= set(anchors)


def test_operations_stand_under_their_tag_with_method_and_path(page: Page) -> None:
    assert "Kites What flies. Get kite GET /v1/kites/{kite_id}" in page.text
    assert "Unused" not in page.text
    assert "POST /v1/winds" in page.text


@pytest.mark.parametrize(
    "needs",
    [
        "GET /v1/kites/{kite_id} no credential",
        "Change it & keep it. role owner or admin second factor (MFA) people only, no API key",
        "POST /v1/winds any signed-in caller or an API key with winds:write",
    ],
)
def test_the_page_says_what_an_operation_requires(page: Page, needs: str) -> None:
    assert needs in page.text


def test_parameters_and_members_are_rows(page: Page, subtests: pytest.Subtests) -> None:
    for row in [
        "kite_id required string in the path",
        "limit integer in the query How many. at least 1 at most 100 default 50",
        "name required string 1 to 160 characters matches ^[^<&]+$",
        "colour value one of red, blue, null, 3",
        "tail object or null",
        "tail.length_m required number In metres. more than 0",
        "flown_at timestamp or null",
        "kites list of objects at most 5 entries",
        "kites[].name required string",
        "version value always 1",
        "code string exactly 8 characters",
        "extra any value",
        "ETag optional string Its version.",
    ]:
        with subtests.test(row=row):
            assert row in page.text


def test_a_schema_that_contains_itself_ends(page: Page) -> None:
    assert "kites[].kites[].name" in page.text
    assert page.text.count("kites[].kites[].kites[].kites[].kites[].kites[]") == 0


def test_responses_show_their_status_and_problems_are_listed_separately(page: Page) -> None:
    assert "Response 200 OK" in page.text
    assert "Response 200 Changed. application/json" in page.text
    assert "Response 201 Created" in page.text
    assert "Problems 404 kite_not_found No such kite. 409 kite_torn Torn. 409 kite_lost Lost." in page.text
    assert "/problems/kite_torn" in page.attributes("href")


def test_examples_are_formatted_and_their_values_marked_by_kind(html: str, page: Page) -> None:
    shown = '"name": "<script>alert(1)</script>", "tail": null, "price": -1.5, "says": "a \\"quoted\\": word"'
    assert shown in page.text
    assert '<span class="json-name">&#34;tail&#34;</span>: <span class="json-value">null</span>' in html
    assert '<span class="json-value">-1.5</span>' in html
    assert re.search(r'<span class="json-text">&#34;a \\&#34;quoted\\&#34;: word&#34;</span>', html)


def test_an_empty_document_is_a_page() -> None:
    assert "Nothing API" in Page(render_reference({"info": {"title": "Nothing", "version": "0"}})).text


def test_a_problem_has_a_page() -> None:
    page = Page(render_problem("code_expired", "Gone & over.", 410, f"It `ended`.\n\n{HOSTILE}"))

    assert page.open == []
    assert "410 code_expired Gone & over. It ended. " + HOSTILE in page.text
    assert "/docs" in page.attributes("href")
