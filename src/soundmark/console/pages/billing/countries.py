"""The countries in which something may be for sale, by their names in a language."""

import re
import unicodedata
from functools import cache
from typing import Final

from babel import Locale

_COUNTRY: Final = re.compile(r"[A-Z]{2}")
_NO_COUNTRIES: Final = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})


@cache
def list_countries(language_code: str) -> list[tuple[str, str]]:
    """Return the code (ISO 3166-1) and the name of each country, in the order of the names."""
    names = Locale(language_code).territories
    countries = [(code, name) for code, name in names.items() if _COUNTRY.fullmatch(code) and code not in _NO_COUNTRIES]
    return sorted(countries, key=lambda country: unicodedata.normalize("NFD", country[1]).casefold())
