"""`POST /v1/codes/{xr_id}/decode-certificates` and `GET /v1/decode-certificates/{certificate_id}`."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import rfc8785
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.api.published_contract import make_validator
from support.codes.measurements import CODEC, REPETITION, make_measurement
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.closures import SUBJECTS, verify_certificate
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.core.domain.log.entry import document_entry
from soundmark.core.features.codes.decode_certificates import service
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

UNKNOWN: Final = "dcc_" + "A" * 22
LIMIT: Final = 3


@pytest.fixture
async def limited(database_url: Secret, audio_url: str) -> AsyncIterator[Api]:
    """A Core that answers three requests a minute of each address, of each kind, from a database without rows."""
    settings = core_settings(
        database_url, audio_url=audio_url, resolve_rate_limit=str(LIMIT), resolve_rate_window_s="60"
    )
    async with running_core(settings) as client:
        yield client


async def test_the_certificate_is_what_was_measured_signed(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    code = await tenant.make_code()

    certificate = await tenant.certify(code["xr_id"])

    assert list(certificate) == [
        *("version", "certificate_id", "xr_id", "organization_id", "issued_at", "measured", "key_id", "signature")
    ]
    assert certificate["version"] == 1
    assert re.fullmatch(r"dcc_[A-Za-z0-9_-]{22}", certificate["certificate_id"])
    assert (certificate["xr_id"], certificate["organization_id"]) == (code["xr_id"], tenant.organization_id)
    assert certificate["issued_at"] == format_timestamp(now)
    assert certificate["measured"] == make_measurement()
    await verify_certificate(api, certificate)
    make_validator((await api.get("/schemas/decode-certificate-v1.json")).json).validate(certificate)


async def test_the_certificate_is_entered_into_the_log(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    certificate = await tenant.certify(code["xr_id"])
    entries = await rival.rows("SELECT content FROM log_queue WHERE kind = 'entry'")
    assert (document_entry(rfc8785.dumps(certificate)),) in entries


async def test_a_suspended_organisation_certifies_nothing(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    body = {"reason": "Spam"}
    path = f"/v1/platform/organizations/{tenant.organization_id}/suspension"
    assert (await api.put(path, json=body)).status == 200
    answer = await api.post(
        f"/v1/codes/{code['xr_id']}/decode-certificates", json=make_measurement(), params=tenant.query
    )
    assert (answer.status, answer.code) == (403, "organization_suspended")


async def test_numbers_are_signed_as_what_they_are(api: Api, tenant: Tenant) -> None:
    """An integer that is written `7.0` is 7; a fraction and the longest list keep their values."""
    repetitions = [{**REPETITION, "at_ms": place, "margin_db": place / 50} for place in range(10_000)]
    body = json.dumps(make_measurement(repetitions=repetitions, codecs=[CODEC] * 50))
    code = await tenant.make_code()
    path = f"/v1/codes/{code['xr_id']}/decode-certificates"
    content = body.replace('"sample_rate": 48000', '"sample_rate": 48e3').replace(": -12,", ": -1.2e1,")
    assert len(content) < 1024 * 1024

    answer = await api.post(
        path, params=tenant.query, content=content.encode(), headers={"Content-Type": "application/json"}
    )

    assert answer.status == 201, answer.body[:500]
    measured = answer.json["measured"]
    assert measured == make_measurement(repetitions=repetitions, codecs=[CODEC] * 50)
    assert (type(measured["sample_rate"]), type(measured["repetitions"][0]["level_db"])) == (int, int)
    await verify_certificate(api, answer.json)


async def test_the_name_of_a_file_may_begin_with_dots(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    for name in ("...", "..wav", ".wav", "x" * 255):
        answer = await tenant.ask_to_certify(code["xr_id"], make_measurement(file_name=name))
        assert (answer.status, answer.json["measured"]["file_name"]) == (201, name)
        await verify_certificate(api, answer.json)


async def test_a_code_in_any_state_can_be_certified(api: Api, tenant: Tenant) -> None:
    code, revoked = await tenant.make_code(lifetime_s=60), await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])
    api.clock.advance(seconds=61)
    for xr_id in (code["xr_id"], revoked["xr_id"]):
        await tenant.certify(xr_id)


async def test_each_call_issues_a_certificate_of_its_own(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    issued = [await tenant.certify(code["xr_id"]) for _ in range(2)]
    assert len({certificate["certificate_id"] for certificate in issued}) == 2
    assert await rival.audited("decode_certificate.issued") == [
        (
            "user operator",
            tenant.project_id,
            {"certificate_id": certificate["certificate_id"], "xr_id": code["xr_id"]},
        )
        for certificate in issued
    ]


REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    ({"file_sha256": "9F" * 32}, "/file_sha256"),
    ({"file_sha256": "9f" * 31}, "/file_sha256"),
    *(({"file_name": name}, "/file_name") for name in ("", "x" * 256, "a/b.wav", "a\\b.wav", ".", "..", None)),
    *(({"file_name": f"a{control}.wav"}, "/file_name") for control in "\n\x00\x1f\x7f\x80\x85\x9f"),
    *(({"duration_ms": number}, "/duration_ms") for number in (0, 2**53, -1, 1.5, "1", True, None)),
    *(({"sample_rate": number}, "/sample_rate") for number in (7_999, 768_001, None)),
    *(({"tool": {"name": "soundmark", "version": text}}, "/tool/version") for text in ("", "x" * 41, 1)),
    *(({"tool": {"name": text, "version": "1"}}, "/tool/name") for text in ("", "x" * 81)),
    ({"tool": {"name": "soundmark", "version": "1", "url": ""}}, "/tool/url"),
    ({"tool": "soundmark"}, "/tool"),
    ({"repetitions": []}, "/repetitions"),
    ({"repetitions": [{**REPETITION, "at_ms": place} for place in range(10_001)]}, "/repetitions"),
    ({"repetitions": [REPETITION, REPETITION]}, "/repetitions"),
    ({"repetitions": [{**REPETITION, "at_ms": 5}, {**REPETITION, "at_ms": 4}]}, "/repetitions"),
    ({"repetitions": [{**REPETITION, "at_ms": 3_600_000}]}, "/repetitions"),
    *(
        ({"repetitions": [{**REPETITION, name: value}]}, f"/repetitions/0/{name}")
        for name, values in {
            "at_ms": (-1, 0.5, None),
            "protocol": (2, 6, "4", 4.5, None),
            "level_db": (-200.1, 200.1, "0", True),
            "margin_db": (-201, 201, None),
            "cutoff_hz": (0, 384_001, 18_400.5),
            "more": (0,),
        }.items()
        for value in values
    ),
    *(
        ({"repetitions": [{key: value for key, value in REPETITION.items() if key != name}]}, f"/repetitions/0/{name}")
        for name in REPETITION
    ),
    ({"codecs": [CODEC] * 51}, "/codecs"),
    ({"codecs": None}, "/codecs"),
    *(
        ({"codecs": [{**CODEC, name: value}]}, f"/codecs/0/{name}")
        for name, value in {"name": "", "setting": "x" * 81, "heard": -1, "of": 0, "more": 1}.items()
    ),
    ({"codecs": [{**CODEC, "of": 10_001}]}, "/codecs/0/of"),
    ({"codecs": [{**CODEC, "heard": 2, "of": 1}]}, "/codecs"),
    ({"more": 1}, "/more"),
]


async def test_a_member_out_of_its_range_is_refused(tenant: Tenant, rival: Rival, subtests: pytest.Subtests) -> None:
    """The object is closed at every depth, and every member is required."""
    code = await tenant.make_code()
    missing = [({name: value for name, value in make_measurement().items() if name != absent}, f"/{absent}")
               for absent in make_measurement()]  # fmt: skip
    for body, pointer in [*((make_measurement(**changes), pointer) for changes, pointer in REFUSED), *missing]:
        with subtests.test(pointer=pointer):
            answer = await tenant.ask_to_certify(code["xr_id"], body)
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert pointer in [error["pointer"] for error in answer.json["errors"]]
    assert await rival.rows("SELECT FROM decode_certificates") == []


async def test_the_body_has_at_most_a_mebibyte(tenant: Tenant) -> None:
    code = await tenant.make_code()
    answer = await tenant.ask_to_certify(code["xr_id"], make_measurement(file_name="x" * 1024 * 1024))
    assert (answer.status, answer.code) == (413, "payload_too_large")


async def test_a_key_certifies_the_codes_of_its_project_alone(tenant: Tenant) -> None:
    """The scope is `codes:read`: who certifies changes nothing of a Code."""
    code = await tenant.make_code()
    reader = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    elsewhere = await make_second_project(tenant)
    other = await elsewhere.make_code()
    await reader.certify(code["xr_id"])
    assert (await reader.ask_to_certify(other["xr_id"], make_measurement())).code == "code_not_found"


async def test_everybody_who_has_the_id_may_read_it(api: Api, tenant: Tenant) -> None:
    """A credential is not read, so a wrong one is no reason to refuse."""
    certificate = await tenant.certify((await tenant.make_code())["xr_id"])
    path = f"/v1/decode-certificates/{certificate['certificate_id']}"
    for token in (None, "xak_wrong"):
        answer = await api.other(token=token, peer="203.0.113.7").get(path)
        assert (answer.status, answer.json) == (200, certificate)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["cache-control"] == "no-store"


async def test_an_unknown_certificate_is_not_found(api: Api, subtests: pytest.Subtests) -> None:
    for certificate_id in (UNKNOWN, "dcc_", "dct_" + "A" * 22, "%00"):
        with subtests.test(certificate_id=certificate_id):
            answer = await api.get(f"/v1/decode-certificates/{certificate_id}")
            assert (answer.status, answer.code) == (404, "decode_certificate_not_found")


async def test_readers_are_limited_with_a_counter_of_their_own(limited: Api) -> None:
    page, other = limited.other(token=None, peer="203.0.113.7"), limited.other(token=None, peer="203.0.113.8")
    for remaining in (2, 1, 0):
        answer = await page.get(f"/v1/decode-certificates/{UNKNOWN}")
        assert (answer.status, answer.headers["ratelimit"]) == (404, f'"decode-certificates";r={remaining};t=60')
        assert answer.headers["ratelimit-policy"] == '"decode-certificates";q=3;w=60'
    with capture_logs() as logged:
        refused = [await page.get(f"/v1/decode-certificates/{UNKNOWN}") for _ in range(2)]
    for answer in refused:
        assert (answer.status, answer.code) == (429, "rate_limited")
        assert answer.headers["retry-after"] == "60"
        assert answer.headers["ratelimit"] == '"decode-certificates";r=0;t=60'
    (line,) = [entry for entry in logged if entry["event"] == "public_requests_limited"]
    assert (line["limit"], line["for_s"]) == ("decode-certificates", 60)
    assert "203.0.113.7" not in str(logged)
    assert (await page.resolve("brd_" + "A" * 16)).status == 404
    assert (await other.get(f"/v1/decode-certificates/{UNKNOWN}")).status == 404


async def test_an_organisation_issues_at_most_so_many_in_an_hour(
    api: Api, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of those that fill the window leaves it after an hour; a refused request is not counted."""
    assert service.ISSUED_MAX == 600
    monkeypatch.setattr(service, "ISSUED_MAX", 2)
    api.clock.freeze()
    xr_id = (await tenant.make_code())["xr_id"]
    for _ in range(2):
        await tenant.certify(xr_id)
        api.clock.advance(seconds=600.25)
    refused = await tenant.ask_to_certify(xr_id, make_measurement())
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "2400")
    api.clock.advance(seconds=2399.5)
    await tenant.certify(xr_id)
    assert (await tenant.ask_to_certify(xr_id, make_measurement())).headers["retry-after"] == "601"
    api.clock.advance(hours=-1)  # A clock that is set back must not refuse everything until it has caught up.
    await tenant.certify(xr_id)


