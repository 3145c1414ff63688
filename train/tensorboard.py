"""One replica's numbers as TensorBoard reads them."""

import time
from collections.abc import Mapping
from pathlib import Path

from data.room import named

FLUSH_SECONDS = 30.0
"""What a killed process loses at most. A flush waits for the disk."""


class TensorBoard:
    """Appends to a file in a folder.

    tensorboardX's own SummaryWriter writes in a thread, which a full disk ends: after some more records the process
    would wait for it for ever. Here an error shows where it arises.
    """

    def __init__(self, folder: Path, restored: int | None):
        """`restored`: what an earlier process wrote after this step is hidden (None: nothing is)."""
        from tensorboardX.event_file_writer import EventsWriter  # here, since it is slow to import
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.summary import scalar

        self._event, self._scalar, self._folder = Event, scalar, folder
        with named(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = EventsWriter(str(folder / 'events'), f'.{time.time_ns()}')
            if restored is not None:
                start = SessionLog(status=SessionLog.SessionStatus.Value('START'))
                self._writer.write_event(Event(session_log=start, step=restored + 1, wall_time=time.time()))
        self._flushed_at = time.monotonic()

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Appends numbers, by their names, of one step."""
        with named(self._folder):
            for name, value in values.items():
                event = self._event(summary=self._scalar(name, value), step=step, wall_time=time.time())
                self._writer.write_event(event)
        if time.monotonic() - self._flushed_at > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        with named(self._folder):
            self._writer.flush()
        self._flushed_at = time.monotonic()

    def close(self) -> None:
        """Writes what is buffered and closes the file."""
        with named(self._folder):
            self._writer.close()
