"""What the pages say about single fields that Core refuses."""

import re
from pathlib import Path
from typing import Any

import pytest
from soundmark_sdk.client.failures import ApiProblem, RefusedField
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

import soundmark.console
from soundmark.console.language import LOCALES, get_language
from soundmark.console.refused_fields import explain_refusal
from soundmark.console.troubles import describe

TEMPLATES = Path(soundmark.console.__file__).parent / "templates"
CONTROL = re.compile(r'\b(?:(?:moment_)?field|choice|boxes|text_area)\(\s*"(\w+)"')

SENTENCES = [
    "must be at most 14 for a demo",
    "must be a host name or an IP address",
    "must have a host name or an IP address",
    "must have its IP address as four decimal numbers",
    "must have a port from 1 to 65535",
    "must have at most 2048 characters",
    "must not point to this machine",
    "must be an e-mail address",
    "must be an e-mail address in ASCII",
    "must be an https URL, or an http URL on a loopback address",
    "must be an http or https URL",
    "must be a URL without credentials, query or fragment",
    "must be a string of at most 500 characters, an exact number, a boolean or null",
    "Input should be a valid integer, unable to parse string as an integer",
    "Input should be a valid boolean, unable to interpret input",
    "List should have at most 100 items after validation, not 101",
    "must be written in decimal digits",
    "must be an RFC 3339 date-time with an offset, such as 2026-11-20T10:00:00.000Z",
    "must be a known event type",
    "must be a DNS name in A-label form without port or trailing dot, or `*.` and a name of at least two labels",
    "must be an https address of a host that this project allows",
    "must not contain a host twice",
    "must not name a type twice",
    "must not name an event twice",
    "must not name a scope twice",
    "must have at most 64 members",
    "must be the next_cursor of the previous page",
    "must precede created_to",
    "must stay codes",
    "must be true: this plan is always active",
    "must name another plan: this one is granted by contract only",
    "must name a plan of Audience",
    "must name a plan that is active",
    "must be an existing third party of the accounting system",
    "must name an active, recurring price at the card provider",
    "must have at most two decimals",
    "must be one secret, or two separated by a comma",
    "must have no control characters, such as a line break",
    "is larger than 16384 bytes in canonical form",
]


async def test_what_core_says_of_a_field_is_told_in_the_persons_words(tenant: Tenant) -> None:
    """A message that Core words differently would be shown in English."""
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("organizations", {"name": ""}),
        ("organizations", {"name": "n" * 121}),
        ("organizations", {"name": "a\nb"}),
        ("organizations", {}),
        ("campaigns", tenant.campaign_body(starts_at="2027-01-01T00:00:00Z", ends_at="2026-01-01T00:00:00Z")),
        ("api-keys", tenant.key_body(scopes=[])),
        ("api-keys", tenant.key_body(scopes=["all"])),
        ("api-keys", tenant.key_body(expires_in_days=0)),
        ("api-keys", tenant.key_body(expires_in_days=400)),
        ("member-invitations", tenant.invitation_body(email="ada")),
        ("member-invitations", tenant.invitation_body(role="owner")),
        ("codes", tenant.code_body(expires_at="2020-01-01T00:00:00Z")),
        ("codes", tenant.code_body(intent={"type": "link", "action": "open", "resource": []})),
        ("webhook-endpoints", tenant.webhook_body(url="http://example.org")),
        ("webhook-endpoints", tenant.webhook_body(url="https://10.0.0.1/")),
        ("webhook-endpoints", tenant.webhook_body(event_types=[])),
    ]
    hosts = f"projects/{tenant.project_id}/allowed-hosts?organization_id={tenant.organization_id}"
    calls = [
        *(("POST", area, body) for area, body in bodies),
        *(("PUT", hosts, {"hosts": each}) for each in (["example.org:443"], ["a.example", "A.example"])),
    ]
    for method, area, body in calls:
        answer = await tenant.api.call(method, f"/v1/{area}", json=body)
        assert answer.status == 422, body
        for error in answer.json["errors"]:
            for code in LOCALES:
                assert explain_refusal(error["message"], get_language(code)) != error["message"]


