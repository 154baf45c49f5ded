"""Settings from the environment: every fault is named at once, and no value is shown."""

from typing import Any

import pytest

from soundmark import settings as declared
from soundmark.kit.settings import SettingsInvalid

VALID: dict[str, dict[str, str]] = {
    "core": {
        "BASE_URL": "https://soundmark.example",
        "CORE_DATABASE_URL": "postgresql://core:pw@db/core",
        "MASTER_KEY": "A" * 43,
        "AUDIO_URL": "http://audio:8000",
        "AUDIO_CREDENTIAL": "c" * 16,
        "AUDIENCE_URL": "http://audience:8000",
        "AUDIENCE_CREDENTIAL": "c" * 16,
    },
    "audience": {
        "AUDIENCE_DATABASE_URL": "postgresql://audience:pw@db/audience",
        "AUDIENCE_CREDENTIAL": "c" * 16,
        "MASTER_KEY": "A" * 43,
    },
    "audio": {"AUDIO_CREDENTIAL": "c" * 16},
    "console": {"CONSOLE_KEY": "A" * 43},
}


def environ(values: dict[str, str]) -> dict[str, str]:
    return {f"SOUNDMARK_{name}": value for name, value in values.items()}


def read_core(**changes: str) -> declared.CoreSettings:
    return declared.read(declared.CoreSettings, environ({**VALID["core"], **changes}))


def faults(model: type[Any] = declared.CoreSettings, **values: str) -> list[str]:
    with pytest.raises(SettingsInvalid) as refusal:
        declared.read(model, environ(values))
    assert str(refusal.value) == "; ".join(refusal.value.faults)
    return refusal.value.faults


def core_faults(**changes: str) -> list[str]:
    return faults(**{**VALID["core"], **changes})


def test_each_component_starts_with_its_required_settings(subtests: pytest.Subtests) -> None:
    for component in list(declared.COMPONENTS):
        with subtests.test(component=component):
            settings = declared.read(declared.COMPONENTS[component], environ(VALID[component]))
            assert (settings.log_level, settings.log_format, settings.metrics_port) == ("info", None, None)


def test_the_defaults_are_those_of_the_documents() -> None:
    settings = read_core()
    assert settings.database_pool_size == 10
    assert settings.private_timeout_s == 5
    assert settings.private_response_bytes_max == 8388608
    assert (settings.resolve_rate_limit, settings.resolve_rate_window_s) == (120, 10)
    assert (settings.operator_token, settings.rate_limit_url, settings.trusted_proxies) == (None, None, ())


def test_every_missing_setting_is_named_at_once() -> None:
    assert faults() == [
        f"SOUNDMARK_{name}: is not set"
        for name in (
            *("AUDIENCE_URL", "AUDIENCE_CREDENTIAL", "CORE_DATABASE_URL", "MASTER_KEY", "BASE_URL"),
            *("AUDIO_URL", "AUDIO_CREDENTIAL"),
        )
    ]


def test_wrong_missing_and_unknown_settings_are_named_together() -> None:
    values = {**VALID["core"], "BASE_URL": "ftp://x", "LOG_LEVEL": "loud", "COLOUR": "red", "master_key": "x"}
    del values["AUDIO_URL"]
    named = [fault.partition(":")[0] for fault in faults(**values)]
    assert named == [
        "SOUNDMARK_COLOUR",
        "SOUNDMARK_master_key",
        "SOUNDMARK_LOG_LEVEL",
        "SOUNDMARK_BASE_URL",
        "SOUNDMARK_AUDIO_URL",
    ]


def test_settings_that_do_not_fit_together_are_named_with_all_other_faults(subtests: pytest.Subtests) -> None:
    shared = "SOUNDMARK_CORE_DATABASE_URL and SOUNDMARK_AUDIENCE_DATABASE_URL must name two databases and two roles"
    url = "postgresql://one:pw@db/one"
    with subtests.test(component="core"):
        found = core_faults(
            CORE_DATABASE_URL=url, AUDIENCE_DATABASE_URL=url, OIDC_ISSUER="https://id.test", DRAIN_S="x"
        )
        assert set(found) > {
            shared,
            "SOUNDMARK_OIDC_ISSUER and SOUNDMARK_OIDC_CLIENT_ID must both be set, or neither",
        }
    with subtests.test(component="audience"):
        found = faults(declared.AudienceSettings, CORE_DATABASE_URL=url, AUDIENCE_DATABASE_URL=url)
        assert set(found) > {shared, "SOUNDMARK_MASTER_KEY: is not set"}
    with subtests.test(component="core, a wrong schema"):
        (fault,) = core_faults(CORE_DATABASE_URL=url, AUDIENCE_DATABASE_URL=url, AUDIENCE_SCHEMA="A B")
        assert fault.startswith("SOUNDMARK_AUDIENCE_SCHEMA: ")


