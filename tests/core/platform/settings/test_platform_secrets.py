"""The platform's credentials: their presence is shown, their values never."""

import logging
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import MASTER_KEY
from support.database.rival import Rival
from support.tenancy.platform_settings import (
    DEFAULTS,
    FROM_DEFAULT,
    NAMED_CONFIGURATION,
    NAMED_SECRETS,
    PASSWORD,
    SETTINGS,
    put_setting,
    read_settings,
)

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS


async def test_nothing_is_set_at_first(api: Api) -> None:
    assert await read_settings(api) == {
        "secrets": {name: {"configured": False, "updated_at": None} for name in NAMED_SECRETS},
        "configuration": {name: {"value": value, **FROM_DEFAULT} for name, value in DEFAULTS.items()},
    }


def test_the_names_are_the_specified_ones() -> None:
    assert set(CREDENTIALS) == NAMED_SECRETS
    assert set(CONFIGURATION) == NAMED_CONFIGURATION


async def test_a_credential_is_shown_as_configured_and_never_revealed(api: Api, rival: Rival) -> None:
    now = api.clock.freeze()
    for name in NAMED_SECRETS:
        answer = await put_setting(api, name, PASSWORD)
        assert (answer.status, answer.json) == (200, {"configured": True, "updated_at": format_timestamp(now)})
        shown = await api.get(SETTINGS)
        assert shown.json["secrets"][name] == answer.json
        assert PASSWORD not in answer.body.decode() + shown.body.decode()
        ((sealed,),) = await rival.rows("SELECT sealed FROM platform_secrets WHERE name = %s", name)
        assert PASSWORD.encode() not in sealed


async def test_a_credential_is_sealed_to_its_name(api: Api, rival: Rival) -> None:
    """Moved to another name, where it would be sent elsewhere, it does not open."""
    await put_setting(api, "card_secret_key", PASSWORD)
    ((sealed,),) = await rival.rows("SELECT sealed FROM platform_secrets")
    sealer = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())
    place = {"table": "platform_secrets", "column": "sealed"}
    assert sealer.unseal(sealed, **place, row="card_secret_key").decode() == PASSWORD
    with pytest.raises(SealBroken):
        sealer.unseal(sealed, **place, row="smtp_password")


async def test_a_credential_is_replaced(api: Api, rival: Rival) -> None:
    await put_setting(api, "support_api_key", "fsk_before_2c81")
    api.clock.advance(seconds=5)
    later = await put_setting(api, "support_api_key", "fsk_after_9d04")
    assert (await read_settings(api))["secrets"]["support_api_key"] == later.json
    assert await rival.rows("SELECT count(*) FROM platform_secrets") == [(1,)]


@pytest.mark.parametrize("value", ["a", "x" * 4096, " spaces stay "], ids=lambda v: v[:9])
async def test_a_credential_has_1_to_4096_characters(api: Api, value: str) -> None:
    assert (await put_setting(api, "card_secret_key", value)).status == 200


@pytest.mark.parametrize("value", ["", "x" * 4097, "sk_live_x\n", None], ids=lambda v: repr(v)[:9])
async def test_another_credential_is_refused(api: Api, rival: Rival, value: Any) -> None:
    answer = await put_setting(api, "card_secret_key", value)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/value"]
    assert await rival.rows("SELECT count(*) FROM platform_secrets") == [(0,)]


async def test_a_refused_credential_is_not_repeated(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused = await put_setting(api, "smtp_password", PASSWORD * 200)
        taken = await put_setting(api, "smtp_password", PASSWORD)
    assert refused.status == 422
    assert taken.status == 200
    assert PASSWORD not in refused.body.decode() + caplog.text


@pytest.mark.parametrize("name", ["smtp_host", "x"])
async def test_an_unknown_credential_is_not_found(api: Api, name: str) -> None:
    """Whatever the body contains."""
    for body in ({"value": PASSWORD}, {"value": 7}, {}):
        answer = await api.call("PUT", f"{SETTINGS}/secrets/{name}", json=body)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.json["detail"] == "No credential has this name."
