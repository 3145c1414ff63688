"""The kinds of model of Hugging Face `transformers` that Cloze reads or writes: their fields and their names."""

from dataclasses import dataclass

_NORM = {'scale': 'weight', 'bias': 'bias'}
_LINEAR = {'kernel': 'weight', 'bias': 'bias'}
_TABLE = {'embedding': 'weight'}

Modules = dict[str, tuple[str, dict[str, str]]]
"""Our module: theirs, and for each leaf of ours the end of their tensor's name. A layer's `{}` is its number."""


@dataclass(frozen=True)
class Form:
    """One kind of model there."""

    name: str
    """What people call it: that of its classes and, in lower case, its model_type."""
    fields: dict[str, tuple[str, int | float]]
    """Our field: theirs, and what an absent one means."""
    only: dict[str, tuple[object, object]]
    """Fields that must have one value: that value, and what an absent one means."""
    modules: Modules
    """Under `layer` what is ours under `layers`, or under `shared` where it is one for all."""
    decoder: str = 'decoder.'
    """What stands behind `head` in the names of the tied output's weights, where a file repeats them."""
    pooler: bool = True
    """Whether its encoder has one."""
    places_after_padding: bool = False
    """Whether the table of positions has rows before the first: for padding's id and those below it."""

    @property
    def model_type(self) -> str:
        return self.name.lower()

    @property
    def encoder(self) -> str:
        """What the names of the encoder's tensors begin with, but for a model without a head."""
        return f'{self.model_type}.'

    @property
    def head(self) -> str:
        """What the names of the tied output's tensors begin with."""
        return f'{self.modules["head"][0]}.'

    def class_name(self, kind: str) -> str:
        """Such as BertModel."""
        return f'{self.model_type.capitalize()}{kind}'


_BERT_FIELDS = {
    'layers': ('num_hidden_layers', 12),
    'width': ('hidden_size', 768),
    'heads': ('num_attention_heads', 12),
    'feed_forward': ('intermediate_size', 3072),
    'max_length': ('max_position_embeddings', 512),
    'type_vocab_size': ('type_vocab_size', 2),
    'vocab_size': ('vocab_size', 30522),
    'dropout': ('hidden_dropout_prob', 0.1),
    'attention_dropout': ('attention_probs_dropout_prob', 0.1),
    'norm_epsilon': ('layer_norm_eps', 1e-12),
    'init_stddev': ('initializer_range', 0.02),
}
_BERT_ONLY = {
    'hidden_act': ('gelu', 'gelu'),
    'position_embedding_type': ('absolute', 'absolute'),
    'is_decoder': (False, False),
    'add_cross_attention': (False, False),
}


def _tables(encoder: str) -> Modules:
    return {
        'embeddings/token': (f'{encoder}.embeddings.word_embeddings', _TABLE),
        'embeddings/position': (f'{encoder}.embeddings.position_embeddings', _TABLE),
        'embeddings/type': (f'{encoder}.embeddings.token_type_embeddings', _TABLE),
        'embeddings/norm': (f'{encoder}.embeddings.LayerNorm', _NORM),
    }


def _bert_modules(encoder: str, head: str, norm: str, output: str) -> Modules:
    layer = f'{encoder}.encoder.layer.{{}}'
    return {
        **_tables(encoder),
        'embeddings/projection': (f'{encoder}.embeddings_project', _LINEAR),  # ELECTRA's alone
        'layer/attention/query': (f'{layer}.attention.self.query', _LINEAR),
        'layer/attention/key': (f'{layer}.attention.self.key', _LINEAR),
        'layer/attention/value': (f'{layer}.attention.self.value', _LINEAR),
        'layer/attention/output': (f'{layer}.attention.output.dense', _LINEAR),
        'layer/attention_norm': (f'{layer}.attention.output.LayerNorm', _NORM),
        'layer/feed_forward/up': (f'{layer}.intermediate.dense', _LINEAR),
        'layer/feed_forward/down': (f'{layer}.output.dense', _LINEAR),
        'layer/feed_forward_norm': (f'{layer}.output.LayerNorm', _NORM),
        'head/dense': (f'{head}.dense', _LINEAR),
        'head/norm': (norm, _NORM),
        'head': (output, {'bias': 'bias'}),
        'pooler/dense': (f'{encoder}.pooler.dense', _LINEAR),
    }


def _albert_modules() -> Modules:
    layer = 'albert.encoder.albert_layer_groups.{}.albert_layers.0'
    return {
        **_tables('albert'),
        'embeddings/projection': ('albert.encoder.embedding_hidden_mapping_in', _LINEAR),
        'layer/attention/query': (f'{layer}.attention.query', _LINEAR),
        'layer/attention/key': (f'{layer}.attention.key', _LINEAR),
        'layer/attention/value': (f'{layer}.attention.value', _LINEAR),
        'layer/attention/output': (f'{layer}.attention.dense', _LINEAR),
        'layer/attention_norm': (f'{layer}.attention.LayerNorm', _NORM),
        'layer/feed_forward/up': (f'{layer}.ffn', _LINEAR),
        'layer/feed_forward/down': (f'{layer}.ffn_output', _LINEAR),
        'layer/feed_forward_norm': (f'{layer}.full_layer_layer_norm', _NORM),
        'head/dense': ('predictions.dense', _LINEAR),
        'head/norm': ('predictions.LayerNorm', _NORM),
        'head': ('predictions', {'bias': 'bias'}),
        'pooler/dense': ('albert.pooler', _LINEAR),
    }


BERT = Form(
    'BERT',
    _BERT_FIELDS,
    _BERT_ONLY,
    _bert_modules('bert', 'cls.predictions.transform', 'cls.predictions.transform.LayerNorm', 'cls.predictions'),
)
ALBERT = Form(
    'ALBERT',
    # An absent field means ALBERT-xxlarge's.
    {
        **_BERT_FIELDS,
        'width': ('hidden_size', 4096),
        'heads': ('num_attention_heads', 64),
        'feed_forward': ('intermediate_size', 16384),
        'embedding_width': ('embedding_size', 128),
        'vocab_size': ('vocab_size', 30000),
        'dropout': ('hidden_dropout_prob', 0.0),
        'attention_dropout': ('attention_probs_dropout_prob', 0.0),
    },
    {
        'hidden_act': ('gelu', 'gelu_new'),
        'position_embedding_type': ('absolute', 'absolute'),
        'num_hidden_groups': (1, 1),
        'inner_group_num': (1, 1),
    },
    _albert_modules(),
)
ROBERTA = Form(
    'RoBERTa',
    {**_BERT_FIELDS, 'vocab_size': ('vocab_size', 50265)},
    _BERT_ONLY,
    _bert_modules('roberta', 'lm_head', 'lm_head.layer_norm', 'lm_head'),
    places_after_padding=True,
)
ELECTRA = Form(
    'ELECTRA',
    # An absent field means ELECTRA-small's.
    {
        **_BERT_FIELDS,
        'width': ('hidden_size', 256),
        'heads': ('num_attention_heads', 4),
        'feed_forward': ('intermediate_size', 1024),
        'embedding_width': ('embedding_size', 128),
    },
    _BERT_ONLY,
    {
        **_bert_modules('electra', 'generator_predictions', 'generator_predictions.LayerNorm', 'generator_lm_head'),
        'detection/dense': ('discriminator_predictions.dense', _LINEAR),
        'detection/output': ('discriminator_predictions.dense_prediction', _LINEAR),
    },
    decoder='',
    pooler=False,
)
FORMS = {form.model_type: form for form in (BERT, ALBERT, ROBERTA, ELECTRA)}
