"""Documents of a TensorFlow Datasets data set, read without TensorFlow."""

import functools
import logging
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from data.errors import UserError

# The name may itself hold a colon, before a version: tfds:wiki40b/en:1.3.0:train
_SPEC = re.compile(r'tfds:(?P<name>[^:\[]+(?::[\d.*]+)?)(?::(?P<split>.+))?$')
_BATCH = 1024
_RETRIES = 5
"""Of a download, six seconds in all. TFDS tries ten times, which takes three and a half minutes without a network."""

_ELSEWHERE = (
    "prepare it elsewhere with file_format='array_record', copy the folder, and give tfds:FOLDER or set TFDS_DATA_DIR"
)


def count(spec: str) -> int:
    """How many examples `tfds:NAME[:SPLIT]` has.

    Raises:
      UserError: there is no such data set or split, or it cannot be prepared here.
    """
    return len(_examples(spec))


def texts(spec: str, rows: range) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Number, text and labels of these examples of `tfds:NAME[:SPLIT]`; the split is train where none is given.

    NAME is a data set in the usual folder (TFDS_DATA_DIR, or ~/tensorflow_datasets), or the folder of a prepared one.
    The text is the feature `text`, or the only text feature; the label is the class of the feature `label`, if any.

    Raises:
      UserError: there is no such data set or split, it cannot be prepared here, or it has no such feature.
    """
    examples = _examples(spec)
    features = examples.dataset_info.features
    text = _text_feature(spec, features)
    classes = getattr(features['label'], 'names', []) if 'label' in features else []
    for number, example in zip(rows, records(examples, rows), strict=True):
        # Test splits say -1 for a label that is kept back.
        label = classes[example['label']] if classes and example['label'] >= 0 else ''
        yield str(number), example[text].decode('utf-8', 'replace'), {'label': label} if label else {}


def _examples(spec: str) -> Any:
    return _opened(spec, os.environ.get('TFDS_DATA_DIR', ''))


@functools.lru_cache(maxsize=1)  # opening it takes a second, and a worker has many pieces of it
def _opened(spec: str, folder: str) -> Any:
    match = _SPEC.fullmatch(spec)
    if not match:
        raise UserError(f'--corpus {spec}: use tfds:NAME or tfds:NAME:SPLIT')
    return data_source(f'--corpus {spec}', match['name'], split=match['split'] or 'train', data_dir=folder)


def records(examples: Any, rows: range | None = None) -> Iterator[dict[str, Any]]:
    """The examples of a data source, or some of them, many read at a time."""
    rows = range(len(examples)) if rows is None else rows
    for start in range(rows.start, rows.stop, _BATCH):
        yield from examples.__getitems__(range(start, min(start + _BATCH, rows.stop)))


def data_source(what: str, name: str, split: str | None, data_dir: str = '') -> Any:
    """A data set's split as a sequence, or where `split` is None a dict of all of them by name.

    Args:
      what: names flag and value in errors.
      name: of a data set, or the folder of a prepared one.
      data_dir: where data sets lie; '' for TFDS_DATA_DIR, or ~/tensorflow_datasets.

    Raises:
      UserError: there is no such data set or split, or it cannot be prepared here.
    """
    import requests

    try:
        import tensorflow_datasets as tfds
        from tensorflow_datasets.core.download import downloader

        downloader.MAX_RETRIES = _RETRIES
        logging.getLogger('urllib3.connectionpool').setLevel(logging.ERROR)  # it has a line for each try
        if os.path.isfile(os.path.join(name, 'dataset_info.json')):
            return tfds.builder_from_directory(name).as_data_source(split=split)
        # TFDS reads the variable when it is imported, which may have been earlier.
        options = dict(split=split, data_dir=data_dir or os.environ.get('TFDS_DATA_DIR') or None)
        try:
            return tfds.data_source(name, **options)
        except tfds.core.registered.DatasetNotFoundError:
            import tensorflow_datasets.text  # noqa: F401  registers glue, wikipedia, wiki40b, c4 and others

            return tfds.data_source(name, **options)
    except ImportError as error:  # some data sets need TensorFlow or Beam to be generated, though not to be read
        missing = getattr(error, 'name', None) or _first_line(error)
        raise UserError(f'{what}: not prepared here, and generating it needs {missing}: {_ELSEWHERE}') from None
    except requests.exceptions.ConnectionError as error:
        host = urlsplit(getattr(error.request, 'url', None) or '').hostname or 'its source'
        raise UserError(f'{what}: not prepared here, and {host} cannot be reached: {_ELSEWHERE}') from None
    except Exception as error:  # TFDS raises anything, from AssertionError to a failed download
        raise UserError(f'{what}: {_first_line(error)}') from None


def _text_feature(spec: str, features: Any) -> str:
    names = sorted(name for name, feature in features.items() if type(feature).__name__ == 'Text')
    if 'text' in names:
        return 'text'
    if len(names) != 1:
        raise UserError(f'--corpus {spec}: has no feature "text"; its text features are {", ".join(names) or "none"}')
    return names[0]


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f'{type(error).__name__}: {lines[0][:300] if lines else "no reason given"}'
