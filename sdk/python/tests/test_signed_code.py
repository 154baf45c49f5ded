from copy import deepcopy
from datetime import timedelta
from types import MappingProxyType

import pytest
from soundmark_sdk import KeySet, ReceiverFailure, read_key_set, verify_signed_code
from soundmark_sdk.failures import KeyUnknown

from .issuer import INTENT, NOW, TOKEN, UNMEASURED, Issuer, Json, digest


@pytest.fixture
def keys(issuer: Issuer) -> KeySet:
    """The published keys."""
    return read_key_set(issuer.key_set())


@pytest.mark.parametrize("changes", [{}, {"campaign_id": None, "policy": UNMEASURED}], ids=str)
def test_a_genuine_code_is_read(issuer: Issuer, keys: KeySet, changes: Json) -> None:
    signed = deepcopy(issuer.signed_code(**changes))
    code = verify_signed_code(MappingProxyType(signed), keys, token=TOKEN, now=NOW)
    signed["intent"]["resource"].clear()  # Who changes the object does not change what was verified.
    assert (code.issuer, code.intent.resource) == ("Ma boutique", INTENT["resource"])
    assert (code.issued_at, code.expires_at) == (NOW, NOW + timedelta(days=1))
    assert code.token_digest == digest(TOKEN)


def test_every_member_is_required_and_signed(issuer: Issuer, keys: KeySet, subtests: pytest.Subtests) -> None:
    for name in [
        *("version", "xr_id", "organization_id", "project_id", "campaign_id", "issuer", "issued_at", "expires_at"),
        *("intent", "policy", "token_digest", "key_id", "signature"),
    ]:
        with subtests.test(name=name):
            genuine, other = issuer.signed_code(), issuer.signed_code(**_OTHER)
            assert other[name] != genuine[name]
            for altered in ({**genuine, name: other[name]}, {k: v for k, v in genuine.items() if k != name}):
                with pytest.raises(ReceiverFailure) as failure:
                    verify_signed_code(altered, keys)
                assert failure.value.reason == "unverifiable"


_OTHER: Json = {
    "version": 2,
    "xr_id": "xr_AAAAAAAAAAAAAAAAAAAAAA",
    "organization_id": "org_AAAAAAAAAAAAAAAAAAAAAA",
    "project_id": "prj_AAAAAAAAAAAAAAAAAAAAAA",
    "campaign_id": None,
    "issuer": "Ma  boutique",
    "issued_at": "2026-11-20T10:00:30.499Z",
    "expires_at": "2027-11-20T10:00:30.499Z",
    "intent": {**INTENT, "action": "buy"},
    "policy": UNMEASURED,
    "token_digest": digest("brd_0000000000000000"),
    "key_id": "key-2026-12",
}


def test_a_signed_object_of_another_shape_is_refused(issuer: Issuer, keys: KeySet, subtests: pytest.Subtests) -> None:
    for changes in [
        {"version": 2},
        {"version": True},
        {"xr_id": "xr_short"},
        {"organization_id": "org_"},
        {"project_id": "org_0123456789abcdefABCDEF"},
        {"campaign_id": ""},
        {"issuer": ""},
        {"issuer": "i" * 161},
        {"expires_at": "2026-11-20T10:00:30.500Z"},
        {"intent": {"type": "link", "action": "open"}},
        {"policy": {"audience_measurement": False}},
        {"token_digest": "short"},
        {"more": 1},
    ]:
        with subtests.test(changes=changes):
            with pytest.raises(ReceiverFailure) as failure:
                verify_signed_code(issuer.signed_code(**changes), keys)
            assert failure.value.reason == "unverifiable"


def test_a_code_of_another_token_is_refused(issuer: Issuer, keys: KeySet) -> None:
    with pytest.raises(ReceiverFailure):
        verify_signed_code(issuer.signed_code(), keys, token="brd_0000000000000000")


@pytest.mark.parametrize("offset_s", [-120.001, 86_400 + 120])
def test_a_code_outside_its_lifetime_is_authentic_but_not_current(
    issuer: Issuer, keys: KeySet, offset_s: float
) -> None:
    """An expired Code stays readable at the service, so its signature must stay valid."""
    assert verify_signed_code(issuer.signed_code(), keys).issuer == "Ma boutique"
    with pytest.raises(ReceiverFailure):
        verify_signed_code(issuer.signed_code(), keys, now=NOW + timedelta(seconds=offset_s))


def test_an_unknown_key_has_its_own_failure(issuer: Issuer) -> None:
    with pytest.raises(KeyUnknown):
        verify_signed_code(issuer.signed_code(), read_key_set(Issuer(bytes(32), "other").key_set()))


def test_a_code_with_values_that_json_cannot_express_is_refused(issuer: Issuer, keys: KeySet) -> None:
    with pytest.raises(ReceiverFailure):
        verify_signed_code({**issuer.signed_code(), "intent": {1: 2}}, keys)
