"""Nothing that was written by somebody else is run as code, by a shell, as a template or as a pattern."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PYTHON: Final = sorted([*ROOT.glob("src/soundmark/**/*.py"), *ROOT.glob("sdk/python/src/**/*.py")])
BROWSER: Final = sorted([*ROOT.glob("src/soundmark/console/static/js/**/*.js"), *ROOT.glob("sdk/js/src/**/*.js")])
TEMPLATES: Final = sorted(ROOT.glob("src/soundmark/**/*.html"))
RUN: Final = {"eval", "exec", "compile", "__import__", "system", "popen", "getoutput", "getstatusoutput"}
SHELLS: Final = {"create_subprocess_shell", "from_string"}
# Formats whose readers run code or fetch files; the standard library calls the XML ones vulnerable itself.
UNSAFE_FORMATS: Final = {"pickle", "marshal", "shelve", "dill", "yaml", "xml", "lxml"}
# Their patterns are the rows of a table in the same statement, or were escaped in the line before.
PATTERNS_IN_THE_CODE: Final = {
    "src/soundmark/console/refused_fields.py": "pattern",
    "src/soundmark/core/providers/freescout/html_text.py": "f'</{name}[\\\\s/>]'",
    "src/soundmark/sandbox/desk/api.py": "pattern",
}
MARKUP: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    r"|addEventListener\(['\"]message"
)
UNSAFE_TEMPLATE: Final = re.compile(r"\|\s*safe\b|autoescape|<script(?![^>]*\bsrc=)|\son[a-z]+\s*=|\sstyle\s*=")


@functools.cache
def parsed() -> dict[str, list[ast.AST]]:
    """Return the nodes of every module, by its file."""
    return {str(path.relative_to(ROOT)): list(ast.walk(ast.parse(path.read_text("utf-8")))) for path in PYTHON}


def calls(kind: type[ast.Name] | type[ast.Attribute]) -> Iterator[tuple[str, ast.Call, str]]:
    """Yield each call of a name or of an attribute: its file, the call, and what is called."""
    for file, nodes in parsed().items():
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, kind):
                yield file, node, ast.unparse(node.func)


def test_no_text_is_run_as_code_or_by_a_shell() -> None:
    named = [f"{file}: {name}" for file, _, name in calls(ast.Name) if name in RUN | SHELLS]
    reached = [
        f"{file}: {name}"
        for file, call, name in calls(ast.Attribute)
        if name.rpartition(".")[2] in SHELLS
        or (name.startswith(("os.", "subprocess.", "builtins.")) and name.rpartition(".")[2] in RUN)
        or any(keyword.arg == "shell" for keyword in call.keywords)
    ]
    assert named + reached == []


def test_no_format_that_can_run_code_or_read_files_is_read() -> None:
    imported = [
        f"{file}: {module}"
        for file, nodes in parsed().items()
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if module.partition(".")[0] in UNSAFE_FORMATS
    ]
    assert imported == []


def test_every_pattern_is_written_in_the_code() -> None:
    """A pattern from elsewhere could mean something else, or take minutes."""
    wrong = [
        f"{file}: {pattern}"
        for file, call, name in calls(ast.Attribute)
        if name.startswith("re.") and name != "re.escape"
        for pattern in [ast.unparse(call.args[0])]
        if not isinstance(call.args[0], ast.Constant)
        and not all(
            each.id.isupper() or each.id == "re" for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)
        )
        and "re.escape(" not in pattern
        and PATTERNS_IN_THE_CODE.get(file) != pattern
    ]
    assert wrong == []


def test_no_page_takes_text_for_markup_or_messages_from_another_window() -> None:
    assert len(BROWSER) > 30
    assert [str(path) for path in BROWSER if MARKUP.search(path.read_text("utf-8"))] == []


def test_no_template_contains_a_script_or_unescaped_text() -> None:
    assert len(TEMPLATES) > 30
    found = [(path.name, match[0]) for path in TEMPLATES for match in UNSAFE_TEMPLATE.finditer(path.read_text("utf-8"))]
    assert found == []
