"""Tasks from folders in their original forms, and what is wrong with such folders, in one line each."""

import gzip
import json

import pytest

from data.config import DataConfig
from data.corpus import Document
from data.errors import UserError
from data.prepare import prepare
from data.tasks import corpus_task
from data.tasks.config import TaskConfig
from data.tasks.glue import GLUE
from data.tasks.registry import load_task
from data.tasks.scores import scores
from data.tasks.slices import hold_out, limited
from data.tasks.squad import read_squad
from tests.data.corpora import quiet, small_config, speeches, write_jsonl
from tests.data.tasks.task_files import CONLL, CONTEXT, PARAGRAPHS, write, write_glue, write_squad


@pytest.fixture(scope='module')
def glue(tmp_path_factory):
    return write_glue(tmp_path_factory.mktemp('glue'))


def test_all_of_glue_by_its_official_files(glue):
    for name in GLUE:
        task = load_task(TaskConfig(name, str(glue)))
        assert load_task(TaskConfig(name, str(glue / GLUE[name].folder))) == task
        assert {'train', 'dev', 'test'} <= set(task.splits)
        assert all(example.label is not None for split in ('train', 'dev') for example in task.splits[split]), name
        assert all(example.label is None for example in task.splits['test']), name
        if task.kind == 'classification':
            assert {example.label for example in task.splits['train']} == set(task.labels), name
    assert set(load_task(TaskConfig('mnli', str(glue))).splits) == {
        'train', 'dev', 'dev_mismatched', 'test', 'test_mismatched',
    }  # fmt: skip


def test_labels_go_by_name_and_texts_are_as_they_stand(glue):
    def first(name, split='dev'):
        return load_task(TaskConfig(name, str(glue))).splits[split][0]

    assert (first('cola').first, first('cola').second, first('cola').label) == (
        '"The sailors rode.',
        None,
        'acceptable',
    )
    assert (first('sst2').first, first('sst2').label) == ('charming ', 'positive')
    assert (first('mrpc', 'train').first, first('mrpc', 'train').second) == ('He "said', 'He said')
    assert first('mrpc').label == 'equivalent' and first('stsb').label == 5.0
    assert first('qqp').label == 'duplicate'
    # The gold label, not the first annotator's.
    assert first('mnli').label == 'contradiction' and first('mnli', 'dev_mismatched').label == 'entailment'
    assert (first('qnli').first, first('qnli').second, first('qnli').label) == ('What?', 'That.', 'not_entailment')
    assert first('rte').label == 'entailment' and first('wnli').label == 'not_entailment'
    sst2 = load_task(TaskConfig('sst2', str(glue)))
    assert sst2.splits['train'][3].first == 'no \u2028 end ' and len(sst2.splits['train']) == 4


ATTACKED = {
    'sst2': [{'idx': 7, 'sentence': 'a "fine film', 'label': 1}],
    'qqp': [{'idx': 0, 'question1': 'Who?', 'question2': 'Whom?', 'label': 0}],
    'mnli': [{'idx': 0, 'premise': 'A', 'hypothesis': 'B', 'label': 2}],
    'mnli-mm': [{'idx': 0, 'premise': 'C', 'hypothesis': 'D', 'label': 0}],
    'qnli': [{'idx': 0, 'question': 'Q?', 'sentence': 'S.', 'label': 0}],
    'rte': [{'idx': 0, 'sentence1': 'A', 'sentence2': 'B', 'label': 1}],
}


def test_attacked_examples_and_the_diagnostic_set_are_found_beside_the_tasks(tmp_path):
    folder = write_glue(tmp_path)
    write(folder / 'AdvGLUE' / 'dev_ann.json', json.dumps(ATTACKED))
    write(folder / 'diagnostic' / 'diagnostic.tsv', 'index\tsentence1\tsentence2\n0\tA\tB\n')
    labels = {}
    for name in GLUE:
        splits = load_task(TaskConfig(name, str(folder))).splits
        found = {split: examples for split, examples in splits.items() if split.startswith('adversarial')}
        labels[name] = [example.label for examples in found.values() for example in examples]
    assert {name: each for name, each in labels.items() if each} == {
        'sst2': ['positive'],
        'qqp': ['not_duplicate'],
        'mnli': ['contradiction', 'entailment'],
        'qnli': ['entailment'],
        'rte': ['not_entailment'],
    }
    sst2, mnli = (load_task(TaskConfig(name, str(folder))).splits for name in ('sst2', 'mnli'))
    (example,) = sst2['adversarial']
    assert (example.id, example.first, example.second) == ('7', 'a "fine film', None)
    (example,) = mnli['adversarial_mismatched']
    assert (example.first, example.second) == ('C', 'D')
    assert [(e.first, e.label) for e in mnli['test_diagnostic']] == [('A', None)]


