"""What the processes of a run do together, where there is one: nothing is waited for, and nothing is lost."""

import jax
import numpy as np
import pytest

from data.errors import UserError
from train import hosts
from train.mesh import make_mesh


def test_one_process_answers_at_once():
    votes = hosts.Votes()
    assert votes(False, True) == (False, True) and votes(True, False) == (True, False)
    assert hosts.in_any(True) and not hosts.in_any(False)
    assert hosts.is_first() and hosts.from_first(lambda: 3) == 3
    hosts.wait()


def test_votes_of_all_devices_are_joined():
    """The array that several processes build of their own flags, built by one."""
    assert np.asarray(hosts._any(np.array([False, True, False]))).tolist() == [False, True, False]


def test_a_failure_keeps_its_own_exception():
    with pytest.raises(UserError, match='mine'), hosts.together(UserError('of another')):
        raise UserError('mine')
    with hosts.together(UserError('of another')):
        pass


def test_readable_leaves_the_arrays_of_one_process_as_they_are():
    tree = {'a': jax.numpy.ones(3)}
    assert hosts.readable(tree, make_mesh((1, 1, 1, 1), 1)) is tree
