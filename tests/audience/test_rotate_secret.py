"""Rotating an HMAC secret: the new one is shown once, and the old one is void."""

from support.audience.client import MASTER_KEY, AudienceApi, new_operation_id
from support.database.rival import Rival

from soundmark.audience.secrets import open_hmac_secret
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.text.timestamps import format_timestamp

SEALER = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())


async def test_the_new_secret_takes_the_place_of_the_old_at_once(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration()
    now = audience.clock.freeze()

    answer = await given.change("secret")

    assert answer.status == 200
    assert answer.json["integration"] == {**given.view, "secret_rotated_at": format_timestamp(now)}
    fresh = answer.json["hmac_secret"]
    assert fresh.startswith("xhm_")
    assert fresh != given.hmac_secret
    ((sealed,),) = await audience_rival.rows("SELECT sealed_secret FROM integrations")
    assert open_hmac_secret(SEALER, given.id, sealed).reveal() == fresh


async def test_a_lost_answer_loses_the_secret_for_good(audience: AudienceApi, audience_rival: Rival) -> None:
    """A repetition of the operation learns that it was done; for a usable secret the caller rotates again."""
    given = await audience.make_integration()
    operation_id = new_operation_id()
    lost = await given.change("secret", operation_id=operation_id)
    before = await audience_rival.rows("SELECT sealed_secret FROM integrations")

    repeated = await given.change("secret", operation_id=operation_id)

    assert repeated.json == {"integration": lost.json["integration"], "hmac_secret": None}
    assert await audience_rival.rows("SELECT sealed_secret FROM integrations") == before
    assert (await given.change("secret")).json["hmac_secret"] is not None


async def test_other_integrations_keep_theirs(audience: AudienceApi, audience_rival: Rival) -> None:
    given, other = await audience.make_integration(), await audience.make_integration()

    await given.change("secret")

    rows = await audience_rival.rows("SELECT sealed_secret FROM integrations WHERE id = %s", other.id)
    assert open_hmac_secret(SEALER, other.id, rows[0][0]).reveal() == other.hmac_secret
