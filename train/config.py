"""One run, whole: the tree that a config file, an arm and the command line fill in."""

from dataclasses import dataclass, field
from typing import Literal

from data.config import DataConfig
from data.tasks.config import TaskConfig
from model.config import ModelConfig, generator_model
from train.finetuning.recipe import Recipe
from train.objectives.config import ObjectiveConfig


@dataclass(frozen=True)
class MaskingConfig:
    """Which tokens are corrupted and scored, and how."""

    corruption_rate: float = 0.15
    """Share of maskable tokens whose input may be changed (at the start of the run, if rate_points are given)."""
    rate_points: tuple[tuple[float, float], ...] = ()
    """A schedule: further points (share of the run's steps, corruption rate), the shares rising, up to 1."""
    rate_curve: Literal['linear', 'cosine', 'step'] = 'linear'
    """How the rate goes from one point to the next."""
    prediction_rate: float | None = None
    """Share of maskable tokens that are scored; None: the corruption rate (Wettig et al. 2023, Section 5)."""
    rule: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Corruption rule: shares of chosen tokens that become [MASK], a random token, or stay."""
    unit: Literal['token', 'word', 'span', 'collocation'] = 'token'
    """What is masked together: single tokens, whole words, spans of 1 to 10 words (Joshi et al. 2020, Section 3.1; the
    corruption rule is then drawn once a span), or collocations mined from the corpus (Levine et al. 2021). The rates
    stay those of tokens."""
    duplicates: int = 0
    """Static masking: how many masks each row has, used in turn (RoBERTa's Table 1: 10). 0: a new one each epoch."""
    noise: int = 0
    """Mixed into the seed of masks and replacements alone: identical arms with other noise are A/A controls."""

    def __post_init__(self):
        rates = {'corruption_rate': self.corruption_rate}
        rates.update({f'rate_points {share}': rate for share, rate in self.rate_points})
        if self.prediction_rate is not None:
            rates['prediction_rate'] = self.prediction_rate
        for name, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f'masking.{name} is {rate}: a rate lies between 0 and 1')
        if not (min(self.rule) >= 0 and abs(sum(self.rule) - 1) <= 1e-6):  # neither holds of nan
            raise ValueError(f'masking.rule {self.rule} sums to {sum(self.rule):g}: the three shares must sum to 1')
        shares = [share for share, _ in self.rate_points]
        if shares != sorted(set(shares)) or (shares and not (shares[0] > 0 and shares[-1] <= 1)):
            raise ValueError(f'masking.rate_points {self.rate_points}: shares of the run must rise within (0, 1]')
        if self.prediction_rate is not None and self.rate_points:
            raise ValueError('masking.prediction_rate and masking.rate_points do not go together: leave one out')
        if self.prediction_rate and self.corruption_rate < 1e-5:
            raise ValueError('masking.prediction_rate needs a masking.corruption_rate of 0.00001 or more')
        if not 0 <= self.noise < 2**31:
            raise ValueError(f'masking.noise is {self.noise}: use 0 or more, below 2**31')
        if not 0 <= self.duplicates < 2**31:
            raise ValueError(f'masking.duplicates is {self.duplicates}: use 0 (dynamic masking) or more, below 2**31')


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW or LAMB, and the learning rate's course."""

    name: Literal['adamw', 'lamb'] = 'adamw'
    """adamw (Loshchilov and Hutter 2019) or lamb (You et al. 2020)."""
    learning_rate: float = 1e-3
    """Peak learning rate."""
    schedule: Literal['linear', 'trapezoidal'] = 'linear'
    """After the warmup: linear decay to 0, or constant and then linear decay to 0 over the last decay_share."""
    warmup_share: float = 0.06
    """Share of a schedule's steps in which the rate rises from 0."""
    decay_share: float = 0.1
    """Share of a trapezoidal schedule's steps in which the rate falls to 0."""
    beta1: float = 0.9
    """Decay of the first moment."""
    beta2: float = 0.98
    """Decay of the second moment."""
    epsilon: float = 1e-6
    """Added to the root of the second moment."""
    bias_correction: bool = True
    """False: BERT's own form, moments not corrected for their start at zero."""
    weight_decay: float = 0.01
    """Decoupled weight decay of kernels and embeddings."""
    clip_norm: float = 0.0
    """Gradients are scaled down to this global norm (0: never)."""
    micro_batches: int = 1
    """Parts that a batch is cut into, one after another, to save memory. Changes rounding, and dropout's noise."""

    def __post_init__(self):
        for name in ('warmup_share', 'decay_share'):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f'optimizer.{name} is {getattr(self, name)}: use a share between 0 and 1')
        for name in ('beta1', 'beta2'):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f'optimizer.{name} is {getattr(self, name)}: use a number from 0 to below 1')
        for name in ('learning_rate', 'weight_decay', 'clip_norm'):
            if not 0 <= getattr(self, name) < float('inf'):
                raise ValueError(f'optimizer.{name} is {getattr(self, name)}: use 0 or more')
        if not 0 < self.epsilon < float('inf'):
            raise ValueError(f'optimizer.epsilon is {self.epsilon}: use a number above 0')
        if self.micro_batches < 1:
            raise ValueError(f'optimizer.micro_batches is {self.micro_batches}: use 1 or more')


