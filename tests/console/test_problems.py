"""What the pages say about the problems that the API may answer."""

import json
from pathlib import Path

import pytest
from support.console.client import ConsoleClient
from support.processes.fake_clock import FakeClock

from soundmark.console.language import LOCALES, get_language

CATALOGUE = json.loads((Path(__file__).parents[1] / "golden/problems.json").read_text(encoding="utf-8"))
DEPENDENCIES = {
    "accounting_unavailable": "accounting system",
    "audience_unavailable": "Audience",
    "audio_unavailable": "Audio",
    "database_unavailable": "database",
    "identity_provider_unavailable": "identity provider",
    "payment_provider_unavailable": "payment provider",
    "support_unavailable": "support desk",
}


def test_every_problem_has_a_title_and_says_what_to_do_in_every_language() -> None:
    for code in CATALOGUE:
        said = [get_language(each).say(f"problems.{code}") for each in LOCALES]
        advised = [get_language(each).say(f"problems.{code}.detail") for each in LOCALES]

        assert len(set(said)) == len(set(advised)) == len(LOCALES), f"{code}: each language has words of its own"
        assert not any(title.endswith(".") for title in said), f"{code}: a title is no sentence"
        assert all(detail.endswith(".") for detail in advised), code


@pytest.mark.parametrize(("code", "dependency"), DEPENDENCIES.items())
async def test_a_page_names_the_dependency_that_is_down_and_keeps_what_was_typed(
    operator: ConsoleClient, code: str, dependency: str
) -> None:
    operator.core.refuse("POST /v1/organizations", 503, code)

    page = await operator.submit("/organizations", {"name": "Radio Nordlicht"})

    assert page.status == 503
    assert page.trouble == code
    assert dependency in page.find(".//section[@id='trouble']/h2").text
    assert "lost" in page.text
    assert "English." not in page.text, "our own words stand in place of Core's"
    assert page.find(".//section[@id='trouble']//code").get("data-copy-value") == "request-of-the-test"
    assert page.value("name") == "Radio Nordlicht"


@pytest.mark.parametrize("language", list(LOCALES))
def test_an_answer_of_audience_that_was_lost_may_hide_that_it_acted(language: str) -> None:
    """An integration may exist although its secret was never shown."""
    words = {"en": "check before you repeat it", "fr": "vérifiez avant de recommencer"}[language]

    assert words in get_language(language).say("problems.audience_unavailable.detail")


def test_every_dependency_that_can_be_down_is_named() -> None:
    """The readiness of a release is a file, not a dependency."""
    unavailable = {code for code, problem in CATALOGUE.items() if problem["status"] == 503}

    assert unavailable - {"release_readiness_unavailable"} == set(DEPENDENCIES)


async def test_a_used_up_quota_says_when_the_month_ends(operator: ConsoleClient, clock: FakeClock) -> None:
    clock.frozen_at = clock.freeze().replace(year=2026, month=11, day=29, hour=23, minute=59, second=59)
    operator.core.refuse("POST /v1/organizations", 429, "quota_exceeded", retry_after_s=24 * 3600)
    operator.sign_in_as_operator(clock.now())

    page = await operator.submit("/organizations", {"name": "Radio"})

    assert page.status == 429
    assert page.find(".//section[@id='trouble']//time").get("datetime") == "2026-12-01T00:00Z"
    assert "Try again after 1 Dec 2026, 00:00" in page.text


async def test_a_rate_limit_says_how_many_seconds_to_wait(operator: ConsoleClient) -> None:
    operator.core.refuse("POST /v1/organizations", 429, "rate_limited", retry_after_s=7)

    assert "Try again in 7 seconds." in (await operator.submit("/organizations", {"name": "Radio"})).text


async def test_a_problem_of_a_later_release_is_told_in_its_own_words(operator: ConsoleClient) -> None:
    operator.core.refuse("POST /v1/organizations", 409, "moon_phase_wrong")

    page = await operator.submit("/organizations", {"name": "Radio"})

    assert page.trouble == "moon_phase_wrong"
    assert "Core refused the request English." in page.text


@pytest.mark.parametrize("status", [200, 201, 502])
async def test_an_answer_that_cannot_be_read_may_hide_that_core_acted(
    operator: ConsoleClient, clock: FakeClock, status: int
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    operator.core.answer_page("POST /v1/organizations", status)

    for browser, words in ((operator, "check before you repeat it"), (french, "vérifiez avant de recommencer")):
        page = await browser.submit("/organizations", {"name": "Radio"})

        assert page.trouble == "core_unreadable"
        assert page.status >= 500
        assert words in page.text
        assert "problem document" not in page.text
        assert page.value("name") == "Radio"


async def test_the_words_are_those_of_the_persons_language(operator: ConsoleClient, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    operator.core.refuse("POST /v1/organizations", 503, "database_unavailable")

    page = await french.submit("/organizations", {"name": "Radio"})

    assert page.find(".//section[@id='trouble']/h2").text == "La base de données ne répond pas"
