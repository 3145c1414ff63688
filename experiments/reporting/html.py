"""The report as one page: no script, nothing from elsewhere, pictures inlined."""

import base64
import re
from html import escape
from pathlib import Path

from experiments.reporting.document import Figure, Section, Table

STYLE = (Path(__file__).parent / 'page.css').read_text(encoding='utf-8')


def page(title: str, lead: list[str], sections: list[Section], examples: str, folder: Path) -> str:
    """The whole page; pictures are read from `folder`."""
    bodies = [(section.title, ''.join(_block(block, folder) for block in section.blocks)) for section in sections]
    if examples:
        place = next((i for i, (name, _) in enumerate(bodies) if name == 'How the arms differ'), len(bodies))
        bodies.insert(place, ('Guesses', examples))
    links = ''.join(f'<a href="#s{i}">{escape(name)}</a>' for i, (name, _) in enumerate(bodies))
    parts = [f'<section id="s{i}"><h2>{escape(name)}</h2>{body}</section>' for i, (name, body) in enumerate(bodies)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>{STYLE}</style></head><body><header><h1>{escape(title)}</h1>'
        f'{"".join(f"<p>{escape(line)}</p>" for line in lead)}<nav>{links}</nav></header>'
        f'<main>{"".join(parts)}</main></body></html>\n'
    )


def _block(block: str | Table | Figure, folder: Path) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Figure):
        data = base64.b64encode((folder / block.file).read_bytes()).decode('ascii')
        return (
            f'<figure><div class="scroll"><img alt="{escape(block.alt)}" src="data:image/png;base64,{data}"></div>'
            f'<figcaption>{escape(block.caption)}</figcaption></figure>'
        )
    return f'<p>{_minus(escape(block))}</p>'


def _table(table: Table) -> str:
    head = ''.join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = []
    for i, row in enumerate(table.rows):
        cells = ''.join(f'<td>{_minus(escape(cell))}</td>' for cell in row[1:])
        kind = ' class="reference"' if i < table.references else ''
        rows.append(f'<tr{kind}><th scope="row">{escape(row[0])}</th>{cells}</tr>')
    return (
        f'<p class="caption">{escape(table.caption)}</p>'  # apart, so that it wraps to the screen and not the table
        f'<div class="scroll"><table aria-label="{escape(table.caption)}"><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div>'
    )


def _minus(text: str) -> str:
    """A hyphen before a number becomes a minus sign."""
    return re.sub(r'(?<![\w-])-(?=\d)', '−', text)
