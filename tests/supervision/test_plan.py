"""What `soundmark up` passes to each process, without running any."""

from dataclasses import replace
from pathlib import Path

import pytest

from soundmark import settings
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import SettingsInvalid
from soundmark.operating_system.os_user import OsUser
from soundmark.supervision.plan import DATABASES, Options, Plan, Ports, audience_master_key, check, read_given_settings

OIDC = {
    "SOUNDMARK_OIDC_ISSUER": "https://id.example/realms/soundmark",
    "SOUNDMARK_OIDC_CLIENT_ID": "console",
}


def plan(environ: dict[str, str]) -> Plan:
    serving = {"core": 8080, "audience": 8081, "audio": 8082}
    return Plan(
        options=Options(Path("data"), "127.0.0.1", 8080, 1),
        ports=Ports(serving, {name: port + 1000 for name, port in serving.items()}, 5432),  # type: ignore[arg-type]  # the names are components
        given=read_given_settings(environ),
        credentials={"audience": Secret("a" * 43), "audio": Secret("b" * 43)},
        operator_token=Secret("xop_" + "o" * 43),
        master_key=Secret("A" * 43),
        database_urls={
            "core": Secret("postgresql://core@127.0.0.1/core"),
            "audience": Secret("postgresql://audience@127.0.0.1/audience"),
        },
    )


def test_only_core_gets_the_settings_of_the_identity_provider() -> None:
    made = plan(OIDC)
    check(made)
    assert OIDC.items() <= made.settings_of("core").items()
    for other in (made.settings_of("audience"), made.settings_of("audio"), made.working("core").environ):
        assert not OIDC.keys() & other.keys()


@pytest.mark.parametrize("name", OIDC)
def test_half_an_identity_provider_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(SettingsInvalid, match="must both be set, or neither"):
        check(plan({name: OIDC[name]}))


def test_audience_gets_its_own_master_key() -> None:
    """Audience's environment opens nothing of Core's, and its worker opens nothing at all."""
    made = plan({})
    check(made)
    cores = made.settings_of("core")["SOUNDMARK_MASTER_KEY"]
    audiences = made.settings_of("audience")["SOUNDMARK_MASTER_KEY"]
    assert cores == "A" * 43
    assert audiences == audience_master_key(Secret(cores)).reveal()
    assert audiences != cores
    assert "SOUNDMARK_MASTER_KEY" not in made.working("audience").environ
    assert made.working("core").environ["SOUNDMARK_MASTER_KEY"] == cores
    told = {**made.serving("audience").environ, **made.working("audience").environ}
    assert cores not in told.values()
    assert not any(name.startswith("SOUNDMARK_CORE_") for name in told)


def test_audience_gets_the_address_of_the_problem_pages() -> None:
    assert plan({}).settings_of("audience")["SOUNDMARK_BASE_URL"] == plan({}).settings_of("core")["SOUNDMARK_BASE_URL"]


def test_audience_does_not_get_a_master_key_of_the_caller_either() -> None:
    given = plan({"SOUNDMARK_MASTER_KEY": "A" * 43})
    assert given.settings_of("audience") == plan({}).settings_of("audience")


@pytest.mark.parametrize(("given", "told"), [({}, "warning"), ({"SOUNDMARK_LOG_LEVEL": "info"}, "info")])
def test_successes_are_logged_only_on_request(given: dict[str, str], told: str) -> None:
    """At a terminal it would drown the addresses, the demonstration and real failures."""
    made = plan(given)
    check(made)
    for component in settings.COMPONENTS:
        assert made.serving(component).environ["SOUNDMARK_LOG_LEVEL"] == told
    for component in DATABASES:
        assert made.working(component).environ["SOUNDMARK_LOG_LEVEL"] == told
        assert made.migrating(component).environ["SOUNDMARK_LOG_LEVEL"] == told


def test_everything_that_serves_or_migrates_runs_as_the_same_user() -> None:
    user = OsUser("somebody", 12345, 23456)
    made = replace(plan({}), user=user)
    programs = [made.serving(component) for component in settings.COMPONENTS]
    programs += [make(component) for make in (made.working, made.migrating) for component in DATABASES]
    assert [program.user for program in programs] == [user] * 7