@pytest.mark.parametrize('item', [{}, {'sentence': 'a', 'label': '1'}, {'sentence': 3, 'label': 1}, [], {'label': 2}])
def test_a_file_of_another_form_is_not_taken_for_attacked_examples(tmp_path, item):
    folder = write_glue(tmp_path)
    write(folder / 'AdvGLUE' / 'dev_ann.json', json.dumps({'sst2': [item]}))
    with pytest.raises(UserError, match='dev_ann.json: not in the form of AdvGLUE'):
        load_task(TaskConfig('sst2', str(folder)))


def test_rows_that_do_not_fit_are_counted_by_line(glue, tmp_path):
    (note,) = load_task(TaskConfig('qqp', str(glue))).notes
    assert note == f'{glue}/QQP/train.tsv: left out 1 of other than 6 fields, line 2'
    (note,) = load_task(TaskConfig('mnli', str(glue))).notes
    assert note.endswith("train.tsv: left out 1 without a gold label (none, or '-'), line 5")
    # Without a header, and the first line at fault.
    rows = ['1\t2\t3\tHow?\tWhy? 0', *(f'{i}\t2\t3\tHow {i}?\tWhy?\t{i % 2}' for i in range(30))]
    write(tmp_path / 'train_subset.tsv', '\r\n'.join(rows) + '\r\n\r\n')
    task = load_task(TaskConfig('qqp', str(tmp_path)))
    assert task.notes[0].endswith('left out 1 of other than 6 fields, line 1')
    assert task.notes[1].endswith('left out 1 blank, line 32')
    assert len(task.splits['train']) + len(task.splits['dev']) == 30 and len(task.splits['dev']) == 3
    assert {example.label for example in task.splits['train']} == {'duplicate', 'not_duplicate'}


def test_mrpc_by_the_names_of_its_authors(tmp_path):
    rows = [f'{i % 2}\t{i}\t{i}\tA {i}\tB' for i in range(20)]
    content = '\n'.join(['\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String', *rows])
    write(tmp_path / 'msr_paraphrase_train.txt', content)
    write(tmp_path / 'msr_paraphrase_test.txt', content)
    task = load_task(TaskConfig('mrpc', str(tmp_path)))
    assert {split: len(examples) for split, examples in task.splits.items()} == {'train': 18, 'dev': 2, 'test': 20}
    assert task.splits['test'][1].label == 'equivalent'  # labelled, as GLUE's is not


def test_a_table_by_its_columns(tmp_path):
    rows = [{'text': f'a {i}', 'kind': 'xy'[i % 2], 'size': i / 2} for i in range(40)]
    lines = [json.dumps(row) for row in rows]
    lines[3:3] = ['', '[1]', '{"text": "no kind"}', '{"text": "b", "kind": null, "size": 1}']
    path = tmp_path / 'all.jsonl.gz'
    path.write_bytes(gzip.compress('\n'.join(lines).encode()))
    task = load_task(TaskConfig('table', str(path), first='text', label='kind'))
    assert task.labels == ('x', 'y') and len(task.splits['dev']) == 4 and task.metrics == ('accuracy', 'macro_f1')
    assert [note.split(': ')[1] for note in task.notes] == [
        'left out 1 that hold no JSON object, line 5',
        'left out 1 without text or kind, line 6',
        "left out 1 without a gold label (none, or '-'), line 7",
        'no dev file, so 4 of the 40 training examples are held out as dev',
    ]
    task = load_task(TaskConfig('table', str(path), first='text', second='text', label='size', target='numbers'))
    assert task.kind == 'regression' and task.splits['train'][1].second == task.splits['train'][1].first
    # A TSV without a header goes by number, and what follows the columns that are named may differ.
    write(tmp_path / 'tsv' / 'train.tsv', 'good\t1\tA\nbad\t0\tB\tC\nshort\n')
    write(tmp_path / 'tsv' / 'test.tsv', 'unseen\n')
    task = load_task(TaskConfig('table', str(tmp_path / 'tsv'), first='1', label='3'))
    assert task.notes[0].endswith('left out 1 of other than 3 fields, line 3') and task.labels == ('A', 'B')
    assert task.splits['test'][0].label is None
    write(tmp_path / 'json' / 'train.jsonl', '{"t": "a", "l": "x"}\n{"t": "b", "l": "y"}\n')
    write(tmp_path / 'json' / 'test.jsonl', '{"t": "c", "l": null}\n')
    task = load_task(TaskConfig('table', str(tmp_path / 'json'), first='t', label='l'))
    assert task.splits['test'][0].label is None


