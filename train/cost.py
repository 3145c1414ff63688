"""What an arm costs, counted for each as if it ran alone."""

from model.flops import forward_flops
from train.cohort import Replica
from train.config import Config
from train.figures import figure
from train.rates import copies, count, rate_at, rate_units, target_slots


def step_flops(config: Config, stage: int, slots: int = 0) -> float:
    """Floating-point operations of an update in a stage, forward and backward, a multiply-add as two.

    Args:
      slots: M, target slots a row; 0: as many as this config needs when it runs alone.
    """
    shape = config.stages[stage]
    slots = slots or target_slots([config.masking], shape.length)
    return 3 * forward_flops(config.model, shape.batch_size * copies(config.masking), shape.length, slots)


def cost_figures(replica: Replica) -> list[dict]:
    """'flops' (forward and backward), 'tokens' (input tokens, each copy counted) and 'targets' of a whole run.

    Targets are those of rows of one document: a row loses a maskable token for each [SEP] within it. Copies score no
    more than they corrupt: at 5% corrupted, rounded down to 3 of 62 tokens, 8 copies score 24, one less than 40% of 62.
    """
    config = replica.config
    masking = config.masking
    flops = tokens = targets = step = 0
    for index, stage in enumerate(config.stages):
        flops += stage.steps * step_flops(config, index)
        tokens += stage.steps * stage.batch_size * copies(masking) * stage.length
        for _ in range(stage.steps):
            corruption = rate_at(masking, step, config.steps)
            prediction = corruption if masking.prediction_rate is None else masking.prediction_rate
            corrupted, scored = (count(rate_units(rate), stage.length - 2) for rate in (corruption, prediction))
            targets += stage.batch_size * min(scored, copies(masking) * corrupted)
            step += 1
    stage = len(config.stages) - 1
    return [
        figure(replica, stage, config.steps, 'flops', flops),
        figure(replica, stage, config.steps, 'tokens', tokens),
        figure(replica, stage, config.steps, 'targets', targets),
    ]