@dataclass(frozen=True)
class Stage:
    """A stretch of a run with one length."""

    length: int
    """Tokens a row, L, with its [CLS] and [SEP]."""
    batch_size: int
    """Rows a step, B."""
    steps: int
    """Updates."""
    restart: bool = False
    """Start a learning-rate schedule of its own here (warmup and decay); otherwise the one before runs on."""
    peak_scale: float = 1.0
    """Peak of the schedule that starts here, as a multiple of optimizer.learning_rate."""
    warmup_share: float | None = None
    """Warmup of the schedule that starts here; None: optimizer.warmup_share."""

    def __post_init__(self):
        if self.length < 8:
            raise ValueError(f'stages.length is {self.length}: use 8 or more')
        if self.batch_size < 1 or self.steps < 1:
            raise ValueError(f'stages: batch_size {self.batch_size} and steps {self.steps} must be 1 or more')
        if not self.restart and (self.peak_scale != 1.0 or self.warmup_share is not None):
            raise ValueError('stages: peak_scale and warmup_share need restart True (a schedule that starts here)')
        if not 0 <= self.peak_scale < float('inf'):
            raise ValueError(f'stages.peak_scale is {self.peak_scale}: use 0 or more')
        if self.warmup_share is not None and not 0 <= self.warmup_share <= 1:
            raise ValueError(f'stages.warmup_share is {self.warmup_share}: use a share between 0 and 1')


@dataclass(frozen=True)
class TaskEvaluation:
    """A downstream task on which every replica is fine-tuned once it is pretrained."""

    task: TaskConfig = field(default_factory=TaskConfig)
    """Its data_dir is looked for in evaluation.data_dir."""
    name: str = ''
    """What reports call it, where one task is evaluated in two ways (empty: as the task)."""
    recipe: Recipe = field(default_factory=Recipe)
    grid: Literal['', 'bert', 'roberta', 'electra'] = ''
    """Try the hyperparameters of a paper in place of the recipe's, and take what is best for each arm."""

    @property
    def title(self) -> str:
        return self.name or self.task.task

    @property
    def needs_files(self) -> bool:
        """Whether there is nothing to evaluate without evaluation.data_dir."""
        return not self.task.task.startswith(('corpus:', 'tfds:'))

    def __post_init__(self):
        if not self.task.task:
            raise ValueError('evaluation.tasks: an entry names no task')
        if self.recipe.select_on != 'train':
            raise ValueError(f'evaluation.tasks {self.title}: select_on is train, as dev is what is reported')


@dataclass(frozen=True)
class EvaluationConfig:
    """What is measured on held-out text."""

    rates: tuple[float, ...] = (0.15, 0.30, 0.40)
    """Every arm is evaluated at each of these, all [MASK], on one fixed set of masks."""
    rows: int = 512
    """Held-out rows at the last stage's length (0: all)."""
    curve_every: int = 200
    """Steps between the points of the learning curve (0: no curve)."""
    curve_rows: int = 64
    """Held-out rows of each point."""
    batch_size: int = 64
    """Rows evaluated at once. Changes no figure."""
    likelihood_paragraphs: int = 64
    """Held-out paragraphs for the pseudo-log-likelihood per word (0: none)."""
    curve_probe: int = 0
    """Held-out paragraphs for a probe at each point, which arms without an MLM head have too (0: none)."""
    probe_paragraphs: int = 1500
    """Held-out paragraphs for the frozen-feature probe (0: none). Needs a corpus with labels."""
    examples: int = 4
    """Held-out sentences shown with each arm's guesses."""
    tasks: tuple[TaskEvaluation, ...] = ()
    """Downstream tasks, on each of which every replica is fine-tuned with several seeds."""
    data_dir: str = ''
    """Folder with the files of those tasks. What is not there is left out, and the report says so."""

    def __post_init__(self):
        if not self.rates or not all(0 < rate <= 1 for rate in self.rates) or len(set(self.rates)) < len(self.rates):
            raise ValueError(f'evaluation.rates {self.rates}: give at least one rate above 0 and up to 1, each once')
        for name in (
            'rows',
            'curve_every',
            'curve_rows',
            'curve_probe',
            'likelihood_paragraphs',
            'probe_paragraphs',
            'examples',
        ):
            if getattr(self, name) < 0:
                raise ValueError(f'evaluation.{name} is {getattr(self, name)}: use 0 or more')
        if self.batch_size < 1 or (self.curve_every and not self.curve_rows):
            raise ValueError('evaluation.batch_size and evaluation.curve_rows must be 1 or more')
        titles = [evaluation.title for evaluation in self.tasks]
        if len(set(titles)) < len(titles):
            raise ValueError(f'evaluation.tasks {", ".join(titles)}: give each a name of its own')


