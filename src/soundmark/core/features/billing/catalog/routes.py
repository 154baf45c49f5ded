"""The routes of the catalogue."""

from typing import Annotated, cast, get_args

from fastapi import Depends, Path

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx
from soundmark.core.features.billing.catalog import example, service
from soundmark.core.features.billing.catalog.views import (
    CatalogView,
    OfferView,
    PlanView,
    ProviderView,
    catalog_view,
    offer_view,
    plan_view,
    provider_view,
)
from soundmark.core.features.billing.catalog.wire import PutOffer, PutPlan, PutProvider, offer_terms, plan_terms
from soundmark.core.problems import PlanNotFound
from soundmark.kit.http.responses.problems import NotFound

operations = Operations("Billing catalogue")

PlanPath = Annotated[
    str,
    Path(
        pattern=r"^plan_[A-Za-z0-9_-]{1,64}$",
        description="The plan's id, which you choose.",
        examples=["plan_codes_studio"],
    ),
]
OfferPath = Annotated[
    str,
    Path(
        pattern=r"^offer_[A-Za-z0-9_-]{1,64}$",
        description="The offer's id, which you choose.",
        examples=["offer_studio_month"],
    ),
]


async def _find_provider(
    provider: Annotated[str, Path(max_length=160, description="`card` or `local` (else 404).", examples=["card"])],
) -> ProviderName:
    if provider not in get_args(ProviderName):
        raise NotFound("No payment provider has this name: they are card and local.")
    return cast("ProviderName", provider)


@operations.add(
    "GET",
    "/v1/billing/admin/catalog",
    Operation("billing.administer", tenant="none"),
    example=catalog_view(example.CATALOG),
)
async def get_catalog(ctx: Ctx) -> CatalogView:
    """Return all providers, plans, offers, contracts for measuring and accounting customers."""
    return catalog_view(await service.read_catalog(ctx))


@operations.add(
    "PUT",
    "/v1/billing/admin/providers/{provider}",
    Operation("billing.administer", tenant="none", problems=(NotFound,)),
    example=provider_view(example.CARD),
)
async def put_payment_provider(
    ctx: Ctx, user: CallingUser, provider: Annotated[ProviderName, Depends(_find_provider)], body: PutProvider
) -> ProviderView:
    """Put the offers of a payment provider on sale, or withdraw them.

    Checkouts return 503 until the provider's credentials are in the platform settings. Card offers are not for sale
    until the card provider has confirmed their prices.
    """
    return provider_view(await service.put_provider(ctx, user, provider, enabled=body.enabled))


@operations.add(
    "PUT",
    "/v1/billing/admin/plans/{plan_id}",
    Operation("billing.administer", tenant="none"),
    example=plan_view(example.PLAN),
)
async def put_plan(ctx: Ctx, user: CallingUser, plan_id: PlanPath, body: PutPlan) -> PlanView:
    """Create or change a plan. Its product cannot be changed, and the two initial plans cannot be made inactive (422).

    A new quota applies to every organisation that has the plan.
    """
    return plan_view(await service.put_plan(ctx, user, plan_id, plan_terms(body)))


@operations.add(
    "PUT",
    "/v1/billing/admin/offers/{offer_id}",
    Operation("billing.administer", tenant="none", problems=(PlanNotFound,)),
    example=offer_view(example.CARD_OFFER),
)
async def put_offer(ctx: Ctx, user: CallingUser, offer_id: OfferPath, body: PutOffer) -> OfferView:
    """Create or change an offer. Its plan and its provider cannot be changed (422).

    The plan of contracts, `plan_audience_contract`, is not for sale (422). Pending checkouts keep the price at which
    they were created.

    Core looks up the price of a card offer at the card provider. An active offer needs an active, recurring price (else
    422). If the provider does not answer, a price that is new to the offer is `unknown`, and the offer is not for sale
    until a job has looked it up.
    """
    return offer_view(await service.put_offer(ctx, user, offer_id, offer_terms(body)))
