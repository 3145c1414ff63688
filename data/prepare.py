"""The token store of a config: made if it is missing, checked if it is there."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from data import corpus
from data.atomic import partial_folder, publish
from data.build import PLAN, build, plan, store_options, tokenizer_path
from data.config import DataConfig
from data.errors import UserError, flags_below
from data.files import Files
from data.preparing.runners import Runner, all_cores
from data.store import MANIFEST, Share, TokenStore, check_store, open_store, read_manifest
from data.tally import sentence


def prepare(
    config: DataConfig,
    out: str | Path,
    overwrite: bool = False,
    log: Callable[[str], None] = print,
    run: Runner = all_cores,
    share: Share = (0, 1),
) -> TokenStore:
    """Makes the token store of `config` in folder `out`, or finds it finished there.

    The folder appears whole or not at all; the same call takes up a preparation that was killed where it stood.

    Args:
      overwrite: make it anew in place of a store made with other options, or of a broken one.
      log: takes the lines that say what was read and dropped.
      run: who carries out the steps; the store is the same.
      share: how much of a store that is there already is compared with its hashes.

    Raises:
      UserError: the corpus cannot be read or is too small, or `out` holds something else, or something damaged.
    """
    out = Path(out)
    out = out.resolve() if out.is_symlink() else out  # the folder is put in place whole, the link stays
    try:
        store = None if overwrite else _finished(config, out, share)
        if store is None:
            _refuse_foreign(out)
            with partial_folder(out, log, lambda folder: _same_plan(config, folder)) as partial:
                store = None if overwrite else _finished(config, out, share)  # made by the process that was waited for
                if store is None:
                    build(config, Files(str(partial)), run, log)
                    publish(partial, out)
    except OSError as error:
        raise UserError(f'{error.filename or out}: {error.strerror or error}') from None
    store = store or open_store(out)
    log(summary(store.folder, store.manifest))
    return store


def prepare_remote(config: DataConfig, out: str, run: Runner, log: Callable[[str], None] = print) -> None:
    """Makes the token store of `config` where Beam's workers reach it, gs://BUCKET/FOLDER, or finds it there.

    It is finished when its manifest is there, which is written last.

    Raises:
      UserError: as `prepare`.
    """
    files = Files(out)
    if files.exists(MANIFEST):
        manifest = json.loads(files.read(MANIFEST))
        if manifest.get('options') != store_options(config):
            raise UserError(f'{out}: made with other options; choose another folder, or remove it')
    else:
        if files.exists(PLAN) and files.read(PLAN) != plan(config):
            raise UserError(f'{out}: holds another preparation, unfinished; choose another folder, or remove it')
        build(config, files, run, log)
        manifest = json.loads(files.read(MANIFEST))
    log(summary(out, manifest))


def store_for(config: DataConfig, log: Callable[[str], None] = print, share: Share = (0, 1)) -> TokenStore:
    """The store that a run reads, prepared if it is missing, and cut to `max_train_tokens`; `share` as in `prepare`.

    Raises:
      UserError: as `prepare`; also when the store was made with other options.
    """
    with flags_below('data', DataConfig):
        return prepare(config, store_folder(config), log=log, share=share).cut(config.max_train_tokens)


def open_prepared(config: DataConfig, share: Share) -> TokenStore:
    """The same store, where another process has made it, or found it and checked its own share.

    Raises:
      UserError: it is not there, or cannot be read, or something in this share is damaged.
    """
    store = open_store(store_folder(config))
    check_store(store, share)
    return store.cut(config.max_train_tokens)


def store_folder(config: DataConfig) -> Path:
    """Where the store of a run lies."""
    return Path(config.store or default_folder(config))


def default_folder(config: DataConfig) -> Path:
    """runs/stores/, a name made of corpus, tokenizer and vocabulary size, and a short hash of all options."""
    options = store_options(config)
    parts = [config.corpus, config.tokenizer, str(options['vocab_size'] or '')]
    readable = re.sub(r'[^A-Za-z0-9]+', '-', '-'.join(parts))[-60:].strip('-')
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()
    return Path('runs') / 'stores' / f'{readable}-{digest[:8]}'


def summary(folder: str | Path, manifest: dict) -> str:
    """One line: what was read, dropped and why, and what came of it."""
    splits, tokenizer = manifest['splits'], manifest['tokenizer']
    parts = ', '.join(
        f'{splits[name]["documents"]:,} documents and {splits[name]["tokens"]:,} tokens {words}'
        for name, words in (('train', 'to train on'), ('heldout', 'held out'))
    )
    return f'{folder}: {sentence(manifest["counts"])}; kept {parts}; {tokenizer["size"]:,} pieces'


def _finished(config: DataConfig, out: Path, share: Share) -> TokenStore | None:
    """The store in `out`, if there is one."""
    if not (out / MANIFEST).exists():
        return None
    manifest, mend = read_manifest(out), f'choose another folder, or experiments.prepare --out {out} --overwrite'
    wanted, held = store_options(config), manifest['options']
    differ = [f'{name} {held.get(name)!r}, not {wanted[name]!r}' for name in wanted if held.get(name) != wanted[name]]
    if differ:
        raise UserError(f'{out}: made with other options ({"; ".join(differ)}); {mend}')
    source = corpus.source(config.corpus)
    if source and source != manifest['source']:
        raise UserError(f'{out}: its corpus {config.corpus} has changed since; {mend}')
    path = tokenizer_path(config.tokenizer) if config.tokenizer.startswith('hf:') else None
    made_by = manifest['tokenizer']['fingerprint']
    if path and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != made_by:
        raise UserError(f'{out}: made by another tokenizer than {path}; {mend}')
    store = open_store(out)
    check_store(store, share)
    return store


def _same_plan(config: DataConfig, folder: Path) -> bool:
    """Whether a preparation that was left there is of the same store."""
    path = folder / PLAN
    return path.exists() and path.read_bytes() == plan(config)


def _refuse_foreign(out: Path) -> None:
    if out.name in ('', '..'):
        raise UserError(f'--out {out}: give the store a folder of its own')
    if out.exists() and not (out / MANIFEST).exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f'{out}: exists and is not a token store; choose another folder')