def test_conll_and_other_iob_files(tmp_path):
    write(tmp_path / 'conll' / 'eng.train', CONLL)
    write(tmp_path / 'conll' / 'eng.testa', CONLL.replace('Siemens', 'S\u00a0AG'))
    task = load_task(TaskConfig('tagging', str(tmp_path / 'conll')))
    assert task.labels == ('O', 'B-LOC', 'I-LOC', 'B-MISC', 'I-MISC', 'B-ORG', 'I-ORG', 'B-PER', 'I-PER')
    sentences = task.splits['train']
    assert sentences[0].words == ('EU', 'rejects', 'German', 'call')
    assert [sentence.tags for sentence in sentences] == [
        ('B-ORG', 'O', 'B-MISC', 'O'),
        ('B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC'),
        ('B-LOC', 'B-ORG'),
    ]
    assert [sentence.document for sentence in sentences] == ['eng.train:1', 'eng.train:1', 'eng.train:2']
    assert task.splits['dev'][2].words == ('Bonn', 'S\u00a0AG')
    assert 'the tags of 3 sentences were not IOB2' in task.notes[0]
    # IOB2 stays what it is; tabs, another column, a ragged sentence, words alone.
    iob2 = 'a\tB-X\t_\nb\tI-X\t_\n\nc\tB-X\t_\nd\tB-X\t_\n\ne\tO\n\nf\tI-Y\t_'
    task = load_task(TaskConfig('tagging', str(write(tmp_path / 'own.bio', iob2)), label='2'))
    tags = {sentence.words: sentence.tags for split in task.splits.values() for sentence in split}
    assert tags == {('a', 'b'): ('B-X', 'I-X'), ('c', 'd'): ('B-X', 'B-X'), ('f',): ('B-Y',)}
    assert task.notes[0].endswith('left out sentences: not 3 fields at line 7')
    write(tmp_path / 'conll' / 'test.txt', 'EU\nrejects\n')
    assert load_task(TaskConfig('tagging', str(tmp_path / 'conll'))).splits['test'][0].tags is None
    # A dev file of words alone is named, since nothing is scored on it.
    write(tmp_path / 'conll' / 'eng.testa', 'EU\nrejects\n')
    assert any(
        'eng.testa: has words alone' in note for note in load_task(TaskConfig('tagging', str(tmp_path / 'conll'))).notes
    )


def test_squad_by_file_or_folder(tmp_path):
    task = load_task(TaskConfig('squad1', str(write_squad(tmp_path / 'all.json'))))
    assert task.kind == 'span' and not task.no_answer and task.metrics == ('f1', 'exact_match')
    assert {q.document for q in task.splits['dev']} & {q.document for q in task.splits['train']} == set()
    assert sum(map(len, task.splits.values())) == 6
    impossible = [*PARAGRAPHS, ('D', 'None.', [('d1', 'Why?', None)])]
    write_squad(tmp_path / 'two' / 'train-v2.0.json', impossible)
    write_squad(tmp_path / 'two' / 'dev-v2.0.json')
    task = load_task(TaskConfig('squad2', str(tmp_path / 'two')))
    assert task.no_answer and [q.id for q in task.splits['train'] if q.impossible] == ['d1']
    assert task.splits['dev'][0].context == CONTEXT


