"""The settings of the platform."""

from typing import Any, get_args

import pytest
from support.api.core_client import Api
from support.console.client import ConsoleClient, PageAnswer
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.platform_settings import NAMED_CONFIGURATION, NAMED_SECRETS, put_setting, read_settings

from soundmark.console.language import LOCALES, get_language
from soundmark.console.pages.platform.settings import KINDS, TESTED
from soundmark.core.domain.platform.system_test import SystemName, SystemTestCode
from soundmark.settings.registry import CONFIGURATION

SECRET = "sk_live_MARKtyped-by-an-administrator"
HOSTILE = "<script>alert(1)</script> \"'&"
remember_secret(SECRET)


def row_of(page: PageAnswer, name: str) -> str:
    """Return what the row of a setting says."""
    for row in page.find_all(".//tbody/tr"):
        if row.findtext(".//code") == name:
            return " ".join("".join(row.itertext()).split())
    raise AssertionError(page.text)


async def fill_in(operator: ConsoleClient, path: str) -> dict[str, str]:
    """Return the fields of a system's form as it is shown."""
    form = (await operator.get(path)).find(".//main//form")
    names = [str(each.get("name")) for each in form.iter() if each.tag in {"input", "select"}]
    page = await operator.get(path)
    return {name: page.value(name) for name in names if name != "csrf_token"}


def test_every_setting_is_typed_as_what_it_is() -> None:
    kinds = {str: "text", int: "integer", float: "decimal", bool: "boolean"}

    assert {name: KINDS.get(name, "text") for name in CONFIGURATION} == {
        name: kinds[setting.value_type] for name, setting in CONFIGURATION.items()
    }


def test_every_setting_has_a_name_for_people(subtests: pytest.Subtests) -> None:
    for name in sorted(NAMED_SECRETS | NAMED_CONFIGURATION):
        with subtests.test(name=name):
            assert all(get_language(code).knows(f"platform.setting.{name}") for code in LOCALES)


async def test_all_settings_are_shown_with_their_sources(operator: ConsoleClient, api: Api) -> None:
    assert (await put_setting(api, "smtp_host", "mail.example.org")).status == 200

    page = await operator.get("/platform")

    assert page.status == 200
    assert {code.text for code in page.find_all(".//tbody//th/code")} == NAMED_SECRETS | NAMED_CONFIGURATION
    assert "mail.example.org this page" in row_of(page, "smtp_host")
    assert "465 the default" in row_of(page, "smtp_port")
    assert "yes the default" in row_of(page, "smtp_secure")
    assert "no the default" in row_of(page, "accounting_enable_invoice_sync")
    assert "not set" in row_of(page, "smtp_password")


async def test_settings_stand_under_the_system_that_they_are_about(operator: ConsoleClient) -> None:
    page = await operator.get("/platform")

    sections = {
        str(section.findtext("h2")): [str(code.text) for code in section.findall(".//tbody//th/code")]
        for section in page.find_all(".//main/section")
    }
    assert list(sections) == ["Mail", "Support desk", "Accounting", "Card payments", "Payments in dinars"]
    assert sections["Card payments"] == ["card_secret_key", "card_webhook_secret"]


async def test_a_credential_is_set_and_never_shown(operator: ConsoleClient, api: Api) -> None:
    answer = await operator.submit("/platform/secrets/card_secret_key", {"value": SECRET})
    page = await operator.follow(answer)

    assert "card_secret_key was set." in page.text
    assert "not set" not in row_of(page, "card_secret_key")
    assert (await read_settings(api))["secrets"]["card_secret_key"]["configured"] is True
    again = await operator.get("/platform/secrets/card_secret_key")
    assert again.value("value") == ""
    assert SECRET not in page.html + again.html


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_credential_that_could_not_be_saved_is_not_in_the_page(
    operator: ConsoleClient, api: Api, *, is_down: bool
) -> None:
    """It has to be entered again: a page may be kept, printed, or seen by others."""
    if is_down:
        operator.core.go_down()
    operator.core.refuse("PUT /v1/platform/settings/secrets/card_secret_key", 503, "database_unavailable")

    page = await operator.submit("/platform/secrets/card_secret_key", {"value": SECRET})

    assert (page.status, page.trouble) == (503, "core_unreachable" if is_down else "database_unavailable")
    assert SECRET not in page.html
    assert (await read_settings(api))["secrets"]["card_secret_key"]["configured"] is False


