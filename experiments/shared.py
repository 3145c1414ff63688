"""What all hosts of a run read alike: made, and looked up, by the first of them."""

from collections.abc import Callable
from pathlib import Path

from data.collocation_store import with_collocations
from data.config import DataConfig
from data.errors import UserError
from data.prepare import open_prepared, store_folder, store_for
from data.store import TokenStore
from train import hosts
from train.metrics import read


def shared_store(config: DataConfig, collocations: bool, log: Callable[[str], None]) -> TokenStore:
    """The store of a run: prepared by the first host, if it is missing, else checked by all, each a share of its files.

    Args:
      collocations: with those that are mined from it.

    Raises:
      UserError: as `data.prepare.prepare`; or a host does not see it.
    """

    def whole(store: TokenStore) -> TokenStore:
        return with_collocations(store, log) if collocations else store

    found, share = [], hosts.share()
    hosts.from_first(lambda: found.append(whole(store_for(config, log, share))))
    elsewhere = 'missing or damaged: what it says names the file'
    with hosts.together(UserError(f'another host finds the token store {store_folder(config)} {elsewhere}')):
        return found[0] if found else whole(open_prepared(config, share))


def shared_records(path: Path) -> list[dict]:
    """The records of a workdir, as the first host reads them."""
    return hosts.from_first(lambda: read(path))
