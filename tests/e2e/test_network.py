"""Each real agent CLI with an allow-list of hosts: it reaches its model, and nothing else."""

import socket

import pytest

from tests.e2e.brains import RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig
from tests.e2e.test_loops import POST, SOLO, check_result
from tests.sandbox.need import need_bubblewrap

DIRECT, PROXIED = "directly", "by proxy"


def own_address() -> str:
    """An address of this machine that is not on loopback: from a sandbox only a proxy reaches it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but that of loopback")
        return str(probe.getsockname()[0])


@pytest.mark.e2e_all
@pytest.mark.parametrize("way", [DIRECT, PROXIED])
@pytest.mark.parametrize("cast", SOLO.values(), ids=SOLO)
def test_a_run_reaches_its_model_and_nothing_else(cast: Cast, way: str) -> None:
    """A model server on loopback is asked directly, as CLIs do; one at another address only through the proxy."""
    need_bubblewrap()
    address = "127.0.0.1" if way == DIRECT else own_address()
    with rig(cast, RoleBrain(FAIL_THEN_PASS), address=address) as run:
        domain = run.model.url.removeprefix("http://")
        code, said = run.run(**POST, SANDBOX="on", SANDBOX_NETWORK="allow", SANDBOX_DOMAINS=domain)
        assert code == 0, said
        check_result(run, {cast.provider})
        assert not [event for event in run.events("host_refused") if event["host"] == address]
