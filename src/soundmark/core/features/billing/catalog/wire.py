"""The request shapes of the catalogue. The response shapes are in `views`."""

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    StringConstraints,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.config import JsonDict

from soundmark.core.domain.billing.catalog import OfferTerms, PlanTerms, Product, ProviderName
from soundmark.core.edge.ids import UnboundedId
from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.wire.shape import Name, Wire

_MONTHS_MAX: Final = 36  # API v1, "Limits".

_CODES_PLAN: Final[JsonDict] = {
    "name": "Codes Studio",
    "product": "codes",
    "monthly_code_quota": 5000,
    "active": True,
}
_AUDIENCE_PLAN: Final[JsonDict] = {
    "name": "Audience Plus",
    "product": "audience",
    "monthly_event_quota": 50_000,
    "active": True,
}
_CARD_OFFER: Final[JsonDict] = {
    "plan_id": "plan_codes_starter",
    "provider": "card",
    "active": True,
    "price_reference": "price_1PexampleOfAPrice",
}
_LOCAL_OFFER: Final[JsonDict] = {
    "plan_id": "plan_codes_starter",
    "provider": "local",
    "active": True,
    "country": "TN",
    "currency": "TND",
    "amount_minor": 149_000,
    "entitlement_months": 1,
}

MonthlyQuota = Annotated[int, Field(ge=0, le=INTEGER_MAX, description="The quota for a calendar month (UTC).")]
Active = Annotated[
    bool,
    Field(description="Whether it is for sale. Organisations that already have it keep it when it becomes inactive."),
]
PriceReference = Annotated[
    str,
    StringConstraints(pattern=r"^price_[A-Za-z0-9_]{1,249}$"),
    Field(
        repr=False,
        description="The id of a recurring price at the card provider. Core reads its amount and currency from "
        "there, for display.",
    ),
]
AmountMinor = Annotated[int, Field(ge=1, le=INTEGER_MAX, description="The price in millimes.")]
EntitlementMonths = Annotated[
    int, Field(ge=1, le=_MONTHS_MAX, description="The number of calendar months of entitlement for one payment.")
]


class PutProvider(Wire):
    """Whether the offers of a payment provider are for sale."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": True}]})

    enabled: bool


class PutCodesPlan(Wire):
    """A plan of Codes."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CODES_PLAN]})

    name: Name
    product: Literal["codes"]
    monthly_code_quota: MonthlyQuota
    active: Active


class PutAudiencePlan(Wire):
    """A plan of Audience."""

    model_config = ConfigDict(json_schema_extra={"examples": [_AUDIENCE_PLAN]})

    name: Name
    product: Literal["audience"]
    monthly_event_quota: MonthlyQuota
    active: Active


class PutCardOffer(Wire):
    """A plan for sale through the card provider."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CARD_OFFER]})

    plan_id: UnboundedId
    provider: Literal["card"]
    active: Active
    price_reference: PriceReference


class PutLocalOffer(Wire):
    """A plan for sale through the local provider."""

    model_config = ConfigDict(json_schema_extra={"examples": [_LOCAL_OFFER]})

    plan_id: UnboundedId
    provider: Literal["local"]
    active: Active
    country: Literal["TN"]
    currency: Literal["TND"]
    amount_minor: AmountMinor
    entitlement_months: EntitlementMonths


class _PlanKind(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    product: Product


class _OfferKind(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    provider: ProviderName


_PLAN_SHAPES: Final[dict[Product, type[Wire]]] = {"codes": PutCodesPlan, "audience": PutAudiencePlan}
_OFFER_SHAPES: Final[dict[ProviderName, type[Wire]]] = {"card": PutCardOffer, "local": PutLocalOffer}


# The library would put the kind into the place of each error, where a JSON pointer names members only.
def _validate_plan(value: Any, _: ValidatorFunctionWrapHandler) -> Any:
    return _PLAN_SHAPES[_PlanKind.model_validate(value).product].model_validate(value)


def _validate_offer(value: Any, _: ValidatorFunctionWrapHandler) -> Any:
    return _OFFER_SHAPES[_OfferKind.model_validate(value).provider].model_validate(value)


_AnyPlan = Annotated[PutCodesPlan | PutAudiencePlan, Discriminator("product"), WrapValidator(_validate_plan)]
_AnyOffer = Annotated[PutCardOffer | PutLocalOffer, Discriminator("provider"), WrapValidator(_validate_offer)]


class PutPlan(RootModel[_AnyPlan]):
    """A plan, with the quota of its product."""

    model_config = ConfigDict(frozen=True, strict=True, json_schema_extra={"examples": [_CODES_PLAN]})


class PutOffer(RootModel[_AnyOffer]):
    """A plan for sale, with the price of its provider."""

    model_config = ConfigDict(frozen=True, strict=True, json_schema_extra={"examples": [_CARD_OFFER]})


def plan_terms(body: PutPlan) -> PlanTerms:
    """Return the terms that a request sets for a plan."""
    plan = body.root
    quota = plan.monthly_code_quota if isinstance(plan, PutCodesPlan) else plan.monthly_event_quota
    return PlanTerms(name=plan.name, product=plan.product, monthly_quota=quota, active=plan.active)


def offer_terms(body: PutOffer) -> OfferTerms:
    """Return the terms that a request sets for an offer."""
    return OfferTerms(**dict(body.root))