async def test_a_refused_credential_is_asked_for_again(operator: ConsoleClient) -> None:
    page = await operator.submit("/platform/secrets/card_secret_key", {"value": ""})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(".//input[@id='field-value']").get("aria-invalid") == "true"


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("smtp_host", "mail.example.org", "mail.example.org"),
        ("smtp_port", "587", 587),
        ("smtp_secure", "false", False),
        ("accounting_tva_rate", "19.25", 19.25),
        ("accounting_tva_rate", "19,25", 19.25),
        ("support_desk_mailbox_id", "7", 7),
    ],
)
async def test_a_setting_is_overridden_and_the_override_removed(
    operator: ConsoleClient, api: Api, name: str, typed: str, value: Any
) -> None:
    before = (await read_settings(api))["configuration"][name]
    path = f"/platform/systems/{name.partition('_')[0]}"

    page = await operator.follow(await operator.submit(path, {**await fill_in(operator, path), name: typed}))

    assert "The settings were saved." in page.text
    setting = (await read_settings(api))["configuration"][name]
    assert (setting["value"], setting["source"]) == (value, "database")
    assert (await operator.get(path)).value(name) == str(value).replace("False", "false")
    removal = f"/platform/configuration/{name}/removal"
    assert [form.get("action") for form in page.find_all(".//tbody//form")] == [removal]
    label = get_language("en").say(f"platform.setting.{name}")
    assert "".join(page.find(".//tbody//form/button").itertext()) == f"Remove {label}"
    await operator.follow(await operator.submit(removal))
    assert (await read_settings(api))["configuration"][name] == before


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("smtp_host", HOSTILE),
        ("smtp_port", "many"),
        ("smtp_port", "70000"),
        ("smtp_from_email", "nobody"),
        ("accounting_base_url", "http://10.0.0.1"),
        ("accounting_tva_rate", "nan"),
        ("accounting_tva_rate", "1e999"),
        ("accounting_tva_rate", "9" * 400),
        ("accounting_tva_rate", "101"),
        ("accounting_entity_id", "1" * 50),
    ],
)
async def test_a_refused_value_is_shown_again_with_the_reason(
    operator: ConsoleClient, api: Api, name: str, typed: str
) -> None:
    path = f"/platform/systems/{name.partition('_')[0]}"

    page = await operator.submit(path, {**await fill_in(operator, path), name: typed})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.value(name) == typed
    assert page.find(f".//p[@id='refused-{name}']").text
    assert page.find(".//section[@id='trouble']//li/a").text == get_language("en").say(f"platform.setting.{name}")
    assert not page.find_all(".//body//script")
    assert (await read_settings(api))["configuration"][name]["source"] == "default"


async def test_settings_of_a_system_are_saved_together_and_only_those_that_were_changed(
    operator: ConsoleClient, api: Api
) -> None:
    path = "/platform/systems/smtp"
    shown = await fill_in(operator, path)
    assert "There was nothing to save." in (await operator.follow(await operator.submit(path, shown))).text
    typed = {"smtp_host": "mail.example.org", "smtp_port": "587"}

    await operator.submit(path, {**shown, **typed})

    configuration = (await read_settings(api))["configuration"]
    saved = {name: each["value"] for name, each in configuration.items() if each["source"] == "database"}
    assert saved == {"smtp_host": "mail.example.org", "smtp_port": 587}


async def test_of_settings_that_are_refused_in_part_the_form_says_what_applies(
    operator: ConsoleClient, api: Api
) -> None:
    path = "/platform/systems/smtp"
    shown = await fill_in(operator, path)
    typed = {**shown, "smtp_host": "mail.example.org", "smtp_port": "70000"}

    unread = await operator.submit(path, {**typed, "smtp_port": "many"})
    assert (await read_settings(api))["configuration"]["smtp_host"]["source"] == "default"
    page = await operator.submit(path, typed)
    again = await operator.submit(path, {**typed, "shown_smtp_host": "mail.example.org"})

    assert ["Nothing was changed." in each.text for each in (unread, page, again)] == [True, False, True]
    assert "Some settings were saved" in page.text
    assert unread.find(".//p[@id='refused-smtp_port']").text
    assert page.find(".//p[@id='refused-smtp_port']").text
    assert (page.value("smtp_host"), page.value("smtp_port")) == ("mail.example.org", "70000")
    for name, applies in (("smtp_host", "mail.example.org, from this page"), ("smtp_port", "465, from the default")):
        assert f"Applies now: {applies}." in (page.find(f".//p[@id='hint-{name}']").text or "")


async def test_a_pause_in_the_middle_does_not_hide_what_was_saved(operator: ConsoleClient, api: Api) -> None:
    path = "/platform/systems/smtp"
    typed = {**await fill_in(operator, path), "smtp_host": "mail.example.org", "smtp_port": "587"}
    operator.core.refuse("PUT /v1/platform/settings/configuration/smtp_port", 429, "rate_limited", retry_after_s=7)

    page = await operator.submit(path, typed)

    assert (await read_settings(api))["configuration"]["smtp_host"]["value"] == "mail.example.org"
    assert (page.status, page.trouble, page.value("smtp_port")) == (429, "rate_limited", "587")
    assert "This request changed nothing." not in page.text
    assert "Some settings were saved" in page.text
    assert "Try again in 7 seconds." in page.text


