"""The same tasks by Apache Beam: on this machine, or on many (requirements-beam.txt, docs/preparation.md)."""

from collections.abc import Callable, Sequence
from typing import Any

from data.errors import UserError
from data.files import beam_files
from data.preparing.runners import Runner


def beam_runner(runner: str, flags: Sequence[str]) -> Runner:
    """Hands tasks to a runner of Beam's.

    Args:
      runner: DirectRunner, DataflowRunner and so on.
      flags: Beam's own, --project=mine.

    Raises:
      UserError: Beam is not installed, or knows no such runner or flag.
    """
    beam_files()
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners import create_runner

    try:
        create_runner(runner)
    except (ValueError, ImportError) as error:
        raise UserError(f'--runner {runner}: {error}') from None

    def run(name: str, step: Callable[[Any], None], tasks: Sequence[Any]) -> None:
        options = PipelineOptions([*flags, f'--runner={runner}'])
        try:
            with beam.Pipeline(options=options) as pipeline:
                _ = pipeline | 'tasks' >> beam.Create(tasks) | beam.Reshuffle() | name >> beam.Map(step)
        except Exception as error:
            if mistake := _mistake(error):
                raise UserError(mistake) from None
            raise

    return run


def _mistake(error: BaseException | None) -> str:
    """What a UserError of a task said, wherever Beam has put it; empty if there is none."""
    while error is not None:
        if isinstance(error, UserError):
            return str(error).split(' [while running')[0]
        error = error.__cause__ or error.__context__
    return ''
