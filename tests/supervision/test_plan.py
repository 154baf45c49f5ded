"""What `soundmark up` passes to each process, without running any."""

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from soundmark import settings
from soundmark.cli.up import _say_how_to_sign_in, _tell_ready
from soundmark.embedded.cluster_location import Home
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import SettingsInvalid
from soundmark.operating_system.os_user import OsUser
from soundmark.sandbox.options import ADDRESSES, defaults_for_core
from soundmark.supervision.plan import (
    Options,
    Plan,
    Ports,
    SandboxPlan,
    SettingGiven,
    audience_master_key,
    check,
    console_key,
    name_databases,
    read_given_settings,
)
from soundmark.supervision.reloading import write_environments
from soundmark.supervision.up import Postgres

OIDC = {
    "SOUNDMARK_OIDC_ISSUER": "https://id.example/realms/soundmark",
    "SOUNDMARK_OIDC_CLIENT_ID": "console",
}
TICKETS, STATE = Path("/data/sign-in-tickets"), Path("/data/console-state")
SANDBOX = SandboxPlan(ADDRESSES, {"CARD_SECRET_KEY": Secret("sk_test_x")}, defaults_for_core(entity_id=1, mailbox_id=1))


def plan(environ: dict[str, str], sandbox: SandboxPlan | None = None, host: str = "127.0.0.1") -> Plan:
    serving = {"core": 8080, "audience": 8081, "audio": 8082, "console": 8083}
    metrics = {name: port + 1000 for name, port in serving.items()}
    return Plan(
        options=Options(Path("data"), host, 8080, 1, sandbox),
        ports=Ports(serving, metrics, 5432, None if sandbox is None else 8090),  # type: ignore[arg-type]  # the names are components
        given=read_given_settings(environ, sandbox),
        credentials={"audience": Secret("a" * 43), "audio": Secret("b" * 43)},
        operator_token=Secret("xop_" + "o" * 43),
        master_key=Secret("A" * 43),
        database_urls={
            "core": Secret("postgresql://core@127.0.0.1/core"),
            "audience": Secret("postgresql://audience@127.0.0.1/audience"),
        },
    )


def with_tickets(made: Plan) -> Plan:
    """Return the plan as `up` completes it where the operator can sign in."""
    assert made.can_operator_sign_in
    return replace(made, tickets=TICKETS, console_state=STATE)


def test_only_core_and_the_console_get_the_settings_of_the_identity_provider() -> None:
    made = plan(OIDC)
    check(made)
    assert OIDC.items() <= made.settings_of("core").items()
    assert OIDC.items() <= made.settings_of("console").items()
    for other in (made.settings_of("audience"), made.settings_of("audio"), made.working("core").environ):
        assert not OIDC.keys() & other.keys()


@pytest.mark.parametrize("name", OIDC)
def test_half_an_identity_provider_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(SettingsInvalid, match="must both be set, or neither"):
        check(plan({name: OIDC[name]}))


def test_components_get_the_time_to_drain_before_they_are_killed() -> None:
    for environ, grace_s in (({}, 30), ({"SOUNDMARK_DRAIN_S": "600"}, 630), ({"SOUNDMARK_DRAIN_S": " 5.0"}, 35)):
        assert plan(environ).serving("core").grace_s == grace_s


def test_metrics_are_named_where_they_listen() -> None:
    for host, url in (
        (None, "http://127.0.0.1:9080/metrics"),
        ("::", "http://[::1]:9080/metrics"),
        ("10.0.0.5", "http://10.0.0.5:9080/metrics"),
    ):
        made = plan({} if host is None else {"SOUNDMARK_METRICS_HOST": host})
        assert made.metrics_url("core") == url
        assert made.settings_of("core").get("SOUNDMARK_METRICS_HOST") == host


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
    environs = {**made.serving("audience").environ, **made.working("audience").environ}
    assert cores not in environs.values()
    assert not any(name.startswith("SOUNDMARK_CORE_") for name in environs)


def test_audience_gets_the_address_of_the_problem_pages() -> None:
    assert plan({}).settings_of("audience")["SOUNDMARK_BASE_URL"] == plan({}).settings_of("core")["SOUNDMARK_BASE_URL"]


def test_audience_does_not_get_a_master_key_of_the_caller_either() -> None:
    given = plan({"SOUNDMARK_MASTER_KEY": "A" * 43})
    assert given.settings_of("audience") == plan({}).settings_of("audience")


@pytest.mark.parametrize(("given", "environs"), [({}, "warning"), ({"SOUNDMARK_LOG_LEVEL": "info"}, "info")])
def test_successes_are_logged_only_on_request(given: dict[str, str], environs: str) -> None:
    """At a terminal it would drown the addresses, the demonstration and real failures."""
    made = plan(given)
    check(made)
    for component in settings.COMPONENTS:
        assert made.serving(component).environ["SOUNDMARK_LOG_LEVEL"] == environs
    for component in name_databases():
        assert made.working(component).environ["SOUNDMARK_LOG_LEVEL"] == environs
        assert made.migrating(component).environ["SOUNDMARK_LOG_LEVEL"] == environs


