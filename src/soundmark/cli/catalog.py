"""`soundmark platform catalog`: what is for sale, and what operators have granted."""

from collections.abc import Iterable, Iterator
from typing import Any

import typer

from soundmark.cli.api import show_json, show_table
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import AsJson
from soundmark.core.features.billing.catalog.service import read_catalog
from soundmark.core.features.billing.catalog.views import (
    AudiencePlanView,
    CardOfferView,
    CatalogView,
    CodesPlanView,
    LocalOfferView,
    catalog_view,
)
from soundmark.settings import CoreDatabaseSettings


def catalog(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print all providers, plans, offers, contracts for measuring and accounting customers."""
    view = catalog_view(run_on_core(read_settings(CoreDatabaseSettings, data_dir), "platform", read_catalog))
    if as_json:
        show_json(view.model_dump(mode="json"))
        return
    for title, headings, rows in _tables(view):
        typer.echo(title)
        if rows:
            show_table(headings, rows)
        else:
            typer.echo("none")


def _tables(view: CatalogView) -> Iterator[tuple[str, Iterable[str], list[tuple[Any, ...]]]]:
    """Yield each list with its title, headings and rows."""
    yield (
        "Payment providers",
        ("Provider", "Enabled", "Updated"),
        [(provider.provider, provider.enabled, provider.updated_at) for provider in view.providers],
    )
    yield (
        "Plans",
        ("Plan", "Name", "Product", "A month", "Active", "Updated"),
        [_plan_row(plan.root) for plan in view.plans],
    )
    yield (
        "Offers",
        ("Offer", "Plan", "Provider", "Price", "Months", "Active", "Updated"),
        [_offer_row(offer.root) for offer in view.offers],
    )
    yield (
        "Contracts for measuring",
        ("Organisation", "Plan", "Reference", "Status", "Ends", "Updated"),
        [
            (each.organization_id, each.plan_id, each.contract_reference, each.status, each.period_end, each.updated_at)
            for each in view.audience_contracts
        ],
    )
    yield (
        "Customers of the accounting system",
        ("Organisation", "Name", "Third party", "Updated"),
        [
            (each.organization_id, each.organization_name, each.thirdparty_id, each.updated_at)
            for each in view.accounting_customers
        ],
    )


def _plan_row(plan: CodesPlanView | AudiencePlanView) -> tuple[Any, ...]:
    quota = plan.monthly_code_quota if isinstance(plan, CodesPlanView) else plan.monthly_event_quota
    return (plan.plan_id, plan.name, plan.product, quota, plan.active, plan.updated_at)


def _offer_row(offer: CardOfferView | LocalOfferView) -> tuple[Any, ...]:
    if isinstance(offer, CardOfferView):
        price, months = f"{offer.price_reference} ({offer.price_status})", None
    else:
        price, months = f"{offer.amount_minor} millimes", offer.entitlement_months
    return (offer.offer_id, offer.plan_id, offer.provider, price, months, offer.active, offer.updated_at)
