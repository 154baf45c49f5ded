"""The mutants of a module: copies of its syntax tree, each with one change."""

import ast
import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_COMPARISONS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a module: `key` names the function, the old code and the new, but not the line, which moves."""

    line: int
    key: str
    tree: ast.Module


class _Places(ast.NodeVisitor):
    """The nodes that can be changed, each with its function. Annotations and texts for people are left out."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ast.AST]] = []
        self._function = "module"

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            outer = self._function
            self._function = node.name if outer == "module" else f"{outer}.{node.name}"
            for part in (*_defaults_of(node), *_without_docstring(node.body)):
                self.visit(part)
            self._function = outer
            return
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom) or _is_log_call(node):
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
                self.visit(node.value)
            return
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in {"Literal", "Mapping", "dict", "Final"}:
            return
        self.found.append((self._function, node))
        if not isinstance(node, ast.Raise | ast.JoinedStr):
            self.generic_visit(node)


def _defaults_of(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
    return []


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_docstring else body


def _is_log_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("_log.", "warnings."))


def _replacements(node: ast.AST) -> list[ast.AST]:
    """Return each node that could stand in the place of this one."""
    if isinstance(node, ast.Compare):
        return [_with_comparison(node, number) for number, op in enumerate(node.ops) if type(op) in _COMPARISONS]
    if isinstance(node, ast.Constant):
        return _other_constants(node.value)
    if isinstance(node, ast.stmt):
        return _other_statements(node)
    return _other_expressions(node)


def _with_comparison(node: ast.Compare, number: int) -> ast.AST:
    ops = list(node.ops)
    ops[number] = _COMPARISONS[type(ops[number])]()
    return ast.Compare(node.left, ops, node.comparators)


def _other_constants(value: object) -> list[ast.AST]:
    if isinstance(value, bool):
        return [ast.Constant(not value)]
    if isinstance(value, int):
        return [ast.Constant(value + 1)]
    if isinstance(value, bytes):
        return [ast.Constant(value + b"X")]
    if isinstance(value, str) and not (" " in value and value.endswith(".")):
        return [ast.Constant(value + "X")]
    return []


def _other_expressions(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.BoolOp(op=op, values=values):
            return [ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and not _has_text(node):
            return [ast.BinOp(left, _OPERATORS[type(op)](), right)]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [ast.IfExp(test, orelse, body)]
        case _:
            return []


def _other_statements(node: ast.stmt) -> list[ast.AST]:
    match node:
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() | ast.Await() as test, body=body, orelse=orelse):
            return [ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)]
        case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
            return [ast.Return(ast.Constant(None))]
        case ast.Raise() | ast.Expr(value=ast.Call() | ast.Await()):
            return [ast.Pass()]
        case _:
            return []


def _has_text(node: ast.BinOp) -> bool:
    """Return whether another operator between these would only be a TypeError."""
    return any(
        isinstance(each, ast.JoinedStr) or isinstance(getattr(each, "value", 0), str | bytes) for each in ast.walk(node)
    )


def _is_falsy(node: ast.expr) -> bool:
    """Return whether this is None, or False, which callers do not tell from None."""
    return isinstance(node, ast.Constant) and not node.value


def list_mutants(source: str) -> list[Mutant]:
    tree = ast.parse(source)
    places = _Places()
    for statement in _without_docstring(tree.body):
        places.visit(statement)
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for function, node in places.found:
        for replacement in _replacements(node):
            ast.copy_location(replacement, node)
            old, new = (_shown(ast.unparse(ast.fix_missing_locations(each))) for each in (node, replacement))
            change = f"{function}: {old} -> {new}"
            seen[change] += 1
            key = change if seen[change] == 1 else f"{change} ({seen[change]})"
            found.append(Mutant(getattr(node, "lineno", 0), key, _swap(tree, node, replacement)))
    return found


def _swap(tree: ast.Module, node: ast.AST, replacement: ast.AST) -> ast.Module:
    """Return a copy of the tree with the replacement in the place of the node."""

    class Swapper(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:
            if each is node:
                return replacement
            twin = copy.copy(each)
            for name, value in ast.iter_fields(twin):
                if isinstance(value, list):
                    setattr(twin, name, list(value))  # `generic_visit` changes lists in place.
            return super().generic_visit(twin)

    swapped = Swapper().visit(tree)
    assert isinstance(swapped, ast.Module), "a module stays one"
    return ast.fix_missing_locations(swapped)


def _shown(text: str) -> str:
    first, *rest = text.splitlines()
    return first + (" ..." if rest else "")
