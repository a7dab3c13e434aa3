"""The protected files of a run around its checks: as they were at its start before each one, untouched after it."""

import shutil
from collections.abc import Sequence
from typing import Final

from quintet.config import Settings
from quintet.errors import NotGuarded, RunError
from quintet.guard import ProtectedFiles, keep_protected, load_protected
from quintet.layout import protected_folder
from quintet.loop.record.store import RunStore
from quintet.prose import printable

_SHOWN: Final = 5


class Protection:
    """Restores protected files before a check, and says after it whether they were touched."""

    def __init__(self, settings: Settings, store: RunStore) -> None:
        self._settings, self._store = settings, store
        self.folder = protected_folder(store.state.run_id)
        self._baseline: ProtectedFiles | None = None

    def start(self) -> None:
        """Keep the protected files as they are at the start of the run."""
        if self._settings.guard == "off":
            return
        try:
            self._baseline = keep_protected(self._settings.workspace.tree, self.folder, self._settings.protect)
        except NotGuarded as error:
            raise RunError(f"the run cannot begin: {error}") from error

    def close(self) -> None:
        """At the end of the run: no check follows."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _is_on(self) -> bool:
        return self._settings.guard != "off" and bool(self._settings.protect)

    @property
    def _restores(self) -> bool:
        return self._settings.guard == "restore"

    def before_check(self) -> ProtectedFiles | None:
        """Put the protected files back; NotGuarded where they cannot be what they were. None: nothing is protected."""
        if not self._is_on:
            return None
        baseline = self._loaded()
        put_back = baseline.restore(for_good=self._restores)
        if put_back and self._restores:
            self._store.warn(f"restored before a check: {_listed(put_back)}")
        baseline.watch()
        return baseline

    def after_check(self) -> str:
        """Why the check that has just run does not count; empty where nothing protected was touched."""
        if not self._is_on:
            return ""
        baseline = self._loaded()
        touched = baseline.changed()
        if not touched:
            return ""
        if not self._restores:
            self._store.warn(f"changed while a check ran, although protected: {_listed(touched)}")
            return ""
        baseline.restore()
        return f"protected files were changed while it ran, and are restored: {_listed(touched)}"

    def _loaded(self) -> ProtectedFiles:
        if self._baseline is None:
            try:
                self._baseline = load_protected(self._settings.workspace.tree, self.folder, self._settings.protect)
            except NotGuarded as error:
                raise NotGuarded(f"what protected files were at the start of the run is not known: {error}") from error
        return self._baseline


def _listed(paths: Sequence[str]) -> str:
    others = f" and {len(paths) - _SHOWN} others" if paths[_SHOWN:] else ""
    return ", ".join(map(printable, paths[:_SHOWN])) + others
