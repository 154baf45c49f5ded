"""Core's sentences about single fields, which it writes for developers, in a person's own words."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from soundmark_sdk.client.failures import RefusedField

from soundmark.console.language import Language

# The first that fits. What fits nothing is shown as Core wrote it.
_PHRASES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), key)
    for pattern, key in (
        (r"String should have at least 1 character|Field required", "refusals.empty"),
        (r"String should have at most (?P<limit>\d+) characters?", "refusals.too_long"),
        (r"Input should be greater than or equal to (?P<limit>-?\d+)", "refusals.too_small"),
        (r"Input should be less than or equal to (?P<limit>-?\d+)", "refusals.too_large"),
        (r"List should have at least 1 item.*", "refusals.nothing_chosen"),
        (r"Input should be a valid dictionary", "refusals.no_object"),
        (r"Input should be '.*", "refusals.not_offered"),
        (r"String should match pattern '\^\[\^\\x00-.*", "refusals.invisible_characters"),
        (r"String should match pattern .*", "refusals.malformed"),
        (r"must be in the future", "refusals.in_the_past"),
        (
            r"must be (after|before) (starts_at|ends_at|from)|must precede (created_to|the end of the period)",
            "refusals.not_in_order",
        ),
        (r"must be a deliverable e-mail address", "refusals.no_email_address"),
        (r"must be an https URL.*", "refusals.no_https_url"),
        (r"must not have an IP address.*", "refusals.private_address"),
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


def explain_refusal(message: str, language: Language) -> str:
    """Return a sentence of Core's in the person's language."""
    for pattern, key in _PHRASES:
        found = pattern.fullmatch(message)
        if found is not None:
            return language.say(key, **found.groupdict())
    return message
