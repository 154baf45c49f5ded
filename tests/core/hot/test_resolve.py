"""`GET /v1/resolve/{broadcast_token}`: what receivers get, and what they must never get."""

import asyncio
import base64
import itertools
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from soundmark_sdk import Resolution, read_key_set, verify_answer
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.api.whole_responses import WholeResponses
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

UNKNOWN = "brd_" + "u" * 16
_VARYING = {"x-request-id", "ratelimit"}


async def verified(api: Api, token: str) -> Resolution:
    """Return the answer as the SDK verifies it for a receiver."""
    answer = await api.resolve(token)
    assert answer.status == 200, answer.body
    keys = read_key_set((await api.get("/v1/keys")).body)
    return verify_answer(answer.body, token, keys, api.clock.now())


async def test_an_answer_verifies_and_carries_the_issued_intent(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    resolution = await verified(api, code["broadcast_token"])
    assert (resolution.xr_id, resolution.intent.resource) == (code["xr_id"], code["intent"]["resource"])


async def test_without_the_header_there_is_no_envelope(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    answer = await api.resolve(code["broadcast_token"], proof=False)
    assert sorted(answer.json) == ["intent", "policy", "signature_status", "xr_id"]


async def test_a_server_that_takes_whole_responses_gets_the_same_answer(api: Api) -> None:
    """Our own server takes a response as one message, with its head as bytes."""
    code = await (await make_tenant(api)).make_code()
    server = WholeResponses(api.app)
    divided, whole = [await one.resolve(code["broadcast_token"]) for one in (api, Api(server, api.clock))]
    assert server.statuses == [200]
    assert whole.json["intent"] == divided.json["intent"]
    plain, taken = (
        {name: value for name, value in one.headers.items() if name not in _VARYING} for one in (divided, whole)
    )
    assert plain == taken
    assert whole.headers.keys() == divided.headers.keys()
    assert int(whole.headers["content-length"]) == len(whole.body)


async def test_no_credential_is_needed(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    assert (await api.other(token=None).resolve(code["broadcast_token"])).status == 200


async def test_the_envelope_lives_two_minutes(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    proof = (await api.resolve(code["broadcast_token"])).json["resolution_proof"]
    assert parse_timestamp(proof["expires_at"]) - parse_timestamp(proof["issued_at"]) == timedelta(minutes=2)


async def test_unknown_malformed_and_revoked_tokens_get_the_same_answer(api: Api) -> None:
    tenant = await make_tenant(api)
    code = await tenant.make_code()
    await tenant.revoke(code["xr_id"])
    answers = [await api.resolve(token) for token in (code["broadcast_token"], UNKNOWN, "nope", "brd_", "a/b", "%00")]
    bodies = {answer.body.replace(answer.headers["x-request-id"].encode(), b"") for answer in answers}
    headers = {
        tuple(sorted((name, value) for name, value in answer.headers.items() if name not in _VARYING))
        for answer in answers
    }
    assert ({answer.code for answer in answers}, len(bodies), len(headers)) == ({"code_unavailable"}, 1, 1)


@pytest.mark.parametrize("token", [UNKNOWN, "nope"])
async def test_a_malformed_token_is_looked_up_too(api: Api, rival: Rival, token: str) -> None:
    """The same query for every token: its duration does not reveal whether a token was ever issued."""
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        resolving = asyncio.create_task(api.resolve(token))
        await rival.until_someone_waits()
        assert not resolving.done()
    assert (await resolving).code == "code_unavailable"


@pytest.mark.parametrize("value", ["ed25519-v2", "", "ED25519-V1", "ed25519-v1, ed25519-v1"])
async def test_another_proof_header_is_refused_before_the_look_up(api: Api, rival: Rival, value: str) -> None:
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        answer = await api.resolve(UNKNOWN, headers={"X-Svc-Resolution-Proof": value})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json["errors"][0]["location"] == "header"


@pytest.mark.parametrize("query", ["proof=1", "limit=1", "organization_id=org_1", "=", "a&b"])
async def test_a_parameter_is_refused_before_the_look_up(api: Api, rival: Rival, query: str) -> None:
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        answer = await api.get(f"/v1/resolve/brd_AAAAAAAAAAAAAAAA?{query}")
    names = [part.partition("=")[0] for part in query.split("&")]
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [
        ("query", f"/{name}") for name in names
    ]


async def test_an_empty_query_string_is_accepted(api: Api) -> None:
    tenant = await make_tenant(api)
    token = (await tenant.make_code())["broadcast_token"]
    assert (await api.get(f"/v1/resolve/{token}?")).status == 200


async def test_only_get_is_allowed(api: Api) -> None:
    answer = await api.post(f"/v1/resolve/{UNKNOWN}")
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "GET")
    assert answer.headers["ratelimit"].startswith('"resolve";r='), "every answer says what is left"


async def test_a_code_expires_exactly_at_its_expiry(api: Api) -> None:
    api.clock.freeze()
    code = await (await make_tenant(api)).make_code(lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert (await api.resolve(code["broadcast_token"])).status == 200
    api.clock.advance(seconds=0.001)
    answer = await api.resolve(code["broadcast_token"])
    assert (answer.status, answer.code) == (410, "code_expired")


async def test_revoked_and_expired_is_unavailable(api: Api) -> None:
    tenant = await make_tenant(api)
    code = await tenant.make_code(lifetime_s=60)
    await tenant.revoke(code["xr_id"])
    api.clock.advance(seconds=61)
    assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_requests_during_a_query_share_one_envelope(api: Api, rival: Rival) -> None:
    code = await (await make_tenant(api)).make_code()
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        under_way = await rival.while_waiting(api.resolve(code["broadcast_token"]))
        asking = [asyncio.create_task(api.resolve(code["broadcast_token"])) for _ in range(5)]
        asking.append(asyncio.create_task(api.resolve(code["broadcast_token"], proof=False)))
        for _ in range(50):  # More turns of the loop than a request needs until it waits for the query.
            await asyncio.sleep(0)
    answers = [await under_way, *[await task for task in asking]]
    assert [answer.status for answer in answers] == [200] * 7
    *with_proof, without = [answer.body for answer in answers[1:]]
    assert len(set(with_proof)) == 1
    assert b"resolution_proof" not in without


async def test_nobody_gets_an_envelope_of_an_earlier_query(api: Api) -> None:
    api.clock.freeze()
    code = await (await make_tenant(api)).make_code()
    first = await api.resolve(code["broadcast_token"])
    api.clock.advance(milliseconds=1)
    assert (await api.resolve(code["broadcast_token"])).body != first.body


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_jumps_is_in_the_next_envelope(api: Api, hours: int) -> None:
    code = await (await make_tenant(api)).make_code()
    await api.resolve(code["broadcast_token"])
    api.clock.advance(hours=hours)
    assert (await verified(api, code["broadcast_token"])).xr_id == code["xr_id"]


_REPLACE = "UPDATE broadcasts SET payload = replace(encode(payload, 'escape'), '{}', '{}')::bytea"
_SET_BYTE = "UPDATE broadcasts SET signature = set_byte(signature, {0}, (get_byte(signature, {0}) + 1) %% 256)"
ALTERATIONS = {
    "payload: another intent": _REPLACE.format("open", "shut"),
    "payload: later expiry": _REPLACE.format('"20', '"30'),
    "payload: one more byte": "UPDATE broadcasts SET payload = payload || ' '::bytea",
    "payload: empty": "UPDATE broadcasts SET payload = ''",
    "payload: no JSON": "UPDATE broadcasts SET payload = 'x'",
    "signature: first byte": _SET_BYTE.format(0),
    "signature: last byte": _SET_BYTE.format(63),
    "signature: empty": "UPDATE broadcasts SET signature = ''",
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
@pytest.mark.parametrize("heard_before", [False, True])
async def test_an_altered_row_is_never_answered(api: Api, rival: Rival, alteration: str, heard_before: bool) -> None:
    """Whether or not its genuine bytes were verified and remembered a moment before."""
    code = await (await make_tenant(api)).make_code()
    if heard_before:
        assert (await api.resolve(code["broadcast_token"])).status == 200
    before = broken_count()
    assert await rival.run(ALTERATIONS[alteration]) == 1
    for proof in (True, False):
        answer = await api.resolve(code["broadcast_token"], proof=proof)
        assert (answer.status, answer.code) == (404, "code_unavailable")
    assert broken_count() == before + 2


def broken_count() -> float:
    """Return the value of this process's error metric."""
    return REGISTRY.get_sample_value("soundmark_integrity_failures_total", {"reader": "resolution"}) or 0.0


async def test_a_token_moved_to_another_code_is_never_answered(api: Api, rival: Rival) -> None:
    """Both rows are genuine; only the key under which one is found was changed."""
    tenant = await make_tenant(api)
    one, other = await tenant.make_code(), await tenant.make_code()
    token = one["broadcast_token"]
    await rival.run(
        "UPDATE broadcasts SET (payload, signature) = (SELECT payload, signature FROM broadcasts WHERE token = %s)"
        " WHERE token = %s",
        other["broadcast_token"],
        token,
    )
    assert (await api.resolve(token)).code == "code_unavailable"
    assert (await api.resolve(other["broadcast_token"])).status == 200


async def test_no_resolution_that_starts_after_a_revoke_returns_the_intent(
    database_url: Secret, audio_url: str
) -> None:
    """At two Cores, with a thousand resolutions under way."""
    settings = core_settings(database_url, audio_url=audio_url)
    async with running_core(settings) as one, running_core(settings) as other:
        tenant = await make_tenant(one)
        code = await tenant.make_code()
        token, many, revoked = code["broadcast_token"], asyncio.Event(), asyncio.Event()
        late: list[int] = []
        early: list[int] = []

        async def ask(api: Api) -> None:
            for _ in range(25):
                started_late = revoked.is_set()
                status = (await api.resolve(token)).status
                (late if started_late else early).append(status)
                if len(early) == 100:
                    many.set()

        askers = [asyncio.create_task(ask(api)) for api in itertools.islice(itertools.cycle((one, other)), 40)]
        await asyncio.wait_for(many.wait(), 30)
        assert (await tenant.revoke(code["xr_id"])).status == 200
        revoked.set()
        await asyncio.gather(*askers)
    assert (len(early) + len(late), set(late), 200 in early) == (1000, {404}, True)


async def test_the_lookup_heals_after_the_server_dropped_its_connections(api: Api, rival: Rival) -> None:
    code = await (await make_tenant(api)).make_code()
    assert (await api.resolve(code["broadcast_token"])).status == 200
    await rival.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert (await api.resolve(code["broadcast_token"])).status == 200


async def test_an_unavailable_database_is_a_503_until_it_is_back(api: Api, rival: Rival) -> None:
    """A table that stays locked for longer than the look-up waits looks to a receiver like a database that hangs."""
    code = await (await make_tenant(api)).make_code()
    async with rival.holding("LOCK TABLE broadcasts IN ACCESS EXCLUSIVE MODE"):
        answer = await api.resolve(code["broadcast_token"])
        assert (answer.status, answer.code) == (503, "database_unavailable")
    assert (await api.resolve(code["broadcast_token"])).status == 200


def limited(database_url: Secret, audio_url: str, **changes: Any) -> Any:
    return running_core(core_settings(database_url, audio_url=audio_url, resolve_rate_limit="3", **changes))


async def test_the_limit_counts_every_token_and_reports_what_remains(database_url: Secret, audio_url: str) -> None:
    async with limited(database_url, audio_url) as api:
        answers = [await api.resolve(token) for token in (UNKNOWN, "nope", UNKNOWN, UNKNOWN)]
        assert [answer.status for answer in answers] == [404, 404, 404, 429]
        assert [answer.headers["ratelimit"].split(";")[1] for answer in answers] == ["r=2", "r=1", "r=0", "r=0"]
        refused = answers[-1]
        assert (refused.code, refused.headers["ratelimit-policy"]) == ("rate_limited", '"resolve";q=3;w=10')
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        api.clock.advance(seconds=10)
        assert (await api.resolve(UNKNOWN)).status == 404


async def test_a_forged_forwarded_header_does_not_escape_the_limit(database_url: Secret, audio_url: str) -> None:
    async with limited(database_url, audio_url) as api:
        statuses = [
            (await api.resolve(UNKNOWN, headers={"X-Forwarded-For": f"203.0.113.{number}"})).status
            for number in range(4)
        ]
    assert statuses == [404, 404, 404, 429]


async def test_behind_a_trusted_proxy_the_rightmost_stranger_counts(database_url: Secret, audio_url: str) -> None:
    async with limited(database_url, audio_url, trusted_proxies="127.0.0.0/8,10.0.0.0/8") as api:

        async def ask(forwarded: str) -> int:
            return (await api.resolve(UNKNOWN, headers={"X-Forwarded-For": forwarded})).status

        mine = [await ask(f"198.51.100.{number}, 203.0.113.9, 10.0.0.1") for number in range(4)]
        assert (mine, await ask("203.0.113.10, 10.0.0.1")) == ([404, 404, 404, 429], 404)


async def test_an_ipv6_subscriber_counts_as_one(database_url: Secret, audio_url: str) -> None:
    async with limited(database_url, audio_url) as api:
        statuses = [(await api.other(peer=f"2001:db8:1:2::{number}").resolve(UNKNOWN)).status for number in range(4)]
        neighbour = (await api.other(peer="2001:db8:1:3::1").resolve(UNKNOWN)).status
    assert (statuses, neighbour) == ([404, 404, 404, 429], 404)


async def test_the_payload_is_what_the_contract_lists(api: Api) -> None:
    code = await (await make_tenant(api)).make_code()
    proof = (await api.resolve(code["broadcast_token"])).json["resolution_proof"]
    payload = base64.urlsafe_b64decode(proof["payload"] + "==")
    assert payload.startswith(b'{"expires_at":"' + proof["expires_at"].encode())
    assert code["signed_code"]["token_digest"].encode() in payload
    assert format_timestamp(parse_timestamp(proof["issued_at"])) == proof["issued_at"]