def test_an_unknown_name_is_refused_even_when_it_is_empty() -> None:
    assert core_faults(COLOUR="") == ["SOUNDMARK_COLOUR: no such setting"]


def test_names_without_the_prefix_are_ignored() -> None:
    assert declared.read(declared.AudioSettings, {**environ(VALID["audio"]), "COLOUR": "red", "MASTER_KEY": "x"})


def test_one_environment_may_configure_every_component() -> None:
    everything = environ({name: value for values in VALID.values() for name, value in values.items()})
    for model in declared.COMPONENTS.values():
        assert declared.read(model, everything)


def test_an_empty_value_counts_as_unset() -> None:
    assert core_faults(MASTER_KEY="") == ["SOUNDMARK_MASTER_KEY: is not set"]
    assert read_core(LOG_LEVEL="", OPERATOR_TOKEN="", DATABASE_POOL_SIZE="").database_pool_size == 10


WRONG = {
    "BASE_URL": [
        *("soundmark.example", "ftp://soundmark.example", "https://", "https:///path"),
        *("https://sesame@soundmark.example", "https://:sesame@soundmark.example"),
        *("https://soundmark.example?sesame=1", "https://soundmark.example#sesame", "https://[sesame"),
        *("https://soundmark.example:sesame", "https://soundmark.example:99999"),
    ],
    "AUDIO_URL": ["audio:8000", "unix:///sesame", "http://audio:sesame"],
    "CORE_DATABASE_URL": [
        "core",
        "sesame://core:pw@db/core",
        "postgresql://core:pw@db",
        "postgresql://core:pw@db/",
        "postgresql://core:sesame@[/core",
        "postgresql://core:pw@db/core?sesame=1",
        "postgresql://core:pw@db/core?connect_timeout=sesame",
    ],
    "MASTER_KEY": ["sesame", "A" * 42, "A" * 44, "=" * 43, "sesame" * 9],
    "AUDIO_CREDENTIAL": [
        "sesame",
        "c" * 16 + ",sesame",
        "c" * 16 + ",",
        ",".join(["sesame" * 4] * 3),
        "sesame sesame sesame",
        "sesamé" * 3,
    ],
    "DATABASE_POOL_SIZE": ["1", "201", "sesame", "5.5", "-1"],
    "PRIVATE_TIMEOUT_S": ["0.9", "61", "sesame", "nan", "inf"],
    "PRIVATE_RESPONSE_BYTES_MAX": ["1023", "16777217", "sesame"],
    "OPERATOR_TOKEN": ["sesame", "xop_" + "s" * 42, "xak_" + "s" * 43, "xop_" + "é" * 43, "xop_" + "s" * 43 + "\r"],
    "TRUSTED_PROXIES": ["sesame", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8,sesame"],
    "RESOLVE_RATE_LIMIT": ["0", "-1", "sesame"],
    "RESOLVE_RATE_WINDOW_S": ["0", "3601", "sesame"],
    "RATE_LIMIT_URL": [
        "sesame",
        "http://sesame",
        "memcached://sesame",
        "redis://db?sesame=1",
        "redis://db?socket_timeout=sesame",
    ],
    "EXTRA_CA_FILE": ["sesame.pem"],
    "LOG_LEVEL": ["sesame", "INFO", "trace"],
    "LOG_FORMAT": ["sesame", "JSON"],
    "METRICS_PORT": ["0", "65536", "sesame"],
}


def test_a_wrong_value_is_named_and_not_shown(subtests: pytest.Subtests) -> None:
    for name, value in [(name, value) for name, values in WRONG.items() for value in values]:
        with subtests.test(name=name, value=value):
            (fault,) = core_faults(**{name: value})
            assert fault.startswith(f"SOUNDMARK_{name}: ")
            assert "sesame" not in fault
            assert value not in fault.removeprefix(f"SOUNDMARK_{name}: ") or len(value) < 5


def test_urls_lose_their_last_slash() -> None:
    """Otherwise `{base_url}/problems/…` would have two slashes."""
    assert read_core(BASE_URL="https://soundmark.example/").base_url == "https://soundmark.example"


def test_a_credential_may_be_a_pair_while_it_is_rotated() -> None:
    pair = read_core(AUDIO_CREDENTIAL="c" * 16 + " , " + "d" * 16).audio_credential
    assert [credential.reveal() for credential in pair] == ["c" * 16, "d" * 16]


def test_trusted_proxies_are_networks() -> None:
    networks = read_core(TRUSTED_PROXIES="10.0.0.0/8, 2001:db8::/32 ,192.0.2.1").trusted_proxies
    assert [str(network) for network in networks] == ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"]


def test_core_and_audience_share_neither_database_nor_role(subtests: pytest.Subtests) -> None:
    for other in [
        "postgresql://audience:pw@db/core",
        "postgresql://core:pw@db/audience",
        "postgresql://core:pw@DB:5432/audience",
        "postgresql://core:pw@db/core",
        "postgres://audience:pw@db/core?sslmode=require",
    ]:
        with subtests.test(other=other):
            expected = [
                "SOUNDMARK_CORE_DATABASE_URL and SOUNDMARK_AUDIENCE_DATABASE_URL must name two databases and two roles"
            ]
            assert core_faults(AUDIENCE_DATABASE_URL=other) == expected
            values = {
                **VALID["audience"],
                "AUDIENCE_DATABASE_URL": other,
                "CORE_DATABASE_URL": VALID["core"]["CORE_DATABASE_URL"],
            }
            assert faults(declared.AudienceSettings, **values) == expected


def test_a_schema_of_its_own_is_enough_of_a_database(subtests: pytest.Subtests) -> None:
    """But the role is never shared: it has the right to everything of both."""
    own = {"AUDIENCE_SCHEMA": "cell_1"}
    assert read_core(AUDIENCE_DATABASE_URL="postgresql://audience:pw@db/core", **own).audience_schema == "cell_1"
    values = {**VALID["audience"], "AUDIENCE_DATABASE_URL": "postgresql://audience:pw@db/core", **own}
    core_url = VALID["core"]["CORE_DATABASE_URL"]
    assert (
        declared.read(
            declared.AudienceSettings, {f"SOUNDMARK_{name}": text for name, text in values.items()}
        ).own_schema
        == "cell_1"
    )
    shared_role = {**values, "AUDIENCE_DATABASE_URL": "postgresql://core:pw@db/core", "CORE_DATABASE_URL": core_url}
    assert "two roles" in faults(declared.AudienceSettings, **shared_role)[0]
    for name in ("", "Cell", "1cell", "pg_cell", "c" * 59, 'a"b', "a,b", "a.b"):
        with subtests.test(name=name):
            found = faults(declared.AudienceSettings, **{**values, "AUDIENCE_SCHEMA": name}) if name else []
            assert [fault.partition(":")[0] for fault in found] == (["SOUNDMARK_AUDIENCE_SCHEMA"] if name else [])


def test_two_servers_may_use_the_same_names() -> None:
    assert read_core(AUDIENCE_DATABASE_URL="postgresql://core:pw@other/core")


def test_a_password_that_looks_like_a_port_is_not_shown() -> None:
    """An unescaped slash in a password moves part of it to where a port would be."""
    (fault,) = core_faults(
        CORE_DATABASE_URL="postgresql://core:ses/ame@db/core",
        AUDIENCE_DATABASE_URL="postgresql://audience:pw@db/audience",
    )
    assert fault.startswith("SOUNDMARK_CORE_DATABASE_URL: ")
    assert "ses" not in fault


def test_a_password_that_the_driver_cannot_read_is_not_shown(subtests: pytest.Subtests) -> None:
    """The driver's own error would repeat it in a log line of its pool or in a traceback."""
    for password in ["ses[am]e", "[sesame", "ses%zame", "ses%00ame", "sesame%", "ses ame", "ses@ame"]:
        with subtests.test(password=password):
            (fault,) = core_faults(CORE_DATABASE_URL=f"postgresql://core:{password}@db/core")
            assert fault.startswith("SOUNDMARK_CORE_DATABASE_URL: must be ")
            assert "ses" not in fault


def test_a_password_that_is_percent_encoded_is_taken(subtests: pytest.Subtests) -> None:
    for password in ["ses%5Bam%5De", "100%25", "ses%40ame", "a.b-c_d~e!"]:
        with subtests.test(password=password):
            url = f"postgresql://core:{password}@db/core"
            assert read_core(CORE_DATABASE_URL=url).core_database_url.reveal() == url


@pytest.mark.parametrize("password", ["ses/ame", "ses[am]e"])
def test_a_password_of_the_rate_limit_server_is_not_shown(password: str) -> None:
    (fault,) = core_faults(RATE_LIMIT_URL=f"redis://:{password}@db:6379/0")
    assert fault.startswith("SOUNDMARK_RATE_LIMIT_URL: must be ")
    assert "ses" not in fault


def test_settings_do_not_print_their_secrets() -> None:
    settings = read_core(OPERATOR_TOKEN="xop_" + "s" * 43, RATE_LIMIT_URL="redis://:pw@cache")
    shown = repr(settings) + str(settings)
    for secret in ("pw", "A" * 43, "c" * 16, "s" * 43):
        assert secret not in shown


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read_core().log_level = "debug"  # type: ignore[misc]  # what must not work
