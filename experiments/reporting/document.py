"""A report as a list of sections, written once and rendered as Markdown, on a terminal and as a page."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """Cells of text under a caption. The first column is left-aligned, the others right."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    references: int = 0
    """So many of the first rows are no arms but lines to read the others against."""
    brief: bool = False
    """Shown on the terminal too."""


@dataclass(frozen=True)
class Figure:
    """A picture made by `figures.py`, by its file name."""

    file: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Section:
    """Blocks under a heading; a plain string is a paragraph."""

    title: str
    blocks: list[str | Table | Figure] = field(default_factory=list)
    brief: bool = False
    """Its paragraphs are shown on the terminal too; tables have a mark of their own."""
