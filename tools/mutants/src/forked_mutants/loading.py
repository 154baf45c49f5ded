"""How a process gets the changed module: in place of the file, or as new code of functions that are loaded already."""

import ast
import importlib.abc
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from forked_mutants.table import Subject


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a changed tree."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the protocol's
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(self._code, module.__dict__)  # noqa: S102 - the changed module is what is tried


def load_instead(subject: Subject, tree: ast.Module) -> None:
    """Let the module be loaded from a changed tree."""
    assert subject.module not in sys.modules, "a loaded module would run unchanged"
    code = compile(tree, str(subject.path), "exec", dont_inherit=True)
    sys.meta_path.insert(0, _Finder(subject.module, subject.path, code))


def list_codes(tree: ast.Module) -> dict[str, CodeType]:
    """Return the code of each function and method of a module, by its qualified name."""
    bodies, found = [compile(tree, "", "exec", dont_inherit=True)], {}
    while bodies:
        for code in bodies.pop().co_consts:
            if isinstance(code, CodeType) and code.co_flags & inspect.CO_OPTIMIZED:
                found[code.co_qualname] = code
            elif isinstance(code, CodeType):
                bodies.append(code)  # The body of a class.
    return found


def replace_codes(subject: Subject, codes: Mapping[str, CodeType]) -> None:
    """Change the functions of the loaded module; end the process as if its tests passed if that is impossible."""
    functions = _list_functions(subject.module, vars(sys.modules[subject.module]))
    changed = [each for each in functions if each.__code__.co_qualname in codes]
    try:
        for function in changed:
            function.__code__ = codes[function.__code__.co_qualname]
    except ValueError:
        changed = []
    if not changed:
        os._exit(0)


def _list_functions(module: str, namespace: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Yield the functions and methods of a loaded module, without their decorators."""
    for value in namespace.values():
        inner = getattr(value, "fget", getattr(value, "__func__", value))
        inner = inspect.unwrap(inner) if callable(inner) else inner
        if isinstance(inner, FunctionType) and inner.__module__ == module:
            yield inner
        elif isinstance(inner, type) and inner.__module__ == module:
            yield from _list_functions(module, vars(inner))