async def test_of_two_at_once_the_second_sees_the_first(
    api: Api, tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both wait for the lock; otherwise each would find room for one."""
    monkeypatch.setattr(service, "ISSUED_MAX", 1)
    api.clock.freeze()
    xr_id = (await tenant.make_code())["xr_id"]
    lock = "SELECT pg_advisory_xact_lock(8, hashtext(%s))"
    async with rival.holding(lock, tenant.organization_id):
        asking = [asyncio.create_task(tenant.ask_to_certify(xr_id, make_measurement())) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert sorted([answer.status for answer in await asyncio.gather(*asking)]) == [201, 429]


async def test_what_was_withdrawn_while_it_waited_is_refused(tenant: Tenant, rival: Rival) -> None:
    """A key that is revoked between the request and its lock signs nothing."""
    code, key = await tenant.make_code(), await tenant.make_key(scopes=["codes:read"])
    async with rival.committing("UPDATE api_keys SET revoked_at = now() WHERE id = %s", key["id"]):
        asking = await rival.while_waiting(tenant.with_key(key).ask_to_certify(code["xr_id"], make_measurement()))
    assert ((await asking).status, (await asking).code) == (401, "unauthenticated")
    assert await rival.rows("SELECT FROM decode_certificates") == []


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_it_goes_with_its_project_or_organisation(tenant: Tenant, rival: Rival, kind: str) -> None:
    """The document can still be verified by everybody who kept it. A certificate of another project stays."""
    kept = await make_second_project(tenant)
    stays = await kept.certify((await kept.make_code())["xr_id"])
    gone = [await tenant.certify((await tenant.make_code())["xr_id"]) for _ in range(2)]

    certificate = await SUBJECTS[kind](tenant).certificate()

    all_gone = kind == "organization"
    assert certificate["deleted"]["core"]["decode_certificates"] == (3 if all_gone else 2)
    assert certificate["remaining"]["core"]["decode_certificates"] == 0
    for each in gone:
        answer = await tenant.api.get(f"/v1/decode-certificates/{each['certificate_id']}")
        assert (answer.status, answer.code) == (404, "decode_certificate_not_found")
        await verify_certificate(tenant.api, each)
    answer = await tenant.api.get(f"/v1/decode-certificates/{stays['certificate_id']}")
    assert answer.status == (404 if all_gone else 200)
    assert len(await rival.rows("SELECT FROM decode_certificate_owners")) == (0 if all_gone else 1)
