# go.sh VARIANT OUTNAME which...
export PYTHONPATH=/tmp/bns/exp MLSCALE_DATA=/work/shared/data OMP_NUM_THREADS=1
cd /tmp/bns/exp; mkdir -p out
P="nice -n 5 /work/main/.venv/bin/python measure.py"
T=/tmp/cmp
D=/work/wt-bottleneck/datasets
NV="$T/gtx980-low.parquet $T/gtx980-high.parquet $T/gtx1080ti.parquet $T/p100.parquet"
O="--predictor bottleneck --seeds 1 --json"
v=$1; n=$2; shift 2
for w in "$@"; do case $w in
own) $P $v study errors $NV $T/gtx980-49.parquet $O > out/own-$n.json;;
ownt) $P $v study errors $NV $T/gtx980-49.parquet --quantity time $O > out/own-$n.json;;
unseen) $P $v study errors $NV --unseen-gpu --quantity time $O > out/unseen-$n.json;;
h100) $P $v study errors $D/h100-suite.csv --base cu=132 --quantity time $O > out/h100-$n.json;;
sim) $P $v study errors $D/simulated-gcn3.parquet $O > out/sim-$n.json;;
pooled) $P $v study errors $NV --pooled --quantity time $O > out/pooled-$n.json;;
esac; done
