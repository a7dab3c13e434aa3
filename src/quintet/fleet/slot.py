"""A slot of a worker, a process of its own in which one task at a time is started: `python -m quintet.fleet.slot`.

After anything but a result it ends; its worker starts it again.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Final

from quintet.errors import DatabaseAway, QuintetError
from quintet.fleet.carrying import Carrying, Leave
from quintet.fleet.database import Database, serve
from quintet.fleet.messages import SlotOrder
from quintet.fleet.tasks import TaskOutcome, TaskSpec

READY: Final = "ready"
"""what a slot says when it takes tasks"""
BUSY: Final = "busy"
"""what it says when it begins with one"""
DONE: Final = "done"
"""what it says when a task has come to a verdict"""
FAILED_HERE: Final = 3
"""its exit code when a task could not go on for a reason that may be this machine's"""


class Slot:
    """One slot: at most one task, with the process of its run."""

    def __init__(self, order: SlotOrder) -> None:
        self._order = order
        self._database = Database(order.url)
        self.stopping = threading.Event()
        self.busy = threading.Lock()

    def carry_out(self, task_id: str, spec: TaskSpec) -> TaskOutcome:
        """Carry a task to its end. Whatever else happens to it is written to the database, and this process ends."""
        with self.busy:
            say(BUSY)
            carrying = Carrying(self._order, self._database, self.stopping, task_id, spec)
            try:
                outcome = carrying.to_the_end()
            except Leave:
                os._exit(FAILED_HERE if carrying.has_failed_here else 0)
            except DatabaseAway:
                os._exit(1)  # the engine starts the task again when the database is back
            except (QuintetError, OSError) as error:
                with suppress(Leave, QuintetError):
                    carrying.park_here(str(error))
                os._exit(FAILED_HERE if carrying.has_failed_here else 1)
            except Exception:  # the engine writes it down as the end of the task
                say(READY)
                raise
            finally:
                carrying.close()
            say(DONE)
            return outcome


def say(word: str) -> None:
    """Tell the worker how this slot stands; the worker may be gone."""
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{word}\n".encode())


def main() -> None:
    """Take tasks until standard input ends or a signal comes; a second signal ends this process at once."""
    order = SlotOrder.model_validate_json(sys.stdin.buffer.readline())
    try:
        slot = Slot(order)
    except QuintetError as error:
        sys.exit(f"slot {order.number}: {error}")

    def stop(number: int, _frame: FrameType | None) -> None:
        if slot.stopping.is_set():
            os._exit(128 + number)
        slot.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the worker's terminal: the worker says what to do
    serve(order.url, order.name, slot.carry_out)
    say(READY)
    threading.Thread(target=_until_the_end_of_input, args=(slot,), daemon=True).start()
    slot.stopping.wait()
    with slot.busy:  # the task is given back first
        os._exit(0)


def _until_the_end_of_input(slot: Slot) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    slot.stopping.set()


if __name__ == "__main__":
    main()
