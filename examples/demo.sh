#!/usr/bin/env bash
# Ephor in a minute: a controller, three agents, ten jobs, and another scheduling policy while they run.
# Everything happens in a temporary folder on this machine and ends with the script.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
bin=$root/target/release
folder=$(mktemp -d)
pids=()

finish() {
    code=$?
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    if [ "$code" -ne 0 ]; then
        echo "--- the demo failed; what the controller said last:" >&2
        tail -n 20 "$folder/controller.log" >&2 || true
    fi
    rm -rf "$folder"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
run() { printf '$ ephor %s\n' "$*"; "$bin/ephor" "$@"; }
# Waits until a command succeeds, up to a minute.
until_ok() {
    for _ in $(seq 1 600); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    echo "waited a minute for: $*" >&2
    return 1
}

say "A controller in $folder"
port=$(( 20000 + RANDOM % 20000 ))
cat > "$folder/controller.toml" <<EOF
data_folder = "$folder/data"
socket_path = "$folder/ephor.sock"
agents_listen = "127.0.0.1:$port"
launch_grace_s = 2
EOF
export EPHOR_SOCKET=$folder/ephor.sock
"$bin/ephor" controller --config "$folder/controller.toml" > "$folder/controller.log" 2>&1 &
pids+=($!)
until_ok "$bin/ephor" status
run status

say "Three agents join, each with a token of its own"
for node in n1 n2 n3; do
    "$bin/ephor-agent" --data "$folder/$node" --name "$node" --cpus 2 --join "$("$bin/ephor" node token)" \
        > "$folder/$node.log" 2>&1 &
    pids+=($!)
done
three_up() { [ "$("$bin/ephor" --json node list | grep -c '"state": *"IDLE"')" -eq 3 ]; }
until_ok three_up
run node list

say "Ten jobs"
mkdir "$folder/work" && cp examples/jobs/*.sh "$folder/work/" && chmod -R a+rwX "$folder" && cd "$folder/work"
submit() { # script and options -> id
    local reply
    reply=$("$bin/ephor" --json job submit "$@") || return 1
    reply=${reply#*\"job\":}; reply=${reply%%[,\}]*}
    echo "${reply//[[:space:]]/}"
}
hello=$(submit hello.sh);                                   echo "hello        $hello"
array=$(submit array.sh);                                   echo "array        $array (six elements, three at a time)"
prepare=$(submit prepare.sh);                               echo "prepare      $prepare"
train=$(submit --dependency "afterok:$prepare" train.sh);   echo "train        $train (after prepare)"
report=$(submit --dependency "afterok:$train" report.sh);   echo "report       $report (after train)"
long=$(submit too-long.sh);                                 echo "too long     $long (its limit of 2 s will strike)"
failing=$(submit failing.sh);                               echo "failing      $failing"
cleanup=$(submit --dependency "afternotok:$failing" cleanup-if-failed.sh); echo "cleanup      $cleanup (only if failing fails)"
noisy=$(submit noisy.sh);                                   echo "noisy        $noisy (writes to stderr)"
huge=$(submit huge.sh);                                     echo "huge         $huge (three whole nodes: cannot run now)"

say "The queue, and why a job waits"
run job list
run job why "$huge"

say "Another scheduling policy, while they run"
run policy activate scheduling "$root/target/plugins/scheduling-fifo.wasm"
run policy list
run policy rollback scheduling

say "Waiting for the end of all"
all_done() { [ "$("$bin/ephor" --json job list | grep -c '"id":')" -eq 0 ]; }
until_ok all_done
run job list --all

say "What they wrote"
for file in hello squares-3 prepare report too-long failing cleanup noisy huge; do
    printf -- '--- %s.out\n' "$file"; cat "$file.out"
done
printf -- '--- noisy.err\n'; cat noisy.err

say "Each ended as it should"
expect() {
    if ! "$bin/ephor" job list --all "$1" | grep -q "$2"; then
        echo "job $1 is not $2:" >&2
        "$bin/ephor" job show "$1" >&2
        exit 1
    fi
    echo "job $1 is $2"
}
expect "$hello" COMPLETED
expect "$report" COMPLETED
expect "$long" TIMEOUT
expect "$failing" FAILED
expect "$cleanup" COMPLETED
expect "$huge" COMPLETED
say "Done: everything is stopped and removed"