def test_everything_that_serves_or_migrates_runs_as_the_same_user() -> None:
    user = OsUser("somebody", 12345, 23456)
    made = replace(plan({}), user=user)
    programs = [made.serving(component) for component in settings.COMPONENTS]
    programs += [make(component) for make in (made.working, made.migrating) for component in name_databases()]
    assert [program.user for program in programs] == [user] * 8


def test_the_console_gets_a_key_of_its_own_and_no_other_secret() -> None:
    made = with_tickets(plan({"SOUNDMARK_MASTER_KEY": "A" * 43}))
    check(made)
    consoles = made.settings_of("console")
    assert consoles == {
        "SOUNDMARK_LOG_LEVEL": "warning",
        "SOUNDMARK_METRICS_PORT": "9083",
        "SOUNDMARK_BASE_URL": "http://127.0.0.1:8080",
        "SOUNDMARK_CORE_URL": "http://127.0.0.1:8080",
        "SOUNDMARK_CONSOLE_URL": "http://127.0.0.1:8083",
        "SOUNDMARK_CONSOLE_KEY": console_key(Secret("A" * 43)).reveal(),
        "SOUNDMARK_CONSOLE_TICKETS_PATH": str(TICKETS),
        "SOUNDMARK_CONSOLE_STATE_PATH": str(STATE),
        "SOUNDMARK_OPERATOR_TOKEN": "xop_" + "o" * 43,
    }
    assert "A" * 43 not in consoles.values()


def test_a_console_with_the_master_key_has_the_same_key() -> None:
    """So that sessions survive a move from `up` to single components."""
    alone = settings.read(settings.ConsoleSettings, {"SOUNDMARK_MASTER_KEY": "A" * 43})
    supervised = settings.read(settings.ConsoleSettings, plan({}).settings_of("console"))
    assert supervised.sealing_key == alone.sealing_key


def test_a_console_without_the_operators_sign_in_does_not_get_the_token() -> None:
    for made in (plan(OIDC), plan({}, host="192.0.2.1")):
        assert "SOUNDMARK_OPERATOR_TOKEN" in made.settings_of("core")
        assert "SOUNDMARK_OPERATOR_TOKEN" not in made.settings_of("console")
        assert "SOUNDMARK_CONSOLE_TICKETS_PATH" not in made.settings_of("console")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::"])  # noqa: S104 - not bound
def test_the_operator_signs_in_where_this_machine_reaches_core(host: str) -> None:
    assert plan({}, host=host).can_operator_sign_in


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        (OIDC, "127.0.0.1"),
        ({}, "192.0.2.1"),
        ({"SOUNDMARK_CONSOLE_URL": "https://console.example"}, "127.0.0.1"),
    ],
    ids=["people sign in", "core is elsewhere", "the console is elsewhere"],
)
def test_otherwise_the_operator_does_not_sign_in(environ: dict[str, str], host: str) -> None:
    """Core takes the operator token from this machine only, and a link must lead to the console's own address."""
    assert not plan(environ, host=host).can_operator_sign_in


def test_where_nobody_can_sign_in_the_reason_is_shown() -> None:
    assert _say_how_to_sign_in(plan({"SOUNDMARK_CONSOLE_URL": "https://console.example"})) == (
        "not possible without an identity provider: a link works only on a loopback address, without "
        "SOUNDMARK_CONSOLE_URL"
    )


def test_people_come_back_from_a_provider_to_the_console() -> None:
    made = plan({})
    for environ in (made.settings_of("core"), made.working("core").environ):
        assert environ["SOUNDMARK_CONSOLE_URL"] == made.address("console")


def test_the_callers_address_of_the_console_takes_precedence() -> None:
    made = plan({"SOUNDMARK_CONSOLE_URL": "https://console.example"})
    check(made)
    for environ in (made.settings_of("core"), made.settings_of("console"), made.working("core").environ):
        assert environ["SOUNDMARK_CONSOLE_URL"] == "https://console.example"


@pytest.mark.parametrize(
    ("environ", "address"),
    [({}, "127.0.0.1"), (OIDC, "127.0.0.1"), ({"SOUNDMARK_CONSOLE_URL": "https://console.example"}, "192.0.2.1")],
)
def test_the_console_is_for_this_machine_until_it_has_a_public_address(environ: dict[str, str], address: str) -> None:
    made = plan(environ, host="192.0.2.1")
    check(made)
    assert made.serving("console").argv[-6:-2] == ("--host", address, "--port", "8083")
    assert made.address("console") == f"http://{address}:8083"


@pytest.mark.parametrize("name", ["CORE_URL", "CONSOLE_TICKETS_PATH", "CONSOLE_STATE_PATH"])
def test_what_up_decides_for_the_console_is_refused(name: str) -> None:
    with pytest.raises(SettingGiven, match=f"SOUNDMARK_{name} cannot be set here: `up` "):
        plan({f"SOUNDMARK_{name}": "/srv/tickets"})


