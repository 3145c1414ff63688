"""Every objective by its name in the config."""

from train.config import Config
from train.objectives.all_tokens_mlm import ALL_TOKENS_MLM
from train.objectives.electra import ELECTRA
from train.objectives.masked_lm import MASKED_LM
from train.objectives.mlm_with_boundary import MLM_WITH_BOUNDARY
from train.objectives.mlm_with_pairs import MLM_WITH_PAIRS
from train.objectives.objective import Objective
from train.objectives.replace_mlm import REPLACE_MLM

OBJECTIVES = {
    'mlm': MASKED_LM,
    'electra': ELECTRA,
    'replace_mlm': REPLACE_MLM,
    'all_tokens_mlm': ALL_TOKENS_MLM,
    'mlm_nsp': MLM_WITH_PAIRS,
    'mlm_sop': MLM_WITH_PAIRS,
    'mlm_sbo': MLM_WITH_BOUNDARY,
}


def objective_of(config: Config) -> Objective:
    """The objective that a config names."""
    return OBJECTIVES[config.objective.name]
