"""An ablation's report, from what its workdirs hold: one concern a file, no model and no JAX."""

from experiments.reporting.write import write_report

__all__ = ['write_report']
