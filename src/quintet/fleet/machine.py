"""What tells one machine of the fleet from another, and one process of a worker or slot from a second of its name."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from quintet import files
from quintet.errors import QueueError
from quintet.layout import fleet_folder

_SECRETS: Final = ("QUEUE", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGUSER", "PGHOST", "PGDATABASE")
"""what agents have no use for"""


def environment_without_secrets() -> dict[str, str]:
    """The variables of this process without those that lead to the database."""
    return {name: value for name, value in os.environ.items() if name not in _SECRETS}


def machine_id() -> str:
    """The id of this user's state directory on this machine; it is made once."""
    path = fleet_folder() / "machine"
    files.make_folder(path.parent)
    with files.locked(path.with_suffix(".lock")):
        if not path.exists():
            files.write(path, secrets.token_hex(8), durable=True)
    return files.read(path, 100).decode("ascii").strip()


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let no other process of this machine have a name until the block ends; QueueError where one has it."""
    files.make_folder(fleet_folder())
    handle = files.open_to_keep(fleet_folder() / f"name-{sha256(name.encode()).hexdigest()[:16]}.lock")
    try:
        if not files.try_lock(handle):
            raise QueueError(f"a worker with the name {name} is running here already; give this one another: --name")
        yield
    finally:
        os.close(handle)
