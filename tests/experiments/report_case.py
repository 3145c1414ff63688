"""Synthetic workdirs, their reports, and plain references for the numbers in them."""

import copy
import json
import re
from pathlib import Path

import numpy as np
from scipy import stats

from experiments.reporting import write_report

RATES = (0.15, 0.3, 0.4)
LOSSES = {'15%': (4.75, 5.10, 5.30), '30%': (4.40, 4.70, 4.90), '40%': (4.45, 4.72, 4.88)}
"""Mean loss of each arm at each evaluation rate."""
STAGES = [{'length': 64, 'batch_size': 16, 'steps': 500}, {'length': 128, 'batch_size': 8, 'steps': 100}]


def make_config(arms: dict[str, dict], seeds=range(3), **ablation) -> dict:
    """config.json of an ablation; each arm as {dotted field: value}."""
    base = {
        'data': {'corpus': 'sotu', 'store': ''},
        'model': {'width': 64, 'dropout': 0.1, 'norm': 'pre', 'vocab_size': 1024},
        'masking': {
            'corruption_rate': 0.15,
            'rate_points': [],
            'prediction_rate': None,
            'noise': 0,
            'rule': [1.0, 0.0, 0.0],
        },
        'optimizer': {'learning_rate': 0.002, 'micro_batches': 1},
        'stages': STAGES,
        'run': {'log_every': 50},
    }
    configs = {}
    for arm, changes in arms.items():
        configs[arm] = copy.deepcopy(base)
        for path, value in changes.items():
            section, name = path.split('.')
            configs[arm].setdefault(section, {})[name] = value
    return {
        'ablation': {
            'name': 'masking_rate',
            'claim': 'A claim & its paper.',
            'baseline': next(iter(arms), ''),
            'primary': 'loss',
            'primary_rate': 0.15,
            'comparison': 'paired',
            'all_pairs': False,
            'published': [],
            'arms': arms,
            **ablation,
        },
        'scale': 'cpu',
        'configs': configs,
        'command': 'python -m experiments.ablate configs/masking_rate.py',
        'tokenizer': 'abc',
        'cohorts': [{'name': '0', 'replicas': [[arm, seed] for seed in seeds for arm in arms]}],
        'grid': None,
    }


def figure(arm, seed, metric, value, rate=None, task=None, step=600, stage=1) -> dict:
    return {
        'kind': 'figure', 'arm': arm, 'seed': seed, 'stage': stage, 'step': step, 'metric': metric,
        'eval_rate': rate, 'task': task, 'ft_seed': None, 'value': value,
    }  # fmt: skip


def make_records(arms: list[str], seeds, losses=None, own=None) -> list[dict]:
    """What a finished ablation leaves: figures, curves, examples, counts and wall times."""
    run = {'kind': 'run', 'cohort': '0'}
    records = [
        {**run, 'event': 'start', 'date': '2026-11-30', 'host': 'x86_64, 2 x cpu', 'versions': {'jax': '0.10.2'}}
    ]
    for index, arm in enumerate(arms):
        means = (losses or LOSSES).get(arm, (4.6, 4.9, 5.1))
        for seed in seeds:
            random = np.random.default_rng([index, seed])
            shared = np.random.default_rng([99, seed]).normal(0, 0.05)
            for rate, mean in zip(RATES, means, strict=True):
                value = mean + shared + random.normal(0, 0.02)
                records.append(figure(arm, seed, 'loss', value, rate))
                records.append(figure(arm, seed, 'accuracy', 90 - 100 * value / 7, rate))
            rate = (own or dict(zip(LOSSES, RATES, strict=True))).get(arm, 0.15)
            records.append(figure(arm, seed, 'own_loss', means[0] + 2 * rate + shared, rate))
            records.append(figure(arm, seed, 'own_accuracy', 20 + random.normal(0, 1), rate))
            records.append(figure(arm, seed, 'likelihood', -7.1 + random.normal(0, 0.1)))
            records.append(figure(arm, seed, 'probe', 61 + random.normal(0, 2), task='century'))
            for metric, value in (('flops', 3.1e12 * (1 + rate)), ('tokens', 614_400), ('targets', 614_400 * rate)):
                records.append(figure(arm, seed, metric, value))
            for step in range(100, 601, 100):
                value = means[0] + (5.9 - means[0]) * np.exp(-step / 150) + shared + random.normal(0, 0.01)
                records.append(figure(arm, seed, 'curve_loss', value, 0.15, step=step, stage=int(step > 500)))
            records += [example(arm, seed, rate, sentence, random) for rate in RATES for sentence in range(2)]
    records.append(figure('', None, 'unigram_entropy', 5.731, step=None, stage=None))
    for rate in RATES:
        for metric, value in (('unigram_loss', 5.74), ('left_loss', 5.12 + rate / 9), ('both_loss', 4.83 + rate / 3)):
            records.append(figure('', None, metric, value, rate, step=None, stage=None))
    records.append(figure('', None, 'probe_majority', 47.5, task='century', step=None, stage=None))
    return [*records, {**run, 'event': 'end', 'training': 198.0, 'seconds': 252.4}]


