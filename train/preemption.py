"""Being asked to stop: SIGTERM from a scheduler, SIGINT from the keyboard."""

import math
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_SECONDS = 5
"""One request may come as two: a machine that shuts down tells every process, and a supervisor tells its own again."""


class Preemption:
    """While entered, a first signal sets `requested`, for the loop to save and stop; a second ends the process at once.

    SIGTERM within `SAME_SECONDS` of another is the same one.

    Python runs its signal handlers between bytecodes of the main thread, that is not while XLA compiles. The numbers
    of arriving signals go through a socket to a thread of ours instead, which answers at any time.
    """

    def __init__(self):
        self.requested = False
        self._terminated_at = -math.inf

    def __enter__(self) -> 'Preemption':
        """Takes over the signals.

        Raises:
          ValueError: not in the main thread.
        """
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        self._handlers_before = {number: signal.signal(number, _ignore) for number in SIGNALS}
        self._thread = threading.Thread(target=self._listen, name='preemption', daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        """Gives the signals back to whom they belonged before."""
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._sender.close()  # which ends the thread
        self._thread.join()
        self._receiver.close()

    def _listen(self) -> None:
        while numbers := self._receiver.recv(64):
            for number in numbers:
                if number in SIGNALS:
                    self._take(signal.Signals(number))

    def _take(self, number: signal.Signals) -> None:
        if number == signal.SIGTERM:
            before, self._terminated_at = self._terminated_at, time.monotonic()
            if self._terminated_at - before < SAME_SECONDS:
                return
        if self.requested:
            os._exit(128 + number)
        self.requested = True
        print(f'{number.name}: saving and stopping (once more: stop at once, unsaved)', file=sys.stderr, flush=True)


def _ignore(number: int, frame: Any) -> None:
    """A handler must be Python's for its number to reach the socket; the work is done there."""
