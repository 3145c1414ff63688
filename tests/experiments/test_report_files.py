"""The files of a report, pooled workdirs, and the command."""

import copy
import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import UserError
from experiments import report
from experiments.reporting import write_report
from experiments.reporting.records import Row, read_csv, write_csv
from tests.experiments.report_case import (
    ARMS,
    RATES,
    cells,
    figure,
    finished_report,
    make_config,
    make_records,
    make_report,
    write_workdir,
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    return finished_report(tmp_path_factory.mktemp('masking_rate'))


def test_results_csv_holds_the_figures(finished):
    folder, records, _, _ = finished
    with (folder / 'results.csv').open(newline='') as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ['arm', 'seed', 'stage', 'step', 'metric', 'eval_rate', 'task', 'ft_seed', 'value']

    def key(line):
        return tuple('' if line[name] is None else str(line[name]) for name in Row._fields[:-1])

    written = {key(line): float(line['value']) for line in lines}
    assert written == {key(record): record['value'] for record in records if record['kind'] == 'figure'}
    assert len(written) == len(lines)


TEXT = st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\r'), min_size=1)
ROWS = st.builds(
    Row,
    arm=st.just('') | TEXT,
    seed=st.none() | st.integers(0, 2**32),
    stage=st.none() | st.integers(0, 3),
    step=st.none() | st.integers(0, 10**7),
    metric=TEXT,
    eval_rate=st.none() | st.floats(0, 1),
    task=st.none() | TEXT,
    ft_seed=st.none() | st.integers(0, 9),
    value=st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(ROWS, max_size=4))
@settings(deadline=None)
def test_results_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / 'rows.csv'
    write_csv(rows, path)
    assert read_csv(path) == rows


class Page(HTMLParser):
    """Collects tags and checks that they close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ('meta', 'img'):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(finished):
    folder, _, _, text = finished
    page = Page(text)
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert not {'script', 'link', 'iframe'} & set(names)
    assert 'http' not in re.sub('base64,[^"]*', '', text) and 'url(' not in text
    images = [attributes for tag, attributes in page.tags if tag == 'img']
    assert len(images) == 2 and all(image['src'].startswith('data:image/png;base64,') for image in images)
    assert all(image['alt'] for image in images)
    assert ('meta', {'name': 'viewport', 'content': 'width=device-width, initial-scale=1'}) in page.tags
    assert {path.name for path in folder.glob('*.png')} == {'differences.png', 'curves.png'}
    assert 'Claim: A claim &amp; its paper.' in text


def test_names_of_arms_are_text_everywhere(tmp_path):
    arms = {'<i>a|b': {}, '$x_1$ & "c"': {'masking.noise': 1}}
    table, page = make_report(tmp_path, make_config(arms), make_records(list(arms), range(2)))
    assert '<i>' not in page and '&lt;i&gt;a|b' in page and Page(page).open == []
    assert '<i>a\\|b' in table


def test_examples_stand_beside_the_truth(finished):
    _, records, _, page = finished
    assert '<strong>' not in page and '&lt;strong&gt;' in page
    assert [page.count(f'<h3>Masked at {rate:.0%}</h3>') for rate in RATES] == [2, 2, 2]
    shown = next(r for r in records if r['kind'] == 'example' and r['rate'] == 0.15 and r['sentence'] == 1)
    assert page.count('<table class="guesses">') == 6
    truth = shown['pieces'][shown['masked'][0]].replace('▁', '·')
    assert f'<th scope="row">{truth}</th>' in page
    guessed = shown['guesses'][str(shown['masked'][0])][0]
    bold = guessed[0] == shown['pieces'][shown['masked'][0]]
    text = f'{guessed[0].replace("▁", "·")}&nbsp;<small>41</small>'
    assert (f'<b>{text}</b>' if bold else f'<td><span>{text}') in page


def test_an_old_picture_goes(tmp_path):
    (tmp_path / 'p_values.png').write_bytes(b'old')
    make_report(tmp_path, make_config(ARMS), make_records(list(ARMS), range(2)))
    assert not (tmp_path / 'p_values.png').exists()


def test_the_order_of_the_arms_changes_no_number(tmp_path):
    records = make_records(list(ARMS), range(3))
    first, _ = make_report(tmp_path / 'a', make_config(ARMS), records)
    turned = {arm: ARMS[arm] for arm in reversed(ARMS)}
    other, _ = make_report(tmp_path / 'b', make_config(turned, baseline='15%'), records[::-1])
    for caption in ('Loss, nats a token', 'Accuracy, %', 'Loss at 15%: arm less 15%', 'Smallest difference'):
        assert sorted(cells(first, caption)) == sorted(cells(other, caption))


def test_pooled_workdirs_are_one_ablation(tmp_path):
    records = make_records(list(ARMS), range(4))
    whole, _ = make_report(tmp_path / 'whole', make_config(ARMS, range(4)), records)
    parts = []
    for seeds in ((0, 1), (2, 3)):
        config = make_config(ARMS, seeds)
        config['command'] = f'some command {seeds}'
        for arm in config['configs'].values():
            arm['run']['log_every'] = 7 + seeds[0]
            arm['optimizer']['micro_batches'] = 1 + seeds[0]
        kept = [record for record in records if record.get('seed') in (None, *seeds)]
        parts.append(write_workdir(tmp_path / f'part{seeds[0]}', config, kept))
    report.main([str(part) for part in parts])
    pooled = (tmp_path / 'part0_pooled' / 'table.md').read_text()
    for caption in ('Loss, nats a token', 'Accuracy, %', 'Loss at 15%: arm less 15%', 'Smallest difference', 'Other'):
        assert cells(pooled, caption) == cells(whole, caption)
    assert f'Pooled from {parts[0]} and {parts[1]}.' in pooled and pooled.count('Wall time 4 min 12 s') == 2
    assert read_csv(tmp_path / 'part0_pooled' / 'results.csv') == read_csv(tmp_path / 'whole' / 'results.csv')
    assert not (parts[0] / 'table.md').exists()


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (lambda c: c['configs']['30%']['optimizer'].update(learning_rate=0.1), 'optimizer.learning_rate (arm 30%)'),
        (lambda c: [a['stages'][0].update(steps=9) for a in c['configs'].values()], 'differ in stages.0.steps:'),
        (lambda c: c['ablation'].update(comparison='welch'), 'ablation.comparison'),
        (lambda c: c.update(scale='smoke', tokenizer='other'), 'scale, tokenizer'),
        (lambda c: c['ablation']['arms'].pop('40%'), 'arm 40% (only in one)'),
    ],
)
def test_workdirs_that_differ_are_refused_by_name(tmp_path, change, words):
    first = write_workdir(tmp_path / 'a', make_config(ARMS, range(2)), make_records(list(ARMS), range(2)))
    config = copy.deepcopy(make_config(ARMS, range(2, 4)))
    change(config)
    second = write_workdir(tmp_path / 'b', config, make_records(list(ARMS), range(2, 4)))
    with pytest.raises(UserError, match=re.escape(words)):
        write_report([first, second], tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_a_replica_twice_and_another_held_out_text_are_refused(tmp_path):
    first = write_workdir(tmp_path / 'a', make_config(ARMS), make_records(list(ARMS), range(3)))
    with pytest.raises(UserError, match='arm 15%, seed 0 is in .* and in'):
        write_report([first, first], tmp_path / 'out')
    records = make_records(list(ARMS), range(3, 5)) + [figure('', None, 'unigram_entropy', 5.5, step=None, stage=None)]
    second = write_workdir(tmp_path / 'b', make_config(ARMS), records)
    with pytest.raises(UserError, match='unigram_entropy .* held-out text differs'):
        write_report([first, second], tmp_path / 'out')


def run_command(*args: str) -> subprocess.CompletedProcess:
    code = (
        'import sys; from experiments import cli, report\n'
        'try: cli.run(report.main)\n'
        "finally: assert not {'jax', 'flax', 'orbax'} & set(sys.modules), 'jax was imported'"
    )
    return subprocess.run([sys.executable, '-c', code, *args], capture_output=True, text=True)


def test_the_command_prints_the_table_without_jax(finished):
    folder, _, _, _ = finished
    before = (folder / 'report.html').read_bytes()
    done = run_command(str(folder))
    assert done.returncode == 0, done.stderr
    assert '| 15% (baseline) ' in done.stdout and done.stdout.rstrip().endswith('report.html')
    assert (folder / 'report.html').read_bytes() == before  # the same records give the same bytes


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda folder: None, 'not a workdir'),
        (lambda folder: (folder / 'config.json').write_text('{'), 'cannot be read'),
        (lambda folder: (folder / 'config.json').write_text(json.dumps(make_config(ARMS))), 'metrics.jsonl'),
        (lambda folder: write_workdir(folder, make_config({}, baseline='x'), []), 'no trained arm yet'),
    ],
)
def test_a_workdir_that_is_none_gets_one_line(tmp_path, make, words):
    make(tmp_path)
    with pytest.raises(UserError, match=words) as error:
        report.main([str(tmp_path)])
    assert '\n' not in str(error.value)


def test_a_mistake_ends_with_code_2(tmp_path):
    done = run_command(str(tmp_path / 'none'))
    assert done.returncode == 2 and done.stderr.startswith('error: ') and done.stderr.count('\n') == 1
    with pytest.raises(UserError, match='name a workdir'):
        report.main([])
