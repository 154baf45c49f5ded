"""Entries of the audit log in words: who did what to what."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from soundmark_sdk.client.records import AuditActor, AuditEntry

from soundmark.console.audit_actions import SUBJECTS
from soundmark.console.id_paths import mark_id
from soundmark.console.language import isolate
from soundmark.console.visit import Visit

_PROJECT: Final = "project_id"


@dataclass(frozen=True, slots=True)
class SentenceWriter:
    """The words of one page's entries, on which members are called by their e-mail addresses, as `emails` has them."""

    visit: Visit
    emails: Mapping[str, str]
    _actors: dict[AuditActor, Markup] = field(default_factory=dict)  # Few of them act again and again.

    def write_sentence(self, entry: AuditEntry) -> Markup:
        """Return what an entry records, with links. An action of a later release is named as Core names it."""
        language, key = self.visit.language, f"audit_log.sentence.{entry.action}"
        actor, subject = self._write_actor(entry), self._find_subject(entry)
        if not language.knows(key) or (subject is None and SUBJECTS[entry.action] is not None):
            return language.mark("audit_log.sentence.unknown", actor=actor, action=self.name_action(entry.action))
        return language.mark(key, actor=actor, subject="" if subject is None else self.write_value(entry, subject))

    def list_facts(self, entry: AuditEntry) -> list[tuple[str, Markup | None]]:
        """Return the names and values of an entry's metadata; None is a value that is absent."""
        return [
            (self._name_fact(name), None if value is None else self.write_value(entry, value))
            for name, value in entry.metadata.items()
        ]

    def name_action(self, action: str) -> str:
        """Return the action as a title."""
        key = f"audit_log.action.{action}"
        return self.visit.say(key) if self.visit.language.knows(key) else action

    def write_value(self, entry: AuditEntry, value: Any) -> Markup:
        """Return a value of an entry: ids as links, members by their addresses, and what has parts as JSON."""
        match value:
            case str() if value in self.emails:
                return isolate(self.emails[value])
            case str():
                return self._write_text(entry, value)
            case list() if all(isinstance(each, str) for each in value):
                return Markup(", ").join(self._write_text(entry, each) for each in value)
            case _:
                return isolate(json.dumps(value, ensure_ascii=False))

    def _write_text(self, entry: AuditEntry, text: str) -> Markup:
        marked = mark_id(entry.organization_id, entry.project_id, text)
        return marked if "<a " in marked or _has_id_shape(text) else isolate(text)

    def _write_actor(self, entry: AuditEntry) -> Markup:
        if entry.actor not in self._actors:
            self._actors[entry.actor] = self._link_actor(entry)
        return self._actors[entry.actor]

    def _link_actor(self, entry: AuditEntry) -> Markup:
        identity, kind = entry.actor.id, f"audit_log.actor.{entry.actor.type}"
        log = f"/organizations/{entry.organization_id}/audit-log"
        is_log = self.visit.request.url.path == log  # Its other filters stay.
        path = self.visit.here(actor=identity, cursor=None) if is_log else f"{log}?{urlencode({'actor': identity})}"
        name = isolate(self.emails.get(identity, identity))
        link = Markup('<a href="{}" title="{}">{}</a>').format(path, identity, name)
        if not self.visit.language.knows(kind):
            return link
        return self.visit.language.mark(kind, name=link)

    def _find_subject(self, entry: AuditEntry) -> str | None:
        name = SUBJECTS.get(entry.action)
        subject = entry.project_id if name == _PROJECT else entry.metadata.get(name or "")
        return subject if isinstance(subject, str) else None

    def _name_fact(self, name: str) -> str:
        key = f"audit_log.fact.{name}"
        return self.visit.say(key) if self.visit.language.knows(key) else name


async def find_emails(visit: Visit) -> dict[str, str]:
    """Return the addresses of the newest members, by which people know each other better than by their ids.

    Raises: soundmark_sdk.ClientFailure.
    """
    members = await visit.core.members.page()
    return {member.subject_id: member.email for member in members.data}


def _has_id_shape(text: str) -> bool:
    """Return whether a text is an id of the service: a short prefix and 22 characters."""
    prefix, _, rest = text.partition("_")
    return len(prefix) <= len("plan") and len(rest) == 22  # noqa: PLR2004 - contract, section 1
