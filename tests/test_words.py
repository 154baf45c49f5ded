"""One word for one thing in all that people read: documents, API, command line, SDKs and console."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
READ: Final = (
    *("*.md", "docs/*.md", "docs/guides/*.md", "docs/operating/*.md", "docs/vectors/*.json", "sdk/*/README.md"),
    *("src/soundmark/cli/**/*.py", "src/soundmark/core/features/**/routes.py", "src/soundmark/settings/*.py"),
    *("src/soundmark/console/messages/*/*.json", "sdk/python/src/**/*.py", "sdk/js/src/**/*.js"),
    *("tests/golden/openapi.json", "examples/**/*.py", "examples/**/*.md"),
)
_OWNED: Final = r"(?:the|a|an|its|their|your|this|that) (?:[\w'’-]+ ){0,2}"
# By the word that we use, the ones that we do not. A command or a route keeps the name that the contract gives it.
REJECTED: Final = {
    "API key": r"server(?: API)?[ -]keys?",
    "rotate": rf"(?:roll(?:s|ing)?|replac(?:es?|ing)) {_OWNED}(?:secrets?|credentials?|(?:signing|master) key)"
    r"|(?:secret|credential|key)s? (?:is|was|are|were|has been) (?:being )?(?:rolled|replaced)",
    "clé d’API": r"clés? (?:de |du )?serveur|clés? API",
    "remplacer": r"rotation (?:de |du |des |d’)(?:l[ae] )?(?:clé|secret)s?|renouvel\w+ (?:le|un|son) secret",
}
EXAMPLES: Final = {
    "API key": ["A server key cannot do this.", "Server API keys"],
    "rotate": ["Replace an integration's HMAC secret.", "while the secret is rolled", "Replacing the signing key"],
    "clé d’API": ["la clé du serveur", "une clé API"],
    "remplacer": ["une rotation de clés", "Renouveler le secret"],
}


@pytest.mark.parametrize("word", REJECTED)
def test_one_thing_has_one_word(word: str) -> None:
    pattern = re.compile(rf"\b(?:{REJECTED[word]})\b", re.IGNORECASE)
    assert [each for each in EXAMPLES[word] if not pattern.search(each)] == [], "it finds what it is about"
    paths = [path for each in READ for path in ROOT.glob(each)]
    assert len(paths) > 150
    found = {
        f"{path.relative_to(ROOT)}: {match}"
        for path in paths
        for match in pattern.findall(" ".join(path.read_text("utf-8").split()))
    }
    assert found == set()
