"""Folders of Hugging Face `transformers`, of BERT, ALBERT, RoBERTa or ELECTRA: config.json and model.safetensors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.flax import load_file
from safetensors.numpy import save

from data.errors import UserError
from model.config import ModelConfig
from model.huggingface_forms import ALBERT, BERT, ELECTRA, FORMS, Form
from model.huggingface_names import tensor_names, to_params, to_tensors
from model.mlm import Params

# Tensors that belong to other heads, or that say nothing that others do not.
_IGNORED = (
    *('cls.seq_relationship.', 'sop_classifier.', 'discriminator_predictions.'),
    *('classifier.', 'qa_outputs.', 'sequence_summary.'),
)


def read_bert(folder: str | Path) -> tuple[ModelConfig, Params]:
    """The model of a folder that `transformers` saved.

    Returns:
      The config, and parameters as float32 numpy arrays: the tree of `model.mlm` with `pooler` beside it where the
      folder has one, and without `head` where it has none (a `BertModel`).

    Raises:
      UserError: there is no such folder, it is none of the four, or a file is missing, broken or does not fit.
    """
    folder = Path(folder)
    form, config, skipped = _read_config(folder)
    tensors = _read_tensors(folder, form)
    decoder = tensors.pop(f'{form.head}{form.decoder}weight', None)
    bias = tensors.pop(f'{form.head}{form.decoder}bias', None)  # an ELECTRA's is the head's own
    if bias is not None:
        tensors.setdefault(f'{form.head}bias', bias)
    (positions,) = tensor_names('embeddings/position/embedding', 1, form)
    if positions in tensors:
        tensors[positions] = tensors[positions][skipped:]
    try:
        params = to_params(tensors, config, form)
    except KeyError as error:
        raise UserError(f'{folder}: model.safetensors has no tensor {error.args[0]}') from None
    except ValueError as error:
        raise UserError(f'{folder}: {error}, as config.json has it') from None
    unknown = sorted(set(tensors) - set(to_tensors(params, config, form)))
    unknown = [name for name in unknown if not name.startswith((*_IGNORED, f'{form.encoder}embeddings.position_ids'))]
    if unknown:
        raise UserError(f'{folder}: model.safetensors has tensors that no {form.name} has, such as {unknown[0]}')
    (words,) = tensor_names('embeddings/token/embedding', 1, form)
    if decoder is not None and not np.array_equal(decoder, tensors[words]):
        raise UserError(f"{folder}: the decoder's weights are not the embeddings'; Cloze ties them")
    return config, params


def write_bert(folder: str | Path, config: ModelConfig, params: Params, pad_id: int = 0) -> None:
    """Writes config.json and model.safetensors as `transformers` reads them.

    They are those of a BertForMaskedLM; where tables are of another width, of an AlbertForMaskedLM if layers share all
    weights, of an ElectraForMaskedLM if they share none; of a BertModel and so on where the parameters have no head;
    and of an ElectraForPreTraining where `detection` is in the head's place (`model.electra`). An ELECTRA has no pooler
    there, so it is left out.

    Raises:
      UserError: the model has no form there.
    """
    detects = 'detection' in params
    form = _form_of(config, detects)
    ours_of = {**vars(config), 'embedding_width': config.table_width}
    fields = {theirs: ours_of[ours] for ours, (theirs, _) in form.fields.items()}
    fields |= {theirs: value for theirs, (value, _) in form.only.items()}
    kind = 'ForPreTraining' if detects else 'ForMaskedLM' if 'head' in params else 'Model'
    fields |= {
        'architectures': [form.class_name(kind)],
        'model_type': form.model_type,
        'pad_token_id': pad_id,
        'tie_word_embeddings': True,
    }
    if not form.pooler:
        params = {name: part for name, part in params.items() if name != 'pooler'}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps(fields, indent=2, sort_keys=True) + '\n')
    tensors = to_tensors(params, config, form)
    if kind == 'Model':
        tensors = {name.removeprefix(form.encoder): tensor for name, tensor in tensors.items()}
    # Its save_file leaves a file that its owner alone may read.
    (folder / 'model.safetensors').write_bytes(save(tensors, metadata={'format': 'pt'}))


def _form_of(config: ModelConfig, detects: bool) -> Form:
    if config.norm != 'post' or config.positions != 'learned':
        raise UserError(
            f'a model with model.norm {config.norm} and model.positions {config.positions} is no BERT of transformers: '
            'only post and learned are'
        )
    own_width = config.table_width != config.width
    if config.layers_share == 'none':
        return ELECTRA if detects or own_width else BERT
    if config.layers_share == 'all' and own_width and not detects:
        return ALBERT
    raise UserError(
        f'a model with model.layers_share {config.layers_share} and tables {config.table_width} wide, of width '
        f'{config.width}{", with a detector" * detects}, is none of transformers: neither BERT nor ELECTRA (none) nor '
        'ALBERT (all, tables of another width, no detector)'
    )


def _read_config(folder: Path) -> tuple[Form, ModelConfig, int]:
    """The kind of model, its config, and how many rows its table of positions begins with that stand for none."""
    path = folder / 'config.json'
    fields = _read_json(path)
    kind = fields.get('model_type')
    form = FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        raise UserError(f'{path}: model_type is {kind!r}; Cloze reads {", ".join(map(repr, FORMS))} alone')
    for name, (allowed, default) in form.only.items():
        value = fields.get(name, default)
        if value != allowed:
            raise UserError(f'{path}: {name} is {value!r}; Cloze reads {allowed!r} alone')

    def number(theirs: str, default: int | float) -> int | float:
        value = fields.get(theirs, default)
        # JSON does not tell 0 from 0.0; true and false are no numbers.
        if type(value) not in ((int,) if isinstance(default, int) else (int, float)):
            kind = 'a whole number' if isinstance(default, int) else 'a number'
            raise UserError(f'{path}: {theirs} is {value!r}, not {kind}')
        return value

    ours_of = {ours: number(*theirs) for ours, theirs in form.fields.items()}
    skipped = number('pad_token_id', 1) + 1 if form.places_after_padding else 0
    ours_of['max_length'] -= skipped
    if form is ALBERT:
        ours_of['layers_share'] = 'all'
    if ours_of.get('embedding_width') == ours_of['width']:
        ours_of['embedding_width'] = 0  # as configs say it, so that equal models have equal ones
    try:
        config = ModelConfig(**ours_of)
    except ValueError as error:
        raise UserError(f'{path}: {error}') from None
    if form is ALBERT and config.table_width == config.width:
        raise UserError(f'{path}: embedding_size is hidden_size; Cloze projects tables of another width alone')
    return form, config, skipped


def _read_tensors(folder: Path, form: Form) -> dict[str, np.ndarray]:
    """All tensors under the names that a model of today with a head has."""
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
    return {_todays_name(name, form): tensor for name, tensor in tensors.items()}


def _todays_name(name: str, form: Form) -> str:
    if name.startswith(('embeddings.', 'embeddings_project.', 'encoder.', 'pooler.')):
        name = f'{form.encoder}{name}'
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
