"""The report as Markdown, and the part of it that a terminal shows. Columns are padded, so that both can be read."""

import textwrap

from experiments.reporting.document import Figure, Section, Table

TERMINAL_WIDTH = 100


def markdown(title: str, lead: list[str], sections: list[Section]) -> str:
    """The whole report as table.md."""
    parts = [f'# {title}', *lead]
    for section in sections:
        parts.append(f'## {section.title}')
        for block in section.blocks:
            if isinstance(block, Table):
                parts += [f'**{block.caption}**', table(block)]
            elif isinstance(block, Figure):
                parts += [f'![{block.alt}]({block.file})', block.caption]
            else:
                parts.append(block)
    return '\n\n'.join(parts) + '\n'


def terminal(title: str, lead: list[str], sections: list[Section]) -> str:
    """What is marked brief: paragraphs wrapped, tables as they are, no pictures."""
    parts = [title, *map(_wrapped, lead)]
    for section in sections:
        for block in section.blocks:
            if isinstance(block, str) and section.brief:
                parts.append(_wrapped(block))
            elif isinstance(block, Table) and block.brief:
                parts.append(f'{_wrapped(block.caption)}\n{table(block)}')
    return '\n\n'.join(parts) + '\n'


def table(block: Table) -> str:
    """A Markdown table, its columns padded to one width."""
    rows = [[cell.replace('|', '\\|') for cell in row] for row in [block.columns, *block.rows]]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(block.columns))]
    ruler = ['-' * widths[0], *(f'{"-" * (width - 1)}:' for width in widths[1:])]

    def line(cells: list[str]) -> str:
        padded = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]
        return f'| {" | ".join(padded)} |'

    return '\n'.join([line(rows[0]), f'| {" | ".join(ruler)} |', *map(line, rows[1:])])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, TERMINAL_WIDTH, break_long_words=False, break_on_hyphens=False)