def with_controls(config: dict, records: list[dict], twins: list[tuple[str, int]]) -> tuple[dict, list[dict]]:
    """The same with an A/A control of each (arm, seed): its twin's records, each figure moved by chance."""
    config, random = copy.deepcopy(config), np.random.default_rng(11)
    added = []
    for arm, seed in twins:
        name = f'{arm} (A/A)'
        config['configs'][name] = copy.deepcopy(config['configs'][arm])
        config['configs'][name]['masking']['noise'] += 1
        config['cohorts'][-1]['replicas'].append([name, seed])
        for record in records:
            if (record.get('arm'), record.get('seed')) == (arm, seed):
                moved = {'value': record['value'] + random.normal(0, 0.03)} if record['kind'] == 'figure' else {}
                added.append({**record, 'arm': name, **moved})
    return config, records + added


def example(arm, seed, rate, sentence, random) -> dict:
    text = ['▁The', '▁state', '▁of', '▁the', '▁Un', 'ion', '▁is', '▁<strong>', '▁and', '▁our', '▁people', '▁have']
    text += ['▁never', '▁been', '▁more', '▁hope', 'ful', '.']
    masked = [position for position in range(len(text)) if (position * 7 + sentence) % 20 < rate * 20]
    guesses = {
        str(p): [[text[p] if random.random() < 0.3 else '▁of', 0.41], ['▁and', 0.12], ['▁the', 0.05]] for p in masked
    }
    return {
        'kind': 'example', 'arm': arm, 'seed': seed, 'rate': rate, 'sentence': sentence, 'pieces': text,
        'masked': masked, 'guesses': guesses,
    }  # fmt: skip


def write_workdir(folder: Path, config: dict, records: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps(config))
    (folder / 'metrics.jsonl').write_text(''.join(json.dumps(record) + '\n' for record in records))
    return folder


def make_report(folder: Path, config: dict, records: list[dict]) -> tuple[str, str]:
    """table.md and report.html of one workdir, which hold no nan, no None and no minus zero."""
    write_workdir(folder, config, records)
    terminal = write_report([folder], folder)
    table, page = (folder / 'table.md').read_text(), (folder / 'report.html').read_text()
    for text in (terminal, table, re.sub('base64,[^"]*', '', page)):
        assert not re.search(r'\bnan\b|\bNone\b|\binf\b|[-−]0\.0+\b(?!\d)', text)
    return table, page


def cells(table: str, caption: str) -> list[list[str]]:
    """Rows of the Markdown table under a caption, the header first."""
    lines = table.split(f'**{caption}')[1].split('\n\n')[1].splitlines()
    rows = [[cell.strip() for cell in line.strip('|').split(' | ')] for line in lines]
    return [rows[0], *rows[2:]]


def values_of(records, metric, rate=None) -> dict[str, np.ndarray]:
    """Arm -> final values in the order of the seeds, by a plain loop."""
    found: dict[str, list] = {}
    for record in records:
        wanted = record['kind'] == 'figure' and record['metric'] == metric and record['arm']
        if wanted and rate in (None, record['eval_rate']):
            found.setdefault(record['arm'], []).append(record['value'])
    return {arm: np.array(values) for arm, values in found.items()}


def half_width(values) -> float:
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))


ARMS = {'15%': {}, '30%': {'masking.corruption_rate': 0.3}, '40%': {'masking.corruption_rate': 0.4}}
SEEDS = range(4)
PUBLISHED = [
    {'arm': arm, 'metric': 'MNLI', 'value': value, 'source': 'A Paper, Table 7'}
    for arm, value in (('15%', 84.2), ('40%', 84.5), ('80%', 80.8))
]


def finished_report(folder: Path) -> tuple[Path, list[dict], str, str]:
    """A finished ablation: its folder, records, table.md and report.html."""
    records = make_records(list(ARMS), SEEDS)
    return folder, records, *make_report(folder, make_config(ARMS, SEEDS, published=PUBLISHED), records)
