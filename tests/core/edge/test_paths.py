"""A path has one spelling: no other reaches a route, shows a file, or returns a page."""

from collections.abc import Iterator

import pytest
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.api.raw_requests import METHODS, RawAnswer, send_raw
from support.processes.running_apps import served_in_thread

from soundmark.core.app import create_app
from soundmark.kit.crypto.secret import Secret

OPERATOR = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
SCRIPT = b"%3Cscript%3Ealert(1)%3C/script%3E"

# Close to `/v1/organizations`, which is a list for the operator and a 401 for a stranger.
SPELLINGS = [
    *(b"/v1//organizations", b"//v1/organizations", b"///v1/organizations", b"/%2fv1/organizations"),
    *(b"/v1/organizations/", b"/v1/organizations%2f", b"/v1%252forganizations", b"/v1\\organizations"),
    *(b"/v1%5corganizations", b"/v1/organizations;x=1", b"/v1/organizations;", b"/v1;x/organizations"),
    *(b"/;x/v1/organizations", b"/v1/organizations%3bx", b"/V1/organizations", b"/v1/Organizations"),
    *(b"/v1/ORGANIZATIONS", b"/v1/organizations%00", b"/v1/organizations%00.json", b"/v1%00/organizations"),
    *(b"/v1/organizations%20", b"/v1/%20organizations", b"/v1/organizations%0a", b"/v1/organizations%0a%0a"),
    *(b"/v1/organizations%0d%0a", b"/v1/organizations%0d%0aX-Injected:%201", b"/v1/organizations%09"),
    *(b"/v1/organizations.json", b"/v1/organizations.css", b"/v1/organizations/x.css", b"/v1/organizations~"),
    *(b"/v1/organizations%c2%ad", b"/v1/organizations%ff", b"/v1/organizations\xff", b"/v1/organi%EF%BD%9Aations"),
    *(b"/v1/./organizations", b"/./v1/organizations", b"/v1/%2e/organizations", b"/v1/x/../organizations"),
    *(b"/v1/x/%2e%2e/organizations", b"/v1/x/%2E%2E/organizations", b"/v1/x/.%2e/organizations"),
    *(b"/v1/x/..%2forganizations", b"/v1/x/..;/organizations", b"/v1/x/%252e%252e/organizations"),
    *(b"/v1/x/%c0%ae%c0%ae/organizations", b"/../v1/organizations", b"/docs/../v1/organizations"),
    *(b"/healthz/../v1/organizations", b"/healthz/%2e%2e/v1/organizations", b"/schemas/%2e%2e/v1/organizations"),
    *(b"/problems/..%2f..%2fv1%2forganizations", b"/v1/keys/../organizations", b"/v1/resolve/../organizations"),
    *(b"/v1/resolve/%2e%2e/organizations", b"/v1/resolve/..%2forganizations", b"/v1/resolve//v1/organizations"),
]
FILES = [
    *(b"/../../../../etc/passwd", b"/%2e%2e/%2e%2e/%2e%2e/etc/passwd", b"/..%2f..%2f..%2f..%2fetc%2fpasswd"),
    *(b"/schemas/../../../../etc/passwd", b"/schemas/..%2f..%2f..%2f..%2fetc%2fpasswd"),
    *(b"/schemas/..%5c..%5cetc%5cpasswd", b"/schemas/%2fetc%2fpasswd", b"/schemas/xr-code-v1.json%00"),
    *(b"/schemas/xr-code-v1.json/..%2f..%2fetc%2fpasswd", b"/problems/..%2f..%2f..%2fetc%2fpasswd"),
    *(b"/problems/not_found%00", b"/docs/..%2f..%2f..%2fetc%2fpasswd", b"/docs/", b"/etc/passwd", b"/.git/config"),
    *(b"/.env", b"/static/../../etc/passwd", b"/openapi.json%00.html"),
]


@pytest.fixture
def core(database_url: Secret) -> Iterator[str]:
    """A Core on a real socket, because the server's reading of a path is part of the test."""
    with served_in_thread(create_app(core_settings(database_url))) as url:
        yield url


def assert_nothing(answer: RawAnswer, target: bytes) -> None:
    """Assert that the response is a problem and no page or list, or that the server rejected the request."""
    assert answer.status in {400, 404, 405}, (target, answer.status)
    assert "location" not in answer.headers, target
    assert "x-injected" not in answer.headers, target
    if answer.status != 400:
        assert answer.headers["content-type"] == "application/problem+json", target
        assert answer.headers["x-content-type-options"] == "nosniff", target
    if target.startswith(b"/v1"):
        assert answer.headers.get("cache-control", "no-store") == "no-store", target


def test_a_route_has_one_path(core: str) -> None:
    assert send_raw(core, b"/v1/organizations", headers=OPERATOR).status == 200
    for target in SPELLINGS:
        assert_nothing(send_raw(core, target, headers=OPERATOR), target)


def test_no_spelling_of_a_path_needs_less_of_a_credential(core: str) -> None:
    """If an escaped letter or slash is the same path to the server, it needs the same credential."""
    same = [
        b"/v1/%6frganizations",
        b"/%76%31/organizations",
        b"/v1%2forganizations",
        b"http://core.test/v1/organizations",
    ]
    for target in same:
        assert send_raw(core, target, headers=OPERATOR).status == 200, target
        assert send_raw(core, target).status == 401, target
    for target in SPELLINGS:
        answer = send_raw(core, target)
        if answer.status != 401:
            assert_nothing(answer, target)


def test_no_path_shows_a_file(core: str) -> None:
    for target in FILES:
        answer = send_raw(core, target)
        assert_nothing(answer, target)
        assert b"root:" not in answer.body


@pytest.mark.parametrize("method", METHODS)
def test_no_part_of_a_request_is_returned_as_a_page(core: str, method: str) -> None:
    """Otherwise a person who follows such a link could run a script in the name of the service."""
    places = [
        b"/",
        b"/v1/",
        b"/v1/organizations/",
        b"/v1/resolve/",
        b"/problems/",
        b"/schemas/",
        b"/docs/",
        b"/docs?x=",
    ]
    targets = [place + script for place in places for script in (SCRIPT, b"<script>alert(1)</script>")]
    headers = {**OPERATOR, "Accept": "text/html", "X-Request-Id": "<script>alert(1)</script>", "Origin": "<script>"}
    for target in targets:
        answer = send_raw(core, target, method=method, headers=headers)
        assert b"<script>alert(1)" not in answer.body, target
        assert "<script>" not in "".join(answer.headers.values()), target
        assert answer.status < 500, target


def test_a_redirect_does_not_depend_on_the_request(core: str) -> None:
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    answer = send_raw(core, b"/", headers=evil)
    assert (answer.status, answer.headers["location"]) == (307, "/docs")
    for target in (b"//evil.example/%2e%2e", b"/\\evil.example", b"//evil.example//", b"/%09/evil.example"):
        assert_nothing(send_raw(core, target, headers=evil), target)
    problem = send_raw(core, b"/nowhere", headers=evil)
    assert b"evil.example" not in problem.body
