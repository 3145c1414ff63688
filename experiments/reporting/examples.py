"""The same held-out sentences, masked at each rate, with every arm's guesses beside the truth, as HTML."""

from html import escape

from experiments.reporting.results import Results
from experiments.reporting.wording import percent


def examples_html(results: Results) -> str:
    """A folded block for each sentence (the first is open); empty where no example was recorded."""
    found = [example for example in results.examples if (example['arm'], example['seed']) not in results.failed]
    if not found:
        return ''
    seed = min(example['seed'] for example in found)
    by_sentence: dict[int, dict[float, dict[str, dict]]] = {}
    for example in found:
        if example['seed'] == seed:
            rates = by_sentence.setdefault(example['sentence'], {})
            rates.setdefault(example['rate'], {})[example['arm']] = example
    blocks = [
        f'<details{" open" if not i else ""}><summary>{_sentence(_any(rates), set())}</summary>'
        + ''.join(_at_rate(results.arms, rate, arms) for rate, arms in sorted(rates.items()))
        + '</details>'
        for i, (_, rates) in enumerate(sorted(by_sentence.items()))
    ]
    return (
        f'<p>Held-out sentences, every chosen piece replaced by [MASK], and the three likeliest pieces with their '
        f'probabilities in percent, from each arm’s replica of seed {seed}. A boxed piece was hidden; a guess in bold '
        'is the truth. A few sentences show what such a model does, not which arm is better.</p>' + ''.join(blocks)
    )


def _any(rates: dict[float, dict[str, dict]]) -> dict:
    return next(iter(next(iter(rates.values())).values()))


def _at_rate(arms: list[str], rate: float, by_arm: dict[str, dict]) -> str:
    example = next(iter(by_arm.values()))
    shown = [arm for arm in arms if arm in by_arm]
    head = ''.join(f'<th>{escape(arm)}</th>' for arm in shown)
    rows = []
    for position in example['masked']:
        truth = example['pieces'][position]
        cells = ''.join(f'<td>{_guesses(by_arm[arm]["guesses"].get(str(position), []), truth)}</td>' for arm in shown)
        rows.append(f'<tr><th scope="row">{escape(_bare(truth))}</th>{cells}</tr>')
    return (
        f'<h3>Masked at {percent(rate)}</h3><p class="sentence">{_sentence(example, set(example["masked"]))}</p>'
        '<div class="scroll"><table class="guesses"><thead><tr><th>hidden</th>'
        f'{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _guesses(guesses: list, truth: str) -> str:
    words = []
    for piece, probability in guesses:
        text = f'{escape(_bare(piece))}&nbsp;<small>{100 * probability:.0f}</small>'
        words.append(f'<b>{text}</b>' if piece == truth else text)
    return ''.join(f'<span>{word}</span>' for word in words)


def _sentence(example: dict, masked: set[int]) -> str:
    """The text, its hidden pieces boxed. SentencePiece's mark of a word's start is a space; WordPiece's ## joins."""
    sentencepiece = any('▁' in piece for piece in example['pieces'])
    parts = []
    for position, piece in enumerate(example['pieces']):
        starts = piece.startswith('▁') if sentencepiece else not piece.startswith('##')
        text = escape(piece.lstrip('▁') if sentencepiece else piece.removeprefix('##'))
        parts.append(
            (' ' if starts and position else '') + (f'<mark>{text or " "}</mark>' if position in masked else text)
        )
    return ''.join(parts)


def _bare(piece: str) -> str:
    """A piece as it is shown in a table: a dot stands for SentencePiece's space."""
    return piece.replace('▁', '·')
