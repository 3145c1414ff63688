"""Writes the files of a report."""

from collections.abc import Sequence
from pathlib import Path

from data.errors import UserError
from experiments.reporting import html, table
from experiments.reporting.examples import examples_html
from experiments.reporting.figures import write_figures
from experiments.reporting.records import write_csv
from experiments.reporting.results import Results
from experiments.reporting.sections import all_sections, headline


def write_report(workdirs: Sequence[Path], out: Path) -> str:
    """Writes results.csv, table.md, report.html and the pictures to `out` and returns the table for a terminal.

    Args:
      workdirs: of one ablation; several are pooled.

    Raises:
      UserError: a workdir cannot be read, or they do not belong together. Nothing is written then.
    """
    results = Results(workdirs)
    title, lead = results.ablation['name'], [f'Claim: {results.ablation["claim"]}', headline(results)]
    sections = all_sections(results)
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f'--out {out}: {error.strerror}; name another folder') from None
    write_csv(results.csv_rows(), out / 'results.csv')
    write_figures(results, out)
    (out / 'table.md').write_text(table.markdown(title, lead, sections), encoding='utf-8')
    (out / 'report.html').write_text(html.page(title, lead, sections, examples_html(results), out), encoding='utf-8')
    return table.terminal(title, lead, sections)
