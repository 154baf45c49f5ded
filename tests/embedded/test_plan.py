"""What `soundmark up` tells each process, without running any."""

from pathlib import Path

import pytest

from soundmark.embedded.plan import Options, Plan, Ports, check, given_settings
from soundmark.kit.secret import Secret
from soundmark.kit.settings import SettingsInvalid

OIDC = {
    "SOUNDMARK_OIDC_ISSUER": "https://id.example/realms/soundmark",
    "SOUNDMARK_OIDC_CLIENT_ID": "console",
}


def plan(environ: dict[str, str]) -> Plan:
    serving = {"core": 8080, "audience": 8081, "audio": 8082}
    return Plan(
        options=Options(Path("data"), "127.0.0.1", 8080, 1),
        ports=Ports(serving, {name: port + 1000 for name, port in serving.items()}, 5432),  # type: ignore[arg-type]  # the names are components
        given=given_settings(environ),
        credentials={"audience": Secret("a" * 43), "audio": Secret("b" * 43)},
        operator_token=Secret("xop_" + "o" * 43),
        master_key=Secret("A" * 43),
        database_urls={
            "core": Secret("postgresql://core@127.0.0.1/core"),
            "audience": Secret("postgresql://audience@127.0.0.1/audience"),
        },
    )


def test_an_identity_provider_is_told_to_core_alone() -> None:
    made = plan(OIDC)
    check(made)
    assert OIDC.items() <= made.settings_of("core").items()
    for other in (made.settings_of("audience"), made.settings_of("audio"), made.working("core").environ):
        assert not OIDC.keys() & other.keys()


@pytest.mark.parametrize("name", OIDC)
def test_half_an_identity_provider_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(SettingsInvalid, match="must both be set, or neither"):
        check(plan({name: OIDC[name]}))