@pytest.mark.parametrize(('first', 'label'), [('1', '2'), ('2', '1')])
def test_a_test_file_without_a_header_keeps_its_labels(tmp_path, first, label):
    """Whichever column they are in; one without them is read, too."""
    rows = [('a', 'x'), ('b', 'y'), ('c', 'x')]
    for split in ('train', 'dev', 'test'):
        write(tmp_path / f'{split}.tsv', '\n'.join('\t'.join(row if first == '1' else row[::-1]) for row in rows))
    config = TaskConfig('table', str(tmp_path), first=first, label=label)
    assert [example.label for example in load_task(config).splits['test']] == ['x', 'y', 'x']
    if first == '1':
        write(tmp_path / 'test.tsv', 'a\nb\tstray\nc')
        assert [example.label for example in load_task(config).splits['test']] == [None, None, None]


def test_half_a_letter_is_held_out_like_any_text(tmp_path):
    """JSON can hold a surrogate alone, which UTF-8 cannot."""
    lines = [json.dumps({'t': f'{i} \ud800', 'l': 'xy'[i % 2]}) for i in range(20)]
    write(tmp_path / 'train.jsonl', '\n'.join(lines))
    task = load_task(TaskConfig('table', str(tmp_path), first='t', label='l'))
    assert len(task.splits['dev']) == 2 and len(task.splits['train']) == 18


def test_a_question_without_answers_is_impossible_whatever_it_says(tmp_path):
    """The official script of 2.0 goes by the answers."""
    unsaid = [*PARAGRAPHS, ('D', 'None.', [('d1', 'Why?', [])])]
    for split in ('train', 'dev', 'test'):
        write_squad(tmp_path / f'{split}.json', unsaid)
    for questions in load_task(TaskConfig('squad2', str(tmp_path))).splits.values():
        assert [question.id for question in questions if question.impossible] == ['d1']
    # And one that says so beside its answers is answered.
    said = read_squad(write_squad(tmp_path / 'said.json'), 'utf-8')
    tree = json.loads((tmp_path / 'said.json').read_text())
    for paragraph in (each for article in tree['data'] for each in article['paragraphs']):
        paragraph['qas'] = [{**entry, 'is_impossible': True} for entry in paragraph['qas']]
    (tmp_path / 'said.json').write_text(json.dumps(tree))
    assert read_squad(tmp_path / 'said.json', 'utf-8') == said
    # In a test file without any answer they are kept back.
    write_squad(tmp_path / 'test.json', unsaid[-1:])
    assert not load_task(TaskConfig('squad2', str(tmp_path))).splits['test'][0].impossible


def test_a_few_answers_off_their_place_are_named_and_not_trained_on(tmp_path):
    def of(split, start):
        questions = [*((f'q{i}', 'When?', [('1989', 10)]) for i in range(199)), ('bad', '?', [('1989', start)])]
        write_squad(tmp_path / f'{split}.json', [(split, 'It was in 1989.', questions)])

    of('train', 9)
    of('dev', 8)
    task = load_task(TaskConfig('squad1', str(tmp_path)))
    assert len(task.splits['train']) == 199 and 'bad' not in {question.id for question in task.splits['train']}
    # The official script scores by the texts.
    assert [question.id for question in task.splits['dev']][-1] == 'bad' and len(task.splits['dev']) == 200
    assert scores(task, ['1989'] * 200, task.splits['dev'])['exact_match'] == 100
    off = '1 of 200 questions have an answer that is not in its place: bad'
    assert [note.partition(': ')[2] for note in task.notes[:2]] == [
        f"{off} ('1989' is not at 9); left out",
        f"{off} ('1989' is not at 8); scored all the same",
    ]


def test_other_encodings_and_splits_that_are_not_there(tmp_path):
    write(tmp_path / 'train.tsv', 'sentence\tlabel\ncafé\t1\nnon\t0', 'latin-1')
    task = load_task(TaskConfig('sst2', str(tmp_path), encoding='latin-1'))
    assert {example.first for split in task.splits.values() for example in split} == {'café', 'non'}
    with pytest.raises(UserError, match='its data has no test split, only train, dev'):
        task.examples('test')
    with pytest.raises(UserError, match='made of the corpus of a pretrained run'):
        load_task(TaskConfig('corpus:century'))


