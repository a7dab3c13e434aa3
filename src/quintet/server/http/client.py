"""A client of the server at an address."""

import os
from collections.abc import Callable
from functools import partial

from quintet.api.client import ApiClient
from quintet.server.http.token_files import find_server, find_token


def client_for(api: str, wd: str, withheld: Callable[[str], None] | None = None) -> ApiClient:
    """With the token in QUINTET_TOKEN, else with that of this user's own `quintet serve` at the address.

    `withheld` is for an address that only a state file names, where an agent can write: QUINTET_TOKEN is not sent
    there, and `withheld` is told so.
    """
    secret = os.environ.get("QUINTET_TOKEN", "").strip()
    if secret and not withheld:
        return ApiClient(api, wd, token=secret)
    known = find_server(api)
    if secret and withheld and not known:
        withheld(f"QUINTET_TOKEN is not sent to {api}, which only the saved run names; API={api} beside it sends it")
    address = known.url if known else api
    return ApiClient(address, wd, token=partial(find_token, address))
