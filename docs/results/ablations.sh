# Makes docs/results/NAME/ of each ablation: bash docs/results/ablations.sh [NAME ...], from the repository's folder.
#
# Five seeds at cpu scale on the embedded corpus; all of them if none is named. masking_rate comes in three widths, by
# the same recipe. Stopped, the same command goes on where it was.
set -e
export JAX_PLATFORMS="${JAX_PLATFORMS:-cpu}" GLIBC_TUNABLES=glibc.malloc.hugetlb=1
wanted=" $* "

# NAME, its config, and what else ablate is to know.
ablation() {
    name="$1" config="$2"
    shift 2
    if [ "$wanted" != "  " ] && [[ "$wanted" != *" $name "* ]]; then return; fi
    .venv/bin/python -m experiments.ablate "configs/$config.py" --seeds 5 --workdir "runs/results/$name" "$@"
    mkdir -p "docs/results/$name"
    cp "runs/results/$name"/table.md "runs/results/$name"/*.png "docs/results/$name"
}

ablation masking_rate masking_rate
ablation masking_rate_narrow masking_rate --model.width 32 --model.heads 1 --model.feed-forward 128
ablation masking_rate_wide masking_rate --model.width 128 --model.heads 4 --model.feed-forward 512
ablation corruption_rule corruption_rule
ablation prediction_rate prediction_rate
ablation masking_schedule masking_schedule
ablation masking_strategy masking_strategy
ablation electra electra
