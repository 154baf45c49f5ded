"""The event that a publisher's backend reports: one measurement, with nothing in it that identifies a person."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from soundmark.wire.resolution import MeasurementProof
from soundmark.wire.shape import IntegrationId, Timestamp, Wire, XrId

# The officially assigned ISO 3166-1 alpha-2 codes, without reserved and user-assigned ones.
_CODES: Final = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC
    CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD
    GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH
    KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW
    MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC
    SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY
    UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
COUNTRIES: Final = frozenset(_CODES.split())

EVENT_MAX_BYTES: Final = 16 * 1024  # Contract, section 1.
SIGNATURE_HEADER: Final = "X-Svc-Signature"

ReceiverClass = Literal["phone", "tablet", "computer", "television", "speaker", "wearable", "vehicle", "kiosk", "other"]


def _check_country(text: str) -> str:
    if text not in COUNTRIES:
        raise ValueError("must be an ISO 3166-1 alpha-2 code, such as TN")
    return text


EventId = Annotated[str, StringConstraints(pattern=r"^evt_[A-Za-z0-9_-]{22}$")]
MeasurementToken = Annotated[str, StringConstraints(pattern=r"^mt_[A-Za-z0-9_-]{43}$")]
Country = Annotated[str, AfterValidator(_check_country), WithJsonSchema({"type": "string", "enum": sorted(COUNTRIES)})]


def _without_default(schema: dict[str, Any]) -> None:
    schema["properties"]["country"].pop("default")


class AudienceEvent(Wire):
    """One consented measurement. `X-Svc-Signature` carries the HMAC-SHA-256 of its exact bytes.

    No member can hold a UUID, an address, an account, a device id or a place.
    """

    model_config = ConfigDict(json_schema_extra=_without_default)

    event_id: Annotated[EventId, Field(description="Generated once for each measurement; the same in every retry.")]
    integration_id: IntegrationId
    xr_id: XrId
    occurred_at: Timestamp
    receiver_class: ReceiverClass
    measurement_token: Annotated[
        MeasurementToken,
        Field(description="Rotates, so that nobody can be recognised on another day or by another integration."),
    ]
    country: Annotated[Country | None, Field(description="ISO 3166-1 alpha-2; null or absent if unknown.")] = None
    proof: Annotated[MeasurementProof, Field(description="The `measurement_proof` of the resolution.")]


class EventAnswer(Wire):
    """The result of an event, returned only after the event is stored."""

    event_id: EventId
    status: Literal["recorded", "duplicate"]
