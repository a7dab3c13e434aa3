"""`quintet run`: settings in, a run, its report and its exit code out."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from quintet.api.client import ApiClient
from quintet.cli.options import task_named_in
from quintet.config import Settings, load_settings
from quintet.layout import DISCOVERY, JOURNAL, run_folder
from quintet.loop.decide.task import title_of
from quintet.loop.journal import Event, Noted, RunResumed, Warned
from quintet.loop.record.journal_file import Journal
from quintet.loop.run.driver import Driver
from quintet.loop.run.plan import check_settings
from quintet.server.http.client import client_of
from quintet.setup.at_work import at_work
from quintet.setup.rights import rights
from quintet.watch.console.console import showing

SCRIPTED, SCENARIO_VARIABLE = "scripted", "QUINTET_SCENARIO"


def run(
    config_file: Path | None,
    flags: dict[str, Any],
    env: Mapping[str, str] = os.environ,
    *,
    plain: bool = False,
    as_json: bool = False,
    closes: bool = True,
) -> int:
    """Carry out a run, show it, and leave its report; `closes`: a PASS ends with a screen that says what to do next."""
    loaded = load_settings(config_file, env, flags, Path.cwd())
    settings = loaded.settings
    check_settings(settings)
    with at_work(settings.wd), ExitStack() as servers:
        every = settings.progress_seconds
        with showing(
            settings.wd, plain=plain, as_json=as_json, must_go_on=True, progress_seconds=every, closes=closes
        ) as show:
            show.title(title_of(settings.prompt))

            def tell(event: Event) -> None:
                if isinstance(event, RunResumed):
                    show.title(title_of(driver.state.prompt))
                    show.earlier(list(Journal(run_folder(settings.wd, event.run_id) / JOURNAL).read())[:-1])
                show(event)

            driver = Driver(settings, partial(_connect, settings.wd, servers), [tell], named=task_named_in(flags))
            for warning in (*loaded.warnings, *_without_script(settings, env)):
                driver.emit(Warned(text=warning))
            for sentence in _rights(settings):
                driver.emit(Noted(text=sentence))
            code = driver.run()
        if driver.state.run_id:
            folder = run_folder(settings.wd, driver.state.run_id)
            _report(folder, quiet=as_json, closing_api=driver.state.api if closes and not code else None)
    return code


def _rights(settings: Settings) -> Iterator[str]:
    """What the agents may do, before the first of them is started."""
    if found := rights(settings):
        yield from filter(None, (found.told, found.change))


def _without_script(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """Scripted agents that nobody has given a script say the same for hours."""
    if env.get(SCENARIO_VARIABLE) or settings.api:
        return
    names = [
        name for name, agent in settings.agents.items() if agent.provider == SCRIPTED and "--scenario" not in agent.args
    ]
    if names:
        yield f"{', '.join(names)}: without a script they say only: Done.; set {SCENARIO_VARIABLE} to a scenario file"


def _report(folder: Path, *, quiet: bool, closing_api: str | None) -> None:
    """Write the report; a run's outcome does not depend on it. The server's address is given where a PASS is told."""
    from quintet.watch.console.closing import closing  # noqa: PLC0415 - needed only now
    from quintet.watch.report.write import write_report  # noqa: PLC0415
    from quintet.watch.runs.summary import summarise  # noqa: PLC0415

    try:
        written = write_report(folder, at_end=True)[1]
    except OSError as error:
        click.echo(f"warning: no report: {error}", err=True)
        return
    if quiet:
        return
    if closing_api is not None:
        click.echo(f"\n{closing(summarise(folder), written, api=closing_api)}")
    elif sys.stdout.isatty():
        click.echo(f"The report is {written}")


def _connect(wd: Path, servers: ExitStack, api: str, sessions: Sequence[str]) -> ApiClient:
    """A client of the server at the address; without one, of a server of the run's own."""
    if api:
        return client_of(api, str(wd))
    from quintet.server.http.embedded import EmbeddedServer  # noqa: PLC0415 - a run over another server needs none of it
    from quintet.watch.dashboard.routes import Pages  # noqa: PLC0415

    discovery = wd / DISCOVERY
    pages = Pages(lambda: [wd], lasting=False)
    server = servers.enter_context(EmbeddedServer(sessions, discovery=discovery, pages=pages))
    return ApiClient(server.url, str(wd), token=server.token)
