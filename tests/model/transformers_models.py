"""The reference implementations: models of Hugging Face `transformers` in PyTorch, with random weights."""

import numpy as np
import torch
import transformers

from model.config import ModelConfig
from tests.model.parity_case import Inputs
from tests.model.pretraining_case import pair_labels

_PRELAYERNORM = [
    ('roberta_prelayernorm.LayerNorm.', 'final_norm.'),
    ('roberta_prelayernorm.', 'bert.'),
    ('attention.LayerNorm.', 'attention.output.LayerNorm.'),
    ('intermediate.LayerNorm.', 'output.LayerNorm.'),
    ('lm_head.dense.', 'cls.predictions.transform.dense.'),
    ('lm_head.layer_norm.', 'cls.predictions.transform.LayerNorm.'),
    ('lm_head.', 'cls.predictions.'),
]


def build(name: str, config: ModelConfig, seed: int = 0) -> torch.nn.Module:
    """A masked language model whose every parameter is random: no bias of 0, no scale of 1."""
    fields = dict(
        vocab_size=config.vocab_size,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feed_forward,
        max_position_embeddings=config.max_length,
        type_vocab_size=config.type_vocab_size,
        layer_norm_eps=config.norm_epsilon,
        hidden_act='gelu',
        pad_token_id=0,
        is_decoder=False,
    )
    kinds = {
        'bert': (transformers.BertConfig, transformers.BertForMaskedLM, {}),
        'bert_pretraining': (transformers.BertConfig, transformers.BertForPreTraining, {}),
        'prelayernorm': (transformers.RobertaPreLayerNormConfig, transformers.RobertaPreLayerNormForMaskedLM, {}),
        'roformer': (
            transformers.RoFormerConfig, transformers.RoFormerForMaskedLM,
            dict(embedding_size=config.width, rotary_value=False),
        ),
        'albert': (
            transformers.AlbertConfig, transformers.AlbertForMaskedLM, dict(embedding_size=config.table_width),
        ),
        'electra_generator': (
            transformers.ElectraConfig, transformers.ElectraForMaskedLM, dict(embedding_size=config.table_width),
        ),
        'electra_discriminator': (
            transformers.ElectraConfig, transformers.ElectraForPreTraining, dict(embedding_size=config.table_width),
        ),
    }  # fmt: skip
    config_of, model_of, more = kinds[name]
    model = model_of(config_of(**fields, **more)).eval()
    # RoBERTa keeps row 0 of its positions for padding and gives it no gradient.
    if name == 'prelayernorm':
        model.base_model.embeddings.position_embeddings.padding_idx = None
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter_name, parameter in _learned(model):
            scale = parameter_name.endswith('weight') and parameter.ndim == 1
            spread = 0.3 if parameter.ndim == 1 else 0.8 * parameter.shape[-1] ** -0.5
            parameter.copy_(torch.randn(parameter.shape, generator=noise) * spread + float(scale))
    return model


def tensors(name: str, model: torch.nn.Module, gradients: bool = False) -> dict[str, np.ndarray]:
    """Weights, or their gradients, under BERT's names (ALBERT's under their own), in float32."""
    found = {}
    for parameter_name, parameter in _learned(model):
        if name == 'prelayernorm':
            for theirs, bert in _PRELAYERNORM:
                parameter_name = parameter_name.replace(theirs, bert)
        value = parameter.grad if gradients else parameter.detach()
        found[parameter_name.replace('roformer.', 'bert.')] = value.float().numpy()
    return found


def run(name: str, model: torch.nn.Module, inputs: Inputs) -> dict:
    """As `parity_case.outputs`, computed in the model's precision; the gradients by name."""
    tokens, types, valid, positions, labels = (torch.from_numpy(a).long() for a in inputs)
    labels_BxL = torch.full_like(tokens, -100).scatter_(1, positions, labels)
    if name == 'electra_discriminator':
        labels_BxL = (tokens % 2 == 0).long()  # as electra_case.detected; padding has no loss there
    more = {}
    if name == 'prelayernorm':
        more['position_ids'] = torch.arange(tokens.shape[1])[None].expand_as(tokens)
    pretraining = name == 'bert_pretraining'
    wanted = {'next_sentence_label': pair_labels(tokens).long()} if pretraining else {}
    model.zero_grad()
    given = dict(input_ids=tokens, attention_mask=valid, token_type_ids=types, **more)
    out = model(**given, labels=labels_BxL, **wanted)
    out.loss.backward()
    hidden = model.base_model(**given).last_hidden_state
    real = valid[..., None] > 0
    found = out.prediction_logits if pretraining else out.logits
    logits = found if found.ndim == 3 else found[..., None]
    pairs = {'pair_logits': out.seq_relationship_logits.detach().float().numpy()} if pretraining else {}
    return {
        'hidden': torch.where(real, hidden, 0).detach().float().numpy(),
        'logits': torch.where(real, logits, 0).reshape(found.shape).detach().float().numpy(),
        **pairs,
        'loss': out.loss.detach().float().numpy(),
        'gradients': tensors(name, model, gradients=True),
    }


def _learned(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
