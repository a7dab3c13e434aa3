"""The dashboard's own server: it shows the terminals of all runs, and changes nothing unless it may act."""

import secrets
from collections.abc import Callable
from typing import Final

from quintet import files
from quintet.errors import ServerError
from quintet.server.http.app import PageRoutes, create_app
from quintet.server.http.listen import bind, make_server
from quintet.server.http.token_files import read_private
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.session_manager import SessionManager

TOKEN_FILE: Final = "dashboard-token"
CONTROL_TOKEN_FILE: Final = "dashboard-control-token"
_SHORTEST: Final = 32


def serve_dashboard(
    pages: PageRoutes,
    port: int,
    tell: Callable[[str], None],
    state_folder: StateFolder | None = None,
    *,
    can_act: bool = False,
) -> None:
    """Serve until a signal comes; `tell` gets the address with the token in its fragment, which browsers never send."""
    state_folder = state_folder or StateFolder()
    token = _token(state_folder, TOKEN_FILE)
    control = _token(state_folder, CONTROL_TOKEN_FILE) if can_act else ""
    app = create_app(
        lambda: SessionManager(state_folder, passive=True),
        token=token,
        pages=pages,
        read_only=True,
        control_token=control,
    )
    try:
        listener = bind("127.0.0.1", port)
    except ServerError as error:
        raise ServerError(f"{error}; name another with --port, or 0 for a free one") from None
    tell(f"http://127.0.0.1:{listener.getsockname()[1]}/#token={control or token}")
    make_server(app).run(sockets=[listener])


def _token(state_folder: StateFolder, name: str) -> str:
    """The same every time, so that an open page survives a restart; only this user can read it."""
    path = state_folder.root / name
    token = read_private(path)
    if len(token) < _SHORTEST:
        token = secrets.token_urlsafe(_SHORTEST)
        files.write(path, token + "\n")
    return token
