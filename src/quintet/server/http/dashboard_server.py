"""The dashboard's own server: it shows the terminals of all runs, and changes nothing unless it may act."""

import secrets
from collections.abc import Callable
from typing import Final

from quintet.errors import ServerError
from quintet.server.http.app import PageRoutes, create_app
from quintet.server.http.listen import bind, make_server
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.session_manager import SessionManager

_TOKEN_BYTES: Final = 32


def serve_dashboard(
    pages: PageRoutes,
    port: int,
    tell: Callable[[str], None],
    state_folder: StateFolder | None = None,
    *,
    can_act: bool = False,
) -> None:
    """Serve until a signal comes; `tell` gets the address with the token in its fragment, which browsers never send.

    Tokens are new at every start: while nothing serves the port, another user can take it and wait for an old link.
    """
    state_folder = state_folder or StateFolder()
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    control = secrets.token_urlsafe(_TOKEN_BYTES) if can_act else ""
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
