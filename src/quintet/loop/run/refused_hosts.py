"""Report the hosts that a sandbox has refused: each once for a role, and its whole count at the end of a turn."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from quintet.config import Settings
from quintet.loop.journal import HostRefused
from quintet.loop.record.store import RunStore

MOST_HOSTS: Final = 20
"""of one role that are reported one by one: an agent can make names up without end"""


class RefusedRequest(Protocol):
    """Requests for a refused host, as the server or an outlet reports it."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def times(self) -> int: ...

    @property
    def allow(self) -> str: ...


@dataclass
class RefusedHosts:
    """What was reported in this run so far."""

    store: RunStore
    settings: Settings
    _reported: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _full: set[str] = field(default_factory=set)
    """roles of which no more hosts are reported"""

    def report(self, role: str, refused: Sequence[RefusedRequest], *, is_final: bool) -> None:
        """Report new hosts, and with `is_final` also counts that have grown. An empty role stands for checks."""
        for one in refused:
            key = (role, one.host, one.port)
            known = self._reported.get(key, 0)
            if one.times <= known or (known and not is_final):
                continue
            if not known and sum(name == role for name, _, _ in self._reported) >= MOST_HOSTS:
                self._report_overflow(role)
                continue
            self._reported[key] = one.times
            line = self.settings.line_to_allow(one.allow, os.environ, for_checks=not role)
            self.store.emit(HostRefused(role=role, host=one.host, port=one.port, times=one.times, allow=line))

    def _report_overflow(self, role: str) -> None:
        if role not in self._full:
            self._full.add(role)
            self.store.warn(f"the sandbox has refused more than {MOST_HOSTS} hosts to {role or 'a check'}")
