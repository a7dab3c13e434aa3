"""A client of the server that the user names with `API`."""

import os
from functools import partial

from quintet.api.client import ApiClient
from quintet.server.http.token_files import find_server, find_token


def client_for(api: str, wd: str) -> ApiClient:
    """With the token in QUINTET_TOKEN, else with that of this user's own `quintet serve` at the address."""
    if given := os.environ.get("QUINTET_TOKEN", "").strip():
        return ApiClient(api, wd, token=given)
    known = find_server(api)
    address = known.url if known else api
    return ApiClient(address, wd, token=partial(find_token, address))
