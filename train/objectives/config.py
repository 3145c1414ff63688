"""Which objective, and the numbers of those that have a generator."""

from dataclasses import dataclass, field
from typing import Literal

from data.formats import Format
from data.pair_rows import Second
from model.config import GeneratorConfig


@dataclass(frozen=True)
class ObjectiveConfig:
    """What the model is trained to do."""

    name: Literal['mlm', 'electra', 'replace_mlm', 'all_tokens_mlm', 'mlm_nsp', 'mlm_sop', 'mlm_sbo'] = 'mlm'
    """Masked language modelling; which tokens a generator replaced (ELECTRA); MLM whose chosen tokens a generator
    replaced; the same of all tokens, with a gate for copying (Clark et al. 2020, Section 3.4). MLM with next-sentence
    prediction (Devlin et al. 2019, Section 3.1) or with sentence order (Lan et al. 2020, Section 3.1), which need rows
    of pairs. MLM with the span-boundary objective (Joshi et al. 2020, Section 3.2)."""
    rows: Format = 'full_sentences'
    """What a row is (Liu et al. 2019, Section 4.2): text as it comes, over the ends of documents; whole sentences of
    one document; two segments of whole sentences, [SEP] between them; two sentences."""
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    sampler: Literal['generator', 'disallow_correct', 'uniform'] = 'generator'
    """Where replacements come from: the generator; the generator with the right token left out; any ordinary token with
    equal chance (there is no generator then)."""
    temperature: float = 1.0
    """Of the generator's distribution when it is sampled from: below 1 is sharper."""
    detect: Literal['all', 'chosen'] = 'all'
    """electra: the tokens that detection is scored on: every valid one, or the chosen alone (ELECTRA 15%)."""
    detection_weight: float = 50.0
    """electra: weight of the detection loss beside the generator's of 1."""

    @property
    def predicts(self) -> bool:
        """Whether the model has an MLM head: a loss on masked tokens, and guesses for them."""
        return self.name != 'electra'

    @property
    def has_pairs(self) -> bool:
        """Whether a row is two segments, told apart by type ids."""
        return self.rows.endswith('_pairs')

    @property
    def judges_pairs(self) -> bool:
        """Whether there is a loss on what the second segment is."""
        return self.name in ('mlm_nsp', 'mlm_sop')

    @property
    def second(self) -> Second:
        """What the second segments of training rows are."""
        return {'mlm_nsp': 'random', 'mlm_sop': 'swapped'}.get(self.name, 'next')

    @property
    def has_generator(self) -> bool:
        return self.replaces and self.sampler != 'uniform'

    @property
    def scores_all(self) -> bool:
        """Whether every token is a target, not the chosen alone."""
        return self.name == 'all_tokens_mlm' or (self.name == 'electra' and self.detect == 'all')

    def states(self, length: int, slots: int) -> int:
        """Positions of a row of L tokens with M target slots at which the encoder's last layer computes states."""
        if self.scores_all:
            return length
        if self.name == 'mlm_sbo':  # a target's, and those of its span's two boundaries
            return min(length, 3 * slots)
        return slots + self.judges_pairs

    @property
    def replaces(self) -> bool:
        """Whether the model reads samples in place of the chosen tokens, and never [MASK]."""
        return self.name in ('electra', 'replace_mlm', 'all_tokens_mlm')

    def reads(self, field: str) -> bool:
        """Whether this objective depends on one of these fields."""
        if field in ('generator', 'temperature'):
            return self.has_generator
        if field in ('detect', 'detection_weight'):
            return self.name == 'electra'
        return field != 'sampler' or self.replaces

    def __post_init__(self):
        if self.judges_pairs and not self.has_pairs:
            raise ValueError(
                f'objective.name {self.name} judges pairs: set objective.rows to segment_pairs or sentence_pairs, '
                f'not {self.rows}'
            )
        if not 0 < self.temperature < float('inf'):
            raise ValueError(f'objective.temperature is {self.temperature}: use a number above 0')
        if not 0 <= self.detection_weight < float('inf'):
            raise ValueError(f'objective.detection_weight is {self.detection_weight}: use 0 or more')
        if self.sampler == 'uniform' and self.replaces and self.generator != GeneratorConfig():
            raise ValueError('objective.sampler uniform has no generator: leave objective.generator as it is')
