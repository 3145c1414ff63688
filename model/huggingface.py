"""BERT folders of Hugging Face `transformers`: config.json and model.safetensors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.flax import load_file
from safetensors.numpy import save_file

from data.errors import UserError
from model.config import ModelConfig
from model.huggingface_names import to_params, to_tensors
from model.mlm import Params

# Our field: theirs, and what an absent one means (transformers.BertConfig).
_FIELDS = {
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
# Fields that must have one of these values, the first of which is what an absent one means.
_ONLY = {
    'model_type': ('bert',),
    'hidden_act': ('gelu',),
    'position_embedding_type': ('absolute',),
    'is_decoder': (False,),
    'add_cross_attention': (False,),
}
# Tensors that belong to BERT's other heads, or that say nothing that others do not.
_IGNORED = ('cls.seq_relationship.', 'bert.embeddings.position_ids', 'classifier.', 'qa_outputs.')


def read_bert(folder: str | Path) -> tuple[ModelConfig, Params]:
    """The model of a folder that `transformers` saved.

    Returns:
      The config, and parameters as float32 numpy arrays: the tree of `model.mlm` with `pooler` beside it where the
      folder has one, and without `head` where it has none (a `BertModel`).

    Raises:
      UserError: there is no such folder, it is not a BERT, or a file is missing, broken or does not fit.
    """
    folder = Path(folder)
    config = _read_config(folder)
    tensors = _read_tensors(folder)
    decoder = tensors.pop('cls.predictions.decoder.weight', None)
    tensors.setdefault('cls.predictions.bias', tensors.pop('cls.predictions.decoder.bias', None))
    if tensors['cls.predictions.bias'] is None:
        del tensors['cls.predictions.bias']
    try:
        params = to_params(tensors, config)
    except KeyError as error:
        raise UserError(f'{folder}: model.safetensors has no tensor {error.args[0]}') from None
    except ValueError as error:
        raise UserError(f'{folder}: {error}, as config.json has it') from None
    unknown = sorted(set(tensors) - set(to_tensors(params, config)))
    unknown = [name for name in unknown if not name.startswith(_IGNORED)]
    if unknown:
        raise UserError(f'{folder}: model.safetensors has tensors that no BERT has, such as {unknown[0]}')
    if decoder is not None and not np.array_equal(decoder, tensors['bert.embeddings.word_embeddings.weight']):
        raise UserError(f"{folder}: the decoder's weights are not the embeddings'; Cloze ties them")
    return config, params


def write_bert(folder: str | Path, config: ModelConfig, params: Params, pad_id: int = 0) -> None:
    """Writes config.json and model.safetensors as `transformers` reads them.

    They are those of a BertForMaskedLM, or of a BertModel where the parameters have no head.

    Raises:
      UserError: the model has no form there: pre-LN, rotary positions, or tables of another width.
    """
    if config.table_width != config.width:
        raise UserError(
            f'a model with model.embedding_width {config.embedding_width} is no BERT of transformers, whose tables '
            'are as wide as the model'
        )
    if config.norm != 'post' or config.positions != 'learned':
        raise UserError(
            f'a model with model.norm {config.norm} and model.positions {config.positions} is no BERT of transformers: '
            'only post and learned are'
        )
    fields = {theirs: getattr(config, ours) for ours, (theirs, _) in _FIELDS.items()}
    fields |= {theirs: values[0] for theirs, values in _ONLY.items()}
    fields |= {
        'architectures': ['BertForMaskedLM' if 'head' in params else 'BertModel'],
        'pad_token_id': pad_id,
        'tie_word_embeddings': True,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps(fields, indent=2, sort_keys=True) + '\n')
    tensors = to_tensors(params, config)
    if 'head' not in params:
        tensors = {name.removeprefix('bert.'): tensor for name, tensor in tensors.items()}
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})


def _read_config(folder: Path) -> ModelConfig:
    fields = _read_json(folder / 'config.json')
    for name, allowed in _ONLY.items():
        value = fields.get(name, None if name == 'model_type' else allowed[0])
        if value not in allowed:
            raise UserError(f'{folder / "config.json"}: {name} is {value!r}; Cloze reads {allowed[0]!r} alone')
    ours_of = {}
    for ours, (theirs, default) in _FIELDS.items():
        value = fields.get(theirs, default)
        # JSON does not tell 0 from 0.0; true and false are no numbers.
        if type(value) not in ((int,) if isinstance(default, int) else (int, float)):
            kind = 'a whole number' if isinstance(default, int) else 'a number'
            raise UserError(f'{folder / "config.json"}: {theirs} is {value!r}, not {kind}')
        ours_of[ours] = value
    try:
        return ModelConfig(**ours_of)
    except ValueError as error:
        raise UserError(f'{folder / "config.json"}: {error}') from None


def _read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """All tensors under the names that a BertForMaskedLM of today has."""
    names, index = ['model.safetensors'], folder / 'model.safetensors.index.json'
    if index.exists() and not (folder / names[0]).exists():
        where = _read_json(index).get('weight_map')
        if not isinstance(where, dict) or not all(isinstance(name, str) for name in where.values()):
            raise UserError(f'{index} has no weight_map that names a file for each tensor')
        names = sorted(set(where.values()))
    tensors = {}
    for name in names:
        try:
            tensors |= {key: np.asarray(value, np.float32) for key, value in load_file(folder / name).items()}
        except FileNotFoundError:
            raise UserError(f'{folder} has no {name}: save the model with save_pretrained of transformers') from None
        except (SafetensorError, OSError) as error:
            raise UserError(f'{folder / name} cannot be read: {error}') from None
    return {_todays_name(name): tensor for name, tensor in tensors.items()}


def _todays_name(name: str) -> str:
    if name.startswith(('embeddings.', 'encoder.', 'pooler.')):
        name = f'bert.{name}'
    return name.replace('LayerNorm.gamma', 'LayerNorm.weight').replace('LayerNorm.beta', 'LayerNorm.bias')


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
        raise UserError(f'{path.parent} is no folder of transformers: it has no {path.name}') from None
    except (OSError, ValueError) as error:
        raise UserError(f'{path} cannot be read: {error}') from None
    if not isinstance(value, dict):
        raise UserError(f'{path} does not hold a JSON object')
    return value
