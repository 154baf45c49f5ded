"""A check that a SQL statement restricts its rows to a tenant."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sqlglot
from sqlglot import exp

Source: TypeAlias = exp.Table | exp.Unnest


def unnamed_tenants(statement: str, keys: Mapping[str, str]) -> set[str]:
    """Return the tenant tables whose rows a statement does not restrict to a tenant.

    `keys` has the tenant column of each table. A parameter restricts it, or equality with the tenant column of another
    table in the same SELECT, UPDATE or DELETE that is restricted.
    """
    tree = sqlglot.parse_one(statement, dialect="postgres")
    shadowed = {cte.alias for cte in tree.find_all(exp.CTE)}
    return {
        table.name
        for table in tree.find_all(exp.Table)
        if table.name in keys and table.name not in shadowed and not _is_named(table, keys)
    }


def _is_named(table: exp.Table, keys: Mapping[str, str]) -> bool:
    if isinstance(table.parent, exp.Schema):  # INSERT INTO table (columns)
        return keys[table.name] in {column.name for column in table.parent.expressions}
    part = _part_of(table)
    return _Part(
        keys=keys,
        sources={source.alias_or_name: source for source in _sources(part)},
        equal=[pair for one in _conditions(part, exp.EQ) for pair in ((one.left, one.right), (one.right, one.left))],
        using={column.name for column in _conditions(part, exp.Identifier)},
    ).names_tenant(table)


@dataclass(frozen=True)
class _Part:
    """A SELECT, UPDATE or DELETE: the tables in it by their aliases, and what equals what in each row."""

    keys: Mapping[str, str]
    sources: Mapping[str, Source]
    equal: list[tuple[exp.Expression, exp.Expression]]
    using: set[str]

    def names_tenant(self, table: exp.Table, seen: frozenset[str] = frozenset()) -> bool:
        key, alias = self.keys[table.name], table.alias_or_name
        seen |= {alias}
        if key in self.using and any(self._is_given(other, key, seen) for other in self.sources):
            return True
        return any(
            self._is_value(other, seen)
            for one, other in self.equal
            if isinstance(one, exp.Column) and one.name == key and (one.table or alias) == alias
        )

    def _is_value(self, value: exp.Expression, seen: frozenset[str]) -> bool:
        value = value.this if isinstance(value, exp.Cast) else value
        is_column = isinstance(value, exp.Column)
        return isinstance(value, exp.Placeholder) or (is_column and self._is_given(value.table, value.name, seen))

    def _is_given(self, alias: str, column: str, seen: frozenset[str]) -> bool:
        source = self.sources.get(alias)
        if isinstance(source, exp.Unnest):  # Many parameters at once.
            return True
        if source is None or alias in seen or self.keys.get(source.name) != column:
            return False
        return self.names_tenant(source, seen)


def _part_of(node: exp.Expression) -> exp.Expression:
    part = node.find_ancestor(exp.Select, exp.Update, exp.Delete)
    assert part is not None, "a table is part of a statement"
    return part


def _sources(part: exp.Expression) -> Iterator[Source]:
    """Yield the tables of a part, without those of its subqueries and of FOR UPDATE OF."""
    for source in part.find_all(exp.Table, exp.Unnest):
        if source.find_ancestor(exp.Lock) is None and _part_of(source) is part:
            yield source


def _conditions(part: exp.Expression, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """Yield the conditions that rows must meet, of one kind: parts of WHERE and ON, and the columns of USING."""
    joins = part.args.get("joins") or []
    clauses = [where.this for where in [part.args.get("where")] if where is not None]
    clauses += [join.args["on"] for join in joins if join.args.get("on") is not None]
    clauses += [column for join in joins for column in join.args.get("using") or []]
    for clause in clauses:
        for condition in clause.flatten() if isinstance(clause, exp.And) else [clause]:
            if isinstance(condition, kind):
                yield condition
