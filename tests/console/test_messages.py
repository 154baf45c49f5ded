"""The messages of all languages."""

import re
from pathlib import Path

import pytest
from babel import Locale

import soundmark.console
from soundmark.console.language import LOCALES, choose_language, get_language, read_messages
from soundmark.console.visit import get_templates

FOLDER = Path(soundmark.console.__file__).parent
_PLURAL = re.compile(r"\.(zero|one|two|few|many|other)$")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _stems(messages: dict[str, str]) -> set[str]:
    return {_PLURAL.sub("", key) for key in messages}


def test_every_language_has_the_same_messages_with_the_same_values() -> None:
    english, french = read_messages("en"), read_messages("fr")

    assert _stems(english) == _stems(french)
    for key, text in english.items():
        if key in french:
            assert set(_PLACEHOLDER.findall(text)) == set(_PLACEHOLDER.findall(french[key])), key


@pytest.mark.parametrize("code", list(LOCALES))
def test_a_message_with_a_count_has_every_form_of_its_language(code: str) -> None:
    messages = read_messages(code)
    forms = Locale(code).plural_form.tags | {"other"}
    plurals = {_PLURAL.sub("", key) for key in messages if key.endswith(".other")}

    assert plurals, "there are messages with a count"
    for stem in plurals:
        assert {form for form in forms if f"{stem}.{form}" not in messages} == set(), stem


def test_every_message_is_used() -> None:
    sources = [*FOLDER.rglob("*.py"), *FOLDER.rglob("*.html"), *FOLDER.rglob("*.js")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    # Keys that a template puts together end in a value of the API: `"roles." ~ each.role`.
    prefixes = set(re.findall(r'["\']([\w.]+\.)["\'] ~', source)) | set(re.findall(r'f"([\w.]+\.)\{', source))

    unused = [
        stem
        for stem in sorted(_stems(read_messages("en")))
        if f'"{stem}"' not in source
        and f"'{stem}'" not in source
        and not any(stem.startswith(prefix) for prefix in prefixes)
    ]
    assert unused == []


def test_the_language_is_the_chosen_one_or_the_first_that_the_browser_asks_for() -> None:
    assert choose_language("fr", "en").code == "fr"
    assert choose_language(None, "fr-CA,fr;q=0.9,en;q=0.8").code == "fr"
    assert choose_language(None, "de,it").code == "en"
    assert choose_language("xx", "").code == "en"


def test_amounts_have_the_digits_of_their_currency() -> None:
    assert get_language("en").money(12_345, "TND") == "TND\N{NO-BREAK SPACE}12.345"
    assert get_language("en").money(1_234, "EUR") == "€12.34"
    assert "12,34" in get_language("fr").money(1_234, "EUR")


def test_french_has_one_word_for_each_term() -> None:
    english, french = read_messages("en"), read_messages("fr")
    terms = {
        r"\bAPI keys?\b": "clés? d’API",
        r"\bcampaigns?\b": "campagne",
        r"\bdeliver(y|ies)\b": r"\benvois?\b",
        r"\b(e-)?mails?\b(?!\.\w)": r"\be-mails?\b",
        r"\bendpoints?\b": "points? de réception",
        r"\bintegrations?\b": "intégration",
        r"\boffline packs?\b": r"\bpacks? hors ligne\b",
        r"\bpeople who run this service\b": "personnes qui exploitent ce service",
        r"\bsubscriptions?\b": "abonnement",
    }
    differing = {
        key: french[key]
        for term, word in terms.items()
        for key in english.keys() & french.keys()
        if re.search(term, english[key], re.IGNORECASE) and not re.search(word, french[key], re.IGNORECASE)
    }
    assert differing == {}


@pytest.mark.parametrize("code", list(LOCALES))
def test_a_template_writes_each_message_as_a_page_would_look_it_up(code: str) -> None:
    """Messages without values are written into the templates before a page asks, and are escaped all the same."""
    language = get_language(code)
    plain = [key for key, text in read_messages(code).items() if not _PLACEHOLDER.search(text)]
    templates = get_templates(language)
    written = templates.from_string("\n".join(f'{{{{ t("{key}") }}}}' for key in plain)).render(t=None)
    looked_up = templates.from_string("{% for key in keys %}{{ t(key) }}\n{% endfor %}").render(keys=plain)
    assert written == looked_up.rstrip("\n")


@pytest.mark.parametrize("code", list(LOCALES))
def test_a_number_beside_a_plural_has_a_form_for_one(code: str) -> None:
    """A message without such forms puts its number after a colon, or beside another one: 1 of 3 Codes."""
    after_number = re.compile(r"[\[{](count|current|days|events|issued|number|reach)[\]}] (?!des\b)\w+s\b")
    more_than_one = {"codes.recovery.batch"}
    plain = {key: text for key, text in read_messages(code).items() if not _PLURAL.search(key)}
    assert {key: text for key, text in plain.items() if after_number.search(text) and key not in more_than_one} == {}
