"""Values that no run could use are refused before one starts."""

import pytest

from train.config import MaskingConfig, Stage

NAN = float('nan')


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: MaskingConfig(rule=(NAN, 0.0, 1.0)), 'the three shares must sum to 1'),
        (lambda: MaskingConfig(rule=(1.0, NAN, 0.0)), 'the three shares must sum to 1'),
        (lambda: MaskingConfig(rule=(1.1, -0.1, 0.0)), 'the three shares must sum to 1'),
        (lambda: MaskingConfig(noise=2**31), 'masking.noise'),
        (lambda: MaskingConfig(duplicates=2**31), 'masking.duplicates'),
        (lambda: Stage(8, 1, 1, restart=True, peak_scale=-1.0), 'stages.peak_scale'),
        (lambda: Stage(8, 1, 1, restart=True, peak_scale=NAN), 'stages.peak_scale'),
        (lambda: Stage(8, 1, 1, restart=True, warmup_share=-0.1), 'stages.warmup_share'),
        (lambda: Stage(8, 1, 1, restart=True, warmup_share=1.1), 'stages.warmup_share'),
        (lambda: Stage(8, 1, 1, restart=True, warmup_share=NAN), 'stages.warmup_share'),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert '\n' not in str(error.value)