def test_core_and_its_worker_use_the_sandbox_and_nobody_else_does() -> None:
    made = plan({}, SANDBOX)
    check(made)
    expected = {
        "SOUNDMARK_CARD_API_URL": "http://127.0.0.1:8090/card",
        "SOUNDMARK_LOCAL_API_URL": "http://127.0.0.1:8090/local",
        "SOUNDMARK_ACCOUNTING_BASE_URL": "http://127.0.0.1:8090/accounting",
        "SOUNDMARK_SUPPORT_DESK_BASE_URL": "http://127.0.0.1:8090/desk",
        "SOUNDMARK_CARD_SECRET_KEY": "sk_test_x",
        "SOUNDMARK_ACCOUNTING_TVA_RATE": "19",
    }
    assert expected.items() <= made.serving("core").environ.items()
    assert expected.items() <= made.working("core").environ.items()
    assert "SOUNDMARK_ACCOUNTING_ENABLE_INVOICE_SYNC" not in made.serving("core").environ
    for other in (made.serving("audience"), made.serving("audio"), made.working("audience"), made.migrating("core")):
        assert not expected.keys() & other.environ.keys()


def test_the_sandbox_sends_webhooks_to_core_on_this_machine_and_has_no_other_secret() -> None:
    made = plan({"SOUNDMARK_BASE_URL": "https://sound.example"}, SANDBOX)
    program = made.sandboxing()
    assert program.argv[-4:] == ("sandbox", "--port", "8090", "--quiet")
    assert program.environ["SOUNDMARK_BASE_URL"] == "http://127.0.0.1:8080"
    assert program.environ["SOUNDMARK_CARD_SECRET_KEY"] == "sk_test_x"
    secrets = ("MASTER_KEY", "OPERATOR_TOKEN", "CORE_DATABASE_URL", "AUDIENCE_CREDENTIAL")
    assert not [name for name in secrets if f"SOUNDMARK_{name}" in program.environ]
    assert not [argument for argument in program.argv if "sk_test_x" in argument]


def test_without_a_sandbox_core_uses_the_real_providers() -> None:
    assert "SOUNDMARK_CARD_API_URL" not in plan({}).settings_of("core")


@pytest.mark.parametrize("name", ["CARD_API_URL", "SUPPORT_DESK_BASE_URL", "CARD_SECRET_KEY"])
def test_a_setting_that_the_sandbox_decides_is_refused(name: str) -> None:
    given = {f"SOUNDMARK_{name}": "https://provider.example"}
    with pytest.raises(SettingGiven, match=f"SOUNDMARK_{name} cannot be set here: `up --sandbox` sets it"):
        plan(given, SANDBOX)
    assert plan(given).given == {name: "https://provider.example"}


def test_what_the_sandbox_does_not_decide_is_the_callers() -> None:
    made = plan({"SOUNDMARK_ACCOUNTING_TVA_RATE": "7"}, SANDBOX)
    assert made.settings_of("core")["SOUNDMARK_ACCOUNTING_TVA_RATE"] == "7"
    assert made.sandboxing().environ["SOUNDMARK_ACCOUNTING_TVA_RATE"] == "7"


def test_a_debugger_gets_the_settings_of_its_component(tmp_path: Path) -> None:
    """All but the port of the metrics, which the component that `up` runs has taken."""
    made = plan({"SOUNDMARK_SMTP_FROM_NAME": "It's us"})
    write_environments(made, tmp_path)
    file = tmp_path / "core.env"
    shell = ["sh", "-c", f"set -a; . {file}; exec env -0"]
    seen = subprocess.run(shell, env={}, capture_output=True, text=True, check=True).stdout.split("\0")
    given = {name: value for name, _, value in (line.partition("=") for line in seen) if name.startswith("SOUNDMARK_")}
    assert given == {
        name: value for name, value in made.settings_of("core").items() if name != "SOUNDMARK_METRICS_PORT"
    }
    assert file.stat().st_mode & 0o777 == 0o600


def test_brackets_of_paths_and_addresses_are_shown_as_they_are() -> None:
    """The library that prints takes them for markup, and ends `up` where it finds no beginning of `[/x]`."""
    made = plan({}, host="fd00::1")
    made = replace(made, options=replace(made.options, data_dir=Path("/srv/[/x]/[prod]")))
    output = io.StringIO()
    home = Home(Path("/srv/[prod]/postgresql"), OsUser("soundmark", 999, 999), elsewhere=True)
    _tell_ready(Console(file=output, soft_wrap=True), made, home, Postgres(Path("/bin"), 180004, is_bundled=True))
    for shown in ("http://[fd00::1]:8080\n", "in /srv/[/x]/[prod]/up.json", "in /srv/[prod]/postgresql,"):
        assert shown in output.getvalue()
