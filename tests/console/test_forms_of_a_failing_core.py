"""Every form of every page, sent while Core refuses: what was typed comes back, and no page fails over it."""

from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.console.page_paths import list_paths, make_one_of_each
from support.tenancy.tenant import Tenant

# Pages whose parameters name nothing of a tenant, and forms that only an address has.
MORE = (
    *(f"/platform/catalog/{kind}" for kind in ("plan", "plan?product=audience", "offer?provider=local", "contract")),
    *("/platform/systems/smtp", "/platform/catalog/customer"),
)
TYPED = {
    "number": "3",
    "email": "ada@example.org",
    "url": "https://example.org/x",
    "datetime-local": "2027-05-01T12:00",
}


def type_into(form: Any) -> dict[str, Any]:
    """Return what a form sends when somebody typed into each of its fields and chose the last of each list."""
    sent = read_values(form)
    for each in form.iter():
        name, kind = each.get("name"), each.get("type", "text")
        if each.tag == "select":
            sent[name] = [each.findall("option")[-1].get("value")]
        elif name and each.tag in {"input", "textarea"} and kind not in {"checkbox", "hidden", "radio"}:
            sent[name] = [TYPED.get(kind, f"typed-into-{name}")]
    return sent


def read_values(form: Any) -> dict[str, list[str]]:
    """Return the values of a form by their names, as a browser sends them."""
    values: dict[str, list[str]] = {}
    for each in form.iter():
        name = each.get("name") or ""
        if each.tag == "select":
            chosen = [option.get("value") for option in each.iter("option") if "selected" in option.attrib]
            values[name] = chosen[-1:]
        elif each.tag == "textarea":
            values[name] = [(each.text or "").removeprefix("\n")]
        elif (
            each.tag == "input" and name and (each.get("type") not in {"checkbox", "radio"} or "checked" in each.attrib)
        ):
            values.setdefault(name, []).append(each.get("value") or "")
    return values


def list_forms(page: PageAnswer) -> list[Any]:
    """Return the forms of a page that change something."""
    is_page = page.status == 200 and "text/html" in page.headers["content-type"]
    return [each for each in page.find_all(".//main//form") if each.get("method") == "post"] if is_page else []


@pytest.mark.parametrize(
    ("calls", "refused_min"),
    [(["GET /v1/organizations"], 30), ([f"{method} *" for method in ("POST", "PATCH", "PUT", "DELETE")], 40)],
    ids=["nobody can name the tenant", "nothing can be changed"],
)
async def test_what_was_typed_into_any_form_comes_back(
    operator: ConsoleClient, tenant: Tenant, subtests: pytest.Subtests, *, calls: list[str], refused_min: int
) -> None:
    """By the page of the form, or by the page of the failure where that page cannot be shown."""
    ids = await make_one_of_each(operator, tenant)
    leave = f"/organizations/{tenant.organization_id}/members/remove?subject_id=operator"
    forms = {
        form.get("action") or path: type_into(form)
        for path in (*list_paths(ids), leave, *MORE)
        if path != "/design"
        for form in list_forms(await operator.get(path))
    }
    for call in calls:
        operator.core.refuse(call, 429, "rate_limited", retry_after_s=7)
    refused_count = 0
    for path, fields in forms.items():
        operator.console.directory.forget("operator")
        page = await operator.submit(path, fields)
        if page.status in {200, 303}:
            continue  # The form needed no call that is refused.
        refused_count += page.status == 429
        typed = {value for values in fields.values() for value in values}
        with subtests.test(path=path):
            assert page.trouble not in {None, "defect"}
            kept = [
                {value for values in read_values(form).values() for value in values}
                for form in page.find_all(".//main//form")
            ]
            assert any(typed <= each for each in kept), page.text
    assert refused_count >= refused_min