async def test_a_hostile_value_is_shown_as_text(operator: ConsoleClient, api: Api) -> None:
    assert (await put_setting(api, "smtp_from_name", HOSTILE)).status == 200

    page = await operator.get("/platform")

    assert HOSTILE in row_of(page, "smtp_from_name")
    assert not page.find_all(".//body//script")


@pytest.mark.parametrize("path", ["secrets/smtp_host", "secrets/nothing", "systems/card", "systems/nothing"])
async def test_a_setting_that_does_not_exist_is_no_page(operator: ConsoleClient, path: str) -> None:
    assert (await operator.get(f"/platform/{path}")).trouble == "page_not_found"


@pytest.mark.parametrize("path", ["", "/catalog", "/readiness", "/secrets/smtp_password", "/systems/smtp"])
async def test_those_who_are_no_administrators_are_refused(
    visitors: ConsoleClient, people: People, clock: FakeClock, path: str
) -> None:
    await people.tenant_of("owner")
    visitors.sign_in_as(people, "owner", clock.now())

    page = await visitors.get(f"/platform{path}")

    assert (page.status, page.trouble) == (403, "platform_admin_required")


async def test_an_administrator_without_a_second_factor_is_asked_for_it(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    roles = {"realm_access": {"roles": ["svc_platform_admin"]}}
    visitors.sign_in_as(people, "ada", clock.now(), acr="1", **roles)
    assert (await visitors.get("/platform")).status == 403

    visitors.sign_in_as(people, "ada", clock.now(), **roles)
    assert (await visitors.get("/platform")).status == 200


async def test_the_settings_in_french(operator: ConsoleClient, api: Api, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    assert (await put_setting(api, "accounting_tva_rate", 19.25)).status == 200

    page = await french.get("/platform")

    assert "E-mail : port" in row_of(page, "smtp_port")
    assert "19,25" in row_of(page, "accounting_tva_rate")
    assert "la valeur par défaut" in row_of(page, "smtp_port")


def test_every_result_of_a_test_has_a_sentence(subtests: pytest.Subtests) -> None:
    for name in (*get_args(SystemTestCode), *(f"means.{system}" for system in (*TESTED.values(), "local"))):
        with subtests.test(name=name):
            assert all(get_language(code).knows(f"platform.test.{name}") for code in LOCALES)
    assert set(TESTED.values()) == set(get_args(SystemName))


async def test_a_system_is_tested_and_the_result_stands_beside_its_settings(operator: ConsoleClient) -> None:
    page = await operator.get("/platform")
    tests = [form for form in page.find_all(".//main/section//form") if "/test" in str(form.get("action"))]
    assert [form.get("action") for form in tests] == [f"/platform/systems/{name}/test#tested" for name in TESTED]
    assert "".join(text for button in tests[0].iter("button") for text in button.itertext()).split() == ["Test", "Mail"]

    tested = await operator.submit("/platform/systems/card/test")

    assert (tested.status, tested.trouble) == (200, None)
    (section,) = [each for each in tested.find_all(".//main/section") if each.find(".//*[@id='tested']") is not None]
    assert section.findtext("h2") == "Card payments"
    result = tested.find(".//*[@id='tested']")
    assert (result.get("role"), result.get("tabindex"), result.get("data-code")) == ("alert", "-1", "not_configured")
    assert "".join(result.itertext()).strip() == "The card provider is not configured: settings are missing."


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("answered", "The accounting system accepted the key and answered as expected."),
        ("of_a_later_release", "What a later Core says."),
    ],
)
async def test_a_test_that_passed_is_said_to_have(operator: ConsoleClient, code: str, words: str) -> None:
    answer = {
        "system": "accounting",
        "ok": True,
        "code": code,
        "reason": "What a later Core says.",
        "checked_at": "2026-11-20T10:00:00.000Z",
    }
    operator.core.answer("POST /v1/platform/systems/accounting/test", 200, answer)

    result = (await operator.submit("/platform/systems/accounting/test")).find(".//*[@id='tested']")

    assert result.get("role") == "status"
    assert "".join(result.itertext()).strip() == words
    assert result.find("p[@class='banner banner-good']") is not None


async def test_a_test_that_core_refuses_has_a_page(operator: ConsoleClient) -> None:
    operator.core.refuse("POST /v1/platform/systems/card/test", 429, "rate_limited")

    page = await operator.submit("/platform/systems/card/test")

    assert (page.status, page.trouble) == (429, "rate_limited")


@pytest.mark.parametrize("system", ["local", "mail", "nothing"])
async def test_what_cannot_be_tested_is_no_page(operator: ConsoleClient, system: str) -> None:
    assert (await operator.submit(f"/platform/systems/{system}/test")).trouble == "page_not_found"


async def test_a_test_in_french(operator: ConsoleClient, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    result = (await french.submit("/platform/systems/support/test")).find(".//*[@id='tested']")

    assert "".join(result.itertext()).strip() == "Le service d’assistance n’est pas configuré : il manque des réglages."