@dataclass(frozen=True)
class RunConfig:
    """How a run is carried out. May differ when it is taken up again: changes no result but by rounding."""

    devices: int = 0
    """CPU devices to split this machine into (0: one a core, up to one for each replica)."""
    mesh: tuple[int, int, int, int] = (-1, -1, 1, 1)
    """Devices along (arm, data, fsdp, tensor): replicas, their rows, rows and parameters, parts of layers. -1: of those
    that are left, from left to right, as many as divide what lies along the axis."""
    checkpoint_seconds: float = 60.0
    """A checkpoint at least so often; also at each stage's end."""
    keep_checkpoints: int = 2
    """Newest checkpoints kept; older ones are deleted."""
    keep_every: int = 0
    """Also a checkpoint every so many steps, and these are never deleted (0: none)."""
    on_nan: Literal['stop', 'continue'] = 'stop'
    """When a replica's loss or gradients are not finite in pretraining: stop the run, or let the others go on and leave
    that one as it was before, out of every figure. (Fine-tuning and --grid always go on.)"""
    log_every: int = 50
    """Steps between the lines of metrics.jsonl."""
    tensorboard: bool = True
    """Write TensorBoard files beside metrics.jsonl."""
    compilation_cache: str = '.cache/jax'
    """Folder of compiled programs (empty: none)."""
    quick_compile: bool = False
    """Leave out what the compiler does for speed: on CPU programs are ready in half the time and run slower."""
    profile: tuple[int, int] = (0, 0)
    """Write a trace of these updates, counted from 0: from the first number to before the second (0 0: none)."""

    def __post_init__(self):
        if self.log_every < 1 or self.keep_checkpoints < 1 or self.devices < 0 or self.keep_every < 0:
            raise ValueError(
                'run.log_every and run.keep_checkpoints must be 1 or more, run.devices and run.keep_every 0 or more'
            )
        if self.on_nan not in ('stop', 'continue'):
            raise ValueError(f'run.on_nan is {self.on_nan!r}: use stop or continue')
        if not 0 <= self.profile[0] <= self.profile[1]:
            raise ValueError(f'run.profile is {self.profile}: give the first update and, above it, where to stop')
        if self.devices > 1024:
            raise ValueError(f'run.devices is {self.devices}: a CPU is split into 1024 devices at most')
        if not 0 <= self.checkpoint_seconds < float('inf'):
            raise ValueError(f'run.checkpoint_seconds is {self.checkpoint_seconds}: use 0 or more')
        if any(size < 1 and size != -1 for size in self.mesh):
            raise ValueError(f'run.mesh is {self.mesh}: use 1 or more for each axis, or -1 (as many as fit)')


@dataclass(frozen=True)
class Config:
    """One run: an arm, without its seed."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    stages: tuple[Stage, ...] = (Stage(length=64, batch_size=16, steps=100), Stage(length=128, batch_size=8, steps=20))
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def __post_init__(self):
        if not self.stages:
            raise ValueError('stages: give at least one')
        longest = max(stage.length for stage in self.stages)
        if self.model.positions == 'learned' and longest > self.model.max_length:
            raise ValueError(f'model.max_length {self.model.max_length} is below the longest stage, {longest}')
        if self.run.profile[0] >= self.steps:
            raise ValueError(f'run.profile {self.run.profile} begins after the run, which has {self.steps} updates')
        if self.objective.has_pairs and self.model.type_vocab_size < 2:
            raise ValueError(
                f'objective.rows {self.objective.rows} tells two segments apart by type: set model.type_vocab_size to 2'
            )
        if self.objective.has_generator:
            generator_model(self.model, self.objective.generator)  # refuses what cannot be
        targets = {rate: rate * (self.stages[-1].length - 2) for rate in self.evaluation.rates}
        if none := [rate for rate, count in targets.items() if count < 0.5]:
            raise ValueError(
                f'evaluation.rates {none[0]:g}: that is no token of a row of {self.stages[-1].length}; use a higher one'
            )
        scored = self.masking.corruption_rate if self.masking.prediction_rate is None else self.masking.prediction_rate
        if scored and not self.masking.rate_points and scored * (longest - 2) < 0.5:
            raise ValueError(f'masking: at a rate of {scored:g} no token of a row of {longest} is scored')
        for stage in self.stages:
            if stage.batch_size % self.optimizer.micro_batches:
                raise ValueError(
                    f'stages.batch_size {stage.batch_size} is not a multiple of '
                    f'optimizer.micro_batches {self.optimizer.micro_batches}'
                )