def test_what_is_held_out_is_whole_documents_and_the_same_each_time(glue, tmp_path):
    rows = [f'same {i // 4}\tb{i}\t{i % 2}' for i in range(80)]
    path = write(tmp_path / 'a.tsv', 'x\ty\tz\n' + '\n'.join(rows))
    config = TaskConfig('table', str(path), 'x', 'y', 'z')
    task = load_task(config)
    dev, train = ({example.first for example in task.splits[split]} for split in ('dev', 'train'))
    assert len(dev) == 2 and len(train) == 18 and not dev & train
    assert load_task(config) == task
    sliced = hold_out(task, 0.25, 'tune')
    assert len({example.first for example in sliced.splits['tune']}) == round(0.25 * 18)
    assert sorted(e.id for s in ('tune', 'train') for e in sliced.splits[s]) == sorted(
        e.id for e in task.splits['train']
    )
    # Another order of the same rows holds out the same ones.
    path = write(tmp_path / 'b.tsv', 'x\ty\tz\n' + '\n'.join(rows[::-1]))
    assert {e.first for e in load_task(TaskConfig('table', str(path), 'x', 'y', 'z')).splits['dev']} == dev
    few = limited(task, 'train', 10)
    assert len(few.splits['train']) == 10 and few.splits['dev'] == task.splits['dev']
    assert [e for e in task.splits['train'] if e in few.splits['train']] == few.splits['train']
    assert limited(task, 'train', 1000) == task
    with pytest.raises(UserError, match='all of one document'):
        hold_out(
            load_task(TaskConfig('squad1', str(write_squad(tmp_path / 'd' / 'train.json', PARAGRAPHS[:1])))), 0.2, 'x'
        )


def test_a_task_of_the_corpus_is_held_out_of_pretraining(tmp_path):
    records = [{'text': text, 'label': 'early' if number < 40 else 'late'} for number, text in enumerate(speeches(80))]
    config = small_config(write_jsonl(tmp_path / 'speeches.jsonl', records), heldout_percent=30)
    task = load_task(TaskConfig('corpus:label'), config)
    store = prepare(config, tmp_path / 'store', log=quiet)
    assert task.labels == ('early', 'late')
    documents = {split: {int(example.document) for example in task.splits[split]} for split in ('train', 'dev')}
    assert not documents['train'] & documents['dev']
    assert documents['train'] | documents['dev'] == set(range(len(store.heldout.labels)))
    for split in ('train', 'dev'):
        for example in task.splits[split]:
            # Of the store's held-out document of that number: its label, and its tokens.
            number = int(example.document)
            assert example.label == store.heldout.labels[number]
            first, last = store.heldout.document_offsets[number : number + 2]
            tokens = ' '.join(map(str, store.heldout.tokens[first:last].tolist()))
            assert ' '.join(map(str, store.tokenizer.encode([example.first])[0].tolist())) in tokens
            assert len(example.first.split()) >= 8
    texts = [example.first for split in task.splits.values() for example in split]
    assert len(set(texts)) == len(texts) > 100
    with pytest.raises(UserError, match='has no label mood; it has label'):
        load_task(TaskConfig('corpus:mood'), config)
    with pytest.raises(UserError, match='no label has two held-out documents'):
        load_task(TaskConfig('corpus:label'), small_config(config.corpus.removeprefix('files:'), heldout_percent=0.001))


def test_a_label_that_training_lacks_is_not_tested_on(monkeypatch):
    """Of its two documents the one to learn from is a heading alone."""

    def made(*paragraphs):
        documents = [('war', 'on the war'), ('peace', 'on the peace'), ('rare', ''), ('rare', 'on what is rare')]
        documents += [('war', 'on the other war'), ('peace', 'on the other peace')]
        for label, text in documents:
            blocks = [f'What was said in {year} {text} of all' for year in (1801, 1802)] if text else ['A heading']
            yield Document('', '', {'label': label}), blocks

    monkeypatch.setattr(corpus_task, 'heldout_documents', made)
    task = load_task(TaskConfig('corpus:label'), DataConfig())
    assert task.labels == ('peace', 'war')
    assert [example.label for example in task.splits['dev']] == ['war', 'war', 'peace', 'peace']
    assert task.notes == ('corpus:label: left out 2 of 6 dev paragraphs, whose label no training paragraph has: rare',)


def test_the_century_and_the_party_of_the_embedded_corpus():
    task = load_task(TaskConfig('corpus:century'), DataConfig())
    assert task.labels == ('18th', '19th', '20th', '21st')
    assert len(task.splits['train']) > 1000 and len(task.splits['dev']) > 500
    assert {'Democratic', 'Republican', 'Whig'} <= set(load_task(TaskConfig('corpus:party'), DataConfig()).labels)
