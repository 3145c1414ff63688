"""A workdir's config.json: what was asked of it, and whether a new command may go on there."""

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.tokenizer import Tokenizer
from experiments.ablation import Ablation
from experiments.config_json import from_json, to_json
from experiments.config_paths import differences
from train.cohort import Cohort, Replica, cohorts, control
from train.config import Config

MAY_DIFFER = ('run.', 'optimizer.micro_batches', 'data.store', 'evaluation.batch_size', 'evaluation.data_dir')
"""Fields that change no result but by rounding (micro-batches dropout's noise); tasks are compared by their data."""
COMPARISON = ('name', 'claim', 'baseline', 'primary', 'primary_rate', 'primary_task', 'comparison', 'all_pairs')
"""What an ablation fixes beforehand."""
TOKENIZER = 'tokenizer'
"""Folder of a workdir that holds its tokenizer."""


@dataclasses.dataclass
class Workdir:
    """The folder of one ablation; `record` is what config.json holds."""

    path: Path
    record: dict[str, Any]
    writes: bool = True
    """False in all processes of a run but one."""

    @property
    def cohorts(self) -> list[Cohort]:
        """Every cohort planned here, trained or not.

        Raises:
          UserError: config.json holds a config that this version does not know.
        """
        try:
            configs = {arm: from_json(Config, config) for arm, config in self.record['configs'].items()}
        except (ValueError, TypeError) as error:
            raise UserError(f'{self.path}/config.json was written by another version of this code: {error}') from None
        return [
            Cohort(each['name'], tuple(Replica(arm, seed, configs[arm]) for arm, seed in each['replicas']))
            for each in self.record['cohorts']
        ]

    def add(self, configs: dict[str, Config]) -> None:
        """Adds configs of arms, or checks that they are those which are there.

        Raises:
          UserError: an arm has another config here: the fields are named.
        """
        self.check(configs)
        # A control runs in its twin's program, so what may differ now differs for it too.
        controls = [control(Replica(arm, 0, config)) for arm, config in configs.items()]
        here = {twin.arm: twin.config for twin in controls if twin.arm in self.record['configs']} | configs
        self.record['configs'] |= {arm: to_json(config) for arm, config in here.items()}

    def check(self, configs: dict[str, Config]) -> None:
        """Compares configs of arms with those that are here; a vocabulary size of 0 is not known yet.

        Raises:
          UserError: an arm has another config here: the fields are named.
        """
        held = [arm for arm in configs if arm in self.record['configs']]
        found: dict[str, list[str]] = {}
        for arm in held:
            free = MAY_DIFFER if configs[arm].model.vocab_size else (*MAY_DIFFER, 'model.vocab_size')
            both = differences(self.record['configs'][arm], to_json(configs[arm]))
            for name in sorted(name for name in both if not name.startswith(free)):
                found.setdefault(spoken(name, *both[name]), []).append(arm)
        where = {text: '' if arms == held else f' (arm {", ".join(arms)})' for text, arms in found.items()}
        refuse(self.path, [text + arms for text, arms in where.items()])

    def plan(self, replicas: list[Replica], slots: int) -> None:
        """Adds cohorts for the replicas that no cohort holds yet; `slots` as in `train.cohort.cohorts`."""
        held = {(arm, seed) for cohort in self.record['cohorts'] for arm, seed in cohort['replicas']}
        new = [replica for replica in replicas if (replica.arm, replica.seed) not in held]
        baseline = self.record['ablation']['baseline']
        for cohort in cohorts(new, baseline, slots, first=len(self.record['cohorts'])):
            entry = {'name': cohort.name, 'replicas': [[replica.arm, replica.seed] for replica in cohort.replicas]}
            self.record['cohorts'].append(entry)
            self.record['configs'] |= {replica.arm: to_json(replica.config) for replica in cohort.replicas}

    def keep(self, tokenizer: Tokenizer, text: str) -> None:
        """Puts the tokenizer into the workdir, which then needs no store to be used, and notes the text.

        Args:
          text: sha256 of the documents that the store was made of; '' for weights from elsewhere.

        Raises:
          UserError: another tokenizer is here, or figures of another text.
        """
        here = {'tokenizer': tokenizer.vocabulary.fingerprint, 'text': text}
        held = {name: self.record.setdefault(name, value) for name, value in here.items()}
        refuse(self.path, differing(held, here, here))
        if not self.writes:
            return
        (self.path / TOKENIZER).mkdir(exist_ok=True)
        tokenizer.save(self.path / TOKENIZER)

    def save(self) -> None:
        """Writes config.json in one step."""
        if not self.writes:
            return
        path = self.path / 'config.json'
        part = path.with_suffix('.part')
        part.write_text(json.dumps(self.record, indent=1) + '\n')
        os.replace(part, path)


