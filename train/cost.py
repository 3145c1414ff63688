"""What an arm costs, counted for each as if it ran alone."""

from train.cohort import Replica
from train.figures import figure
from train.flops import run_flops
from train.rates import copies, count, rate_at, rate_units


def cost_figures(replica: Replica) -> list[dict]:
    """'flops' (forward and backward), 'tokens' (input tokens, each copy counted) and 'targets' of a whole run.

    Where every token is scored, targets are tokens. Elsewhere they are those of rows of one document: a row loses a
    maskable token for each [SEP] within it. Copies score no more than they corrupt: at 5% corrupted, rounded down to 3
    of 62 tokens, 8 copies score 24, one less than 40% of 62.
    """
    config = replica.config
    masking = config.masking
    tokens = targets = step = 0
    for stage in config.stages:
        tokens += stage.steps * stage.batch_size * copies(masking) * stage.length
        for _ in range(stage.steps):
            corruption = rate_at(masking, step, config.steps)
            prediction = corruption if masking.prediction_rate is None else masking.prediction_rate
            corrupted, scored = (count(rate_units(rate), stage.length - 2) for rate in (corruption, prediction))
            chosen = stage.batch_size * min(scored, copies(masking) * corrupted)
            targets += stage.batch_size * copies(masking) * stage.length if config.objective.scores_all else chosen
            step += 1
    stage = len(config.stages) - 1
    return [
        figure(replica, stage, config.steps, 'flops', run_flops(config)),
        figure(replica, stage, config.steps, 'tokens', tokens),
        figure(replica, stage, config.steps, 'targets', targets),
    ]