async def test_a_refused_field_is_named_and_explained_in_french(operator: ConsoleClient, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.submit("/organizations", {"name": "n" * 121})

    assert page.find(".//p[@id='refused-name']").text == "Utilisez au plus 120 caractères."
    assert "Nom : Utilisez au plus 120 caractères." in page.text


@pytest.mark.parametrize("code", list(LOCALES))
def test_every_control_has_a_name(code: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.html")]
    names = {name for source in sources for name in CONTROL.findall(source)}

    assert "name" in names
    assert {name for name in names if not get_language(code).knows(f"fields.{name}")} == set()


@pytest.mark.parametrize("code", list(LOCALES))
def test_every_sentence_of_core_about_a_field_of_a_form_has_a_phrase_of_ours(code: str) -> None:
    language = get_language(code)
    said = {message: explain_refusal(message, language) for message in SENTENCES}
    assert [each for each, phrase in said.items() if phrase in {each, explain_refusal("odd", language)}] == []


def test_a_sentence_that_we_do_not_know_is_no_developers_english_on_a_page() -> None:
    assert explain_refusal("must be odd", get_language("en")) == "This value was refused."
    assert explain_refusal("must be odd", get_language("fr")) == "Cette valeur a été refusée."


def test_an_entry_of_a_list_is_a_fault_of_the_list() -> None:
    faults = (RefusedField("body", "/scopes/0", "must be in the future"), RefusedField("body", "/scopes/1", "odder"))

    trouble = describe(ApiProblem(422, "validation_failed", "", errors=faults), get_language("en"))

    assert trouble.fields == {"scopes": "Choose a time in the future."}


async def test_the_summary_links_to_the_fields_of_its_own_page_alone(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    """A button's failure has a page of its own, and the address of a list may hold what no field shows."""
    members = f"/organizations/{tenant.organization_id}/members"
    listed = await operator.get(f"{codes}?status=sold")
    acted = await operator.submit(f"{members}/role", {"subject_id": "operator", "role": "king"})

    assert [each.get("href") for each in listed.find_all(".//section[@id='trouble']//a")] == ["#field-status"]
    assert "Role: Choose one of the listed values." in acted.text
    assert acted.find_all(".//section[@id='trouble']//a") == []


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere%00",
        "{project}/codes?address_prefix=a%00b",
        "{project}/codes?issuer=a%00b",
        "{project}/codes?campaign_id=a%00b",
        "{project}/codes?status=a%00b",
        "{project}/codes?created_from=a%00b",
        "{project}/codes?cursor=a%00b",
        "/search?q=a%00b",
        "/platform/organizations?search=a%00b",
        "{organization}/audit-log?actor=a%00b",
        "{organization}/audit-log?action=a%00b",
        "{organization}/audit-log?from=a%00b",
        "{organization}/billing/offers?country=%00",
        "{project}/integrations/int_unknown/report?campaign_id=a%00b",
        "{project}/integrations/int_unknown/report?xr_id=a%00b",
        "{project}/legacy-report?from=a%00b",
    ],
)
async def test_a_nul_in_any_address_is_bad_input(operator: ConsoleClient, tenant: Tenant, path: str) -> None:
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"

    page = await operator.get(path.format(organization=organization, project=project))

    # No address begins like that, and no name holds it.
    is_looked_for = "search?" in path or "address_prefix" in path
    assert page.status == 200 if is_looked_for else 400 <= page.status < 500
    assert "\0" not in page.html
    assert page.tree is not None, "it is well-formed"


async def test_a_nul_that_was_typed_comes_back_as_a_mark(operator: ConsoleClient) -> None:
    page = await operator.submit("/organizations", {"name": "a\0b"})

    assert (page.status, page.value("name")) == (422, "a\N{REPLACEMENT CHARACTER}b")
