"""Core's sentences about single fields, which it writes for developers, in a person's own words."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from soundmark_sdk.client.failures import RefusedField

from soundmark.console.language import Language

# The first that fits. What fits nothing is refused without a reason: Core's sentence is English, and for developers.
_PHRASES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), key)
    for pattern, key in (
        (r"String should have at least 1 character|Field required|must be present and a string", "refusals.empty"),
        (r"String should have at most (?P<limit>\d+) characters?", "refusals.too_long"),
        (r"must have at most (?P<limit>\d+) characters", "refusals.too_long"),
        (r"must be a string of at most (?P<limit>\d+) characters, an exact number, .*", "refusals.no_setting"),
        (r"must be at most (?P<limit>\d+) for a demo", "refusals.too_large_for_a_demo"),
        (r"Input should be greater than or equal to (?P<limit>-?\d+)", "refusals.too_small"),
        (r"Input should be less than or equal to (?P<limit>-?\d+)", "refusals.too_large"),
        (r"Input should be a valid (integer|number).*|must be written in decimal digits", "refusals.no_number"),
        (r"Input should be a valid boolean.*", "refusals.no_boolean"),
        (r"must have at most two decimals", "refusals.too_many_decimals"),
        (r"List should have at least 1 item.*", "refusals.nothing_chosen"),
        (r"List should have at most (?P<limit>\d+) items?.*", "refusals.too_many_chosen"),
        (r"must be a DNS name in A-label form .*", "refusals.no_dns_name"),
        (r"must be an https address of a host that this project allows", "refusals.leads_elsewhere"),
        (r"must not contain a host twice", "refusals.host_twice"),
        (r"must not name an? (event|scope|type) twice|must be given once", "refusals.repeated"),
        (r"Input should be a valid dictionary.*", "refusals.no_object"),
        (r"must have at most \d+ members|must have fewer values and levels", "refusals.too_many_members"),
        (r"Input should be '.*|must be a known event type|must be 3, 4 or 5", "refusals.not_offered"),
        (
            r"String should match pattern '\^\[\^\\x00-.*|must have no control characters, such as a line break",
            "refusals.invisible_characters",
        ),
        (r"String should match pattern .*", "refusals.malformed"),
        (r"must be in the future", "refusals.in_the_past"),
        (r"must be an RFC 3339 date-time .*|must be a date-time that exists, with an offset", "forms.not_a_time"),
        (
            r"must be (after|before) (starts_at|ends_at|from)|must precede (the end of the period|created_to)",
            "refusals.not_in_order",
        ),
        (r"must be an? (deliverable )?e-mail address", "refusals.no_email_address"),
        (r"must be an e-mail address in ASCII", "refusals.no_ascii_email_address"),
        (r"must be an https URL, or an http URL on a loopback address", "refusals.no_https_url_but_here"),
        (r"must be an https URL.*", "refusals.no_https_url"),
        (r"must be an http or https URL", "refusals.no_http_url"),
        (r"must be a URL without credentials, query or fragment", "refusals.no_plain_url"),
        (r"must not (have an IP address|point to this machine).*", "refusals.private_address"),
        (
            r"must be a host name or an IP address|must have (a host name or an|its) IP address.*",
            "refusals.no_host",
        ),
        (r"must have a port from 1 to (?P<limit>\d+)", "refusals.no_port"),
        (r"must stay (?P<value>.*)", "refusals.fixed"),
        (r"must be true: this plan is always active", "refusals.always_active"),
        (r"must name another plan: this one is granted by contract only", "refusals.by_contract_only"),
        (r"must name a plan of Audience", "refusals.no_audience_plan"),
        (r"must name a plan that is active", "refusals.inactive_plan"),
        (r"must name an active, recurring price at the card provider", "refusals.no_price"),
        (r"must be one secret, or two separated by a comma", "refusals.too_many_secrets"),
        (r"must be an existing third party of the accounting system", "refusals.unknown_customer"),
        (
            r"must be a number that a double can hold exactly|contains a .*|is larger than .*|is nested too deeply.*",
            "problems.intent_not_canonical.detail",
        ),
        (r"must be the next_cursor of the previous page", "problems.invalid_cursor.detail"),
    )
)
_INDEX: Final = re.compile(r"(/\d+)+\Z")


def explain_fields(errors: Iterable[RefusedField], language: Language) -> Mapping[str, str]:
    """Return what is wrong with each field, by its name: the last part of the pointer, without an index."""
    explained: dict[str, str] = {}
    for error in errors:
        name = _INDEX.sub("", error.pointer).rpartition("/")[2]
        explained.setdefault(name, explain_refusal(error.message, language))
    return explained


def explain_entries(errors: Iterable[RefusedField], name: str, language: Language) -> Mapping[int, str]:
    """Return what is wrong with single entries of the list `name`, by their index."""
    found = ((re.fullmatch(rf"/{re.escape(name)}/(\d+)", error.pointer), error.message) for error in errors)
    return {int(match[1]): explain_refusal(message, language) for match, message in found if match is not None}


def explain_refusal(message: str, language: Language) -> str:
    """Return a sentence of Core's in the person's language."""
    for pattern, key in _PHRASES:
        found = pattern.fullmatch(message)
        if found is not None:
            return language.say(key, **found.groupdict())
    return language.say("refusals.unknown")