def read_workdir(path: Path) -> Workdir:
    """The workdir at a path.

    Raises:
      UserError: it holds no config.json, or a broken one.
    """
    file = Path(path) / 'config.json'
    try:
        record = json.loads(file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f'{path} is not a workdir: it has no config.json') from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f'{file} cannot be read: {error}') from None
    if not isinstance(record, dict) or not {'ablation', 'configs', 'cohorts'} <= record.keys():
        raise UserError(f'{path} is not a workdir: its config.json is of another kind')
    if not _whole(record):
        raise UserError(f'{file} was changed by hand: parts of it are missing. Restore it, or name another workdir')
    return Workdir(Path(path), record)


def open_workdir(path: Path, ablation: Ablation, about: dict[str, Any]) -> Workdir:
    """Opens a workdir for an ablation, new or to go on with.

    Args:
      about: further entries of a new config.json: scale, command, grid.

    Raises:
      UserError: the folder holds something else, or another ablation: what differs is named.
    """
    stated = {name: getattr(ablation, name) for name in COMPARISON}
    stated['published'] = [dataclasses.asdict(figure) for figure in ablation.published]
    if (Path(path) / 'config.json').exists():
        workdir = read_workdir(path)
        found = differing(workdir.record['ablation'], stated, COMPARISON)
        found += differing(workdir.record, about, ('scale',))
        found += differing({'grid': _asked(workdir.record)}, {'grid': _asked(about)}, ('grid',))
        arms = [arm.name for arm in ablation.arms]
        found += [f'arm {arm!r} there, none here' for arm in workdir.record['ablation']['arms'] if arm not in arms]
        refuse(path, found)
        workdir.record['ablation']['published'] = stated['published']
        return workdir
    if any(entry.name not in ('.lock', TOKENIZER) for entry in Path(path).iterdir()):
        raise UserError(f'--workdir {path} is not empty and has no config.json: name another folder')
    return Workdir(Path(path), {'ablation': {**stated, 'arms': {}}, **about, 'configs': {}, 'cohorts': []})


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Makes a workdir if need be and keeps other processes out of it.

    After a user's mistake the folder is gone again if nothing else is in it.

    Raises:
      UserError: another process works there, or it is no folder.
    """
    marker = Path(path) / '.lock'
    try:
        new = not marker.exists()
        marker.parent.mkdir(parents=True, exist_ok=True)
        file = open(marker, 'w')  # noqa: SIM115 (closed below)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f'--workdir {path} is in use by another process') from None
    except (FileExistsError, NotADirectoryError):
        raise UserError(f'--workdir {path} is a file, or inside one: name a folder') from None
    except OSError as error:
        raise UserError(f'--workdir {path}: {error.strerror}') from None
    with file:
        try:
            yield
        except UserError:
            if new:
                marker.unlink()
                with contextlib.suppress(OSError):  # not empty
                    marker.parent.rmdir()
            raise


def _whole(record: dict) -> bool:
    """Whether a config.json has the form that `Workdir` relies on, down to a config for each planned replica."""
    ablation, configs, planned = (record[name] for name in ('ablation', 'configs', 'cohorts'))
    try:
        return (
            {'baseline', 'arms'} <= ablation.keys()
            and {'scale', 'grid'} <= record.keys()
            and all(isinstance(config, dict) for config in configs.values())
            and all(arm in configs for cohort in planned for arm, _ in cohort['replicas'])
            and all(isinstance(cohort['name'], str) for cohort in planned)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _asked(record: dict) -> dict | None:
    return record['grid'] and {name: record['grid'][name] for name in ('field', 'values')}


def differing(there: dict, here: dict, names: Iterable[str]) -> list[str]:
    """What differs under these names, in words."""
    return [spoken(name, there.get(name), here.get(name)) for name in names if there.get(name) != here.get(name)]


def spoken(name: str, there: Any, here: Any) -> str:
    """A difference in words."""
    return f'{name} {there!r} there, {here!r} here'


def refuse(path: Path, found: list[str]) -> None:
    """Raises UserError where something differs."""
    if found:
        more = f' and {len(found) - 8} more' if len(found) > 8 else ''
        raise UserError(f'--workdir {path} holds another run: {"; ".join(found[:8])}{more}. Name another --workdir')
