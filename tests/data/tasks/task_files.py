"""Small files with the traps of the real ones."""

import json
from pathlib import Path

GLUE_FILES = {
    'CoLA/train.tsv': [
        'gj04\t1\t\tOur friends won\'t "buy this.',
        'gj04\t0\t*\tThe more would.',
        'a\t1\t\tOne',
        'b\t0\t*\tTwo',
    ],
    'CoLA/dev.tsv': ['cj99\t1\t\t"The sailors rode.', 'cj99\t0\t*\tAs you eat the most.'],
    'CoLA/test.tsv': ['index\tsentence', '0\tBill whistled.', '1\tThe car honked.'],
    'SST-2/train.tsv': ['sentence\tlabel', "it 's good \t1", 'bad \t0', 'a " quote \t1', 'no \u2028 end \t0'],
    'SST-2/dev.tsv': ['sentence\tlabel', 'charming \t1', 'bleak \t0'],
    'SST-2/test.tsv': ['index\tsentence', '0\tuneasy mishmash'],
    'MRPC/train.tsv': [
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String',
        '1\t1\t2\tHe "said\tHe said',
        '0\t3\t4\tA\tB',
        '1\t5\t6\tC\tC',
    ],
    'MRPC/dev.tsv': ['\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String', '1\t7\t8\tX\tX', '0\t9\t10\tX\tY'],
    'MRPC/test.tsv': ['\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String', '0\t11\t12\tX\tZ'],
    'STS-B/train.tsv': [
        'index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore',
        *(f'{i}\tg\tf\t2012\t000{i}\tn\tn\tA plane" {i}.\tAn air plane.\t{i}.250' for i in range(4)),
    ],
    'STS-B/dev.tsv': [
        'index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore',
        '0\tg\tf\t2012\t0\tn\tn\tA man.\tA boy.\t5.000',
        '1\tg\tf\t2012\t1\tn\tn\tA man.\tA cat.\t0.600',
    ],
    'STS-B/test.tsv': [
        'index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2',
        '0\tg\tf\t1\t0\tn\tn\tA\tB',
    ],
    'QQP/train.tsv': [
        'id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate',
        '7\t1\t2\tHow?\tWhy? 0',
        '8\t3\t4\tHow?\tHow so?\t1',
        '9\t5\t6\tWhen?\tWhere?\t0',
    ],
    'QQP/dev.tsv': [
        'id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate',
        '1\t1\t2\tWho?\tWho is?\t1',
        '2\t3\t4\tA?\tB?\t0',
    ],
    'QQP/test.tsv': ['id\tquestion1\tquestion2', '0\tWho?\tWhat?'],
    'MNLI/train.tsv': [
        'index\tpromptID\tpairID\tsentence1\tsentence2\tlabel1\tgold_label',
        '0\t1\t1n\tA\tB\tneutral\tneutral',
        '1\t2\t2e\tA\tA\tentailment\tentailment',
        '2\t3\t3c\tA\tnot A\tcontradiction\tcontradiction',
        '3\t4\t4x\tA\tC\tneutral\t-',
    ],
    'MNLI/dev_matched.tsv': [
        'index\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label',
        '0\tA\tB\tneutral\tentailment\tneutral\tneutral\tneutral\tcontradiction',
        '1\tC\tD\te\te\te\te\te\tneutral',
    ],
    'MNLI/dev_mismatched.tsv': [
        'index\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label',
        '0\tE\tF\tn\tn\tn\tn\tn\tentailment',
    ],
    'MNLI/test_matched.tsv': ['index\tsentence1\tsentence2', '0\tA\tB'],
    'MNLI/test_mismatched.tsv': ['index\tsentence1\tsentence2', '0\tA\tB'],
    'QNLI/train.tsv': [
        'index\tquestion\tsentence\tlabel',
        '0\tWhat?\tThat.\tentailment',
        '1\tWho?\tNo.\tnot_entailment',
    ],
    'QNLI/dev.tsv': ['index\tquestion\tsentence\tlabel', '0\tWhat?\tThat.\tnot_entailment', '1\tW?\tT.\tentailment'],
    'QNLI/test.tsv': ['index\tquestion\tsentence', '0\tWhat?\tThat.'],
    'RTE/train.tsv': [
        'index\tsentence1\tsentence2\tlabel',
        '0\tNo Weapons.\tWeapons.\tnot_entailment',
        '1\tA\tA\tentailment',
    ],
    'RTE/dev.tsv': ['index\tsentence1\tsentence2\tlabel', '0\tX\tX\tentailment', '1\tX\tY\tnot_entailment'],
    'RTE/test.tsv': ['index\tsentence1\tsentence2', '0\tX\tY'],
    'WNLI/train.tsv': ['index\tsentence1\tsentence2\tlabel', '0\tI stuck a pin.\tIt had.\t1', '1\tA\tB\t0'],
    'WNLI/dev.tsv': ['index\tsentence1\tsentence2\tlabel', '0\tThe drain.\tThe hair.\t0', '1\tJane.\tSusan.\t1'],
    'WNLI/test.tsv': ['index\tsentence1\tsentence2', '0\tMaude.\tHorses.'],
}

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
Paul NNP I-NP B-PER
of IN I-PP O
Rome NNP I-NP I-LOC

-DOCSTART- -X- O O

Bonn NNP I-NP I-LOC
Siemens NNP I-NP I-ORG
"""

CONTEXT = 'The  Panthers — naïve “30–6” winners\tof 1966 — lost in the end to Łódź, e\u0301ternally.'


def write(path: Path, text: str, encoding: str = 'utf-8') -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def write_glue(folder: Path) -> Path:
    for name, lines in GLUE_FILES.items():
        write(folder / name, '\n'.join(lines) + '\n')
    return folder


def squad_tree(paragraphs) -> dict:
    """SQuAD's form of (title, context, [(id, question, [(text, start)] or None)])."""
    data = []
    for title, context, questions in paragraphs:
        qas = [
            {
                'id': name,
                'question': question,
                'answers': [{'text': text, 'answer_start': start} for text, start in answers or ()],
                **({'is_impossible': True} if answers is None else {}),
            }
            for name, question, answers in questions
        ]
        data.append({'title': title, 'paragraphs': [{'context': context, 'qas': qas}]})
    return {'version': '1.1', 'data': data}


def answer(text: str, context: str = CONTEXT) -> tuple[str, int]:
    return text, context.index(text)


PARAGRAPHS = [
    ('A', CONTEXT, [('a1', 'What score?', [answer('“30–6”')]), ('a2', 'Where?', [answer('Łódź'), answer('the end')])]),
    ('B', 'Nobody won in Bonn.', [('b1', 'Who won?', [('Nobody', 0)]), ('b2', 'Where?', [('Bonn', 14)])]),
    ('C', 'It was in 1989.', [('c1', 'When?', [('1989', 10)]), ('c2', 'When was it?', [('in 1989', 7)])]),
]


def write_squad(path: Path, paragraphs=PARAGRAPHS) -> Path:
    return write(path, json.dumps(squad_tree(paragraphs), ensure_ascii=False))
