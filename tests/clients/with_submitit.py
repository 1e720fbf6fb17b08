"""What people do with submitit: results, ranks, arrays, failures, checkpoints and cancellation. Says what it saw."""

import os
import time
from pathlib import Path

import submitit


def add(a, b):
    return a + b


def rank():
    environment = submitit.JobEnvironment()
    return (environment.global_rank, environment.num_tasks, environment.local_rank, environment.node)


def fail():
    raise ValueError("on purpose")


class Saved:
    """Runs on from its checkpoint: the first run never ends by itself."""

    def __init__(self):
        self.runs = 0

    def __call__(self, folder):
        self.runs += 1
        Path(folder, f"run.{self.runs}").write_text("here")
        if self.runs == 1:
            time.sleep(600)
        return self.runs

    def checkpoint(self, folder):
        return submitit.helpers.DelayedSubmission(self, folder)


def until(what, is_so):
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    raise SystemExit(f"waited for a minute for {what}")


executor = submitit.AutoExecutor(folder="logs/%j")
executor.update_parameters(timeout_min=5, nodes=1, tasks_per_node=1, cpus_per_task=1, name="from-submitit")
print("cluster", executor.cluster)

print("result", executor.submit(add, 1, 2).result())

executor.update_parameters(nodes=2, tasks_per_node=2)
print("ranks", executor.submit(rank).results())

executor.update_parameters(nodes=1, tasks_per_node=1, slurm_array_parallelism=2)
print("array", [job.result() for job in executor.map_array(add, [1, 2, 3], [10, 20, 30])])

try:
    print("failed", executor.submit(fail).result())
except submitit.core.utils.FailedJobError as error:
    print("failed", "on purpose" in str(error))

job = executor.submit(Saved(), os.getcwd())
until("the first run", Path("run.1").exists)
job._interrupt(timeout=False)
print("requeued", job.result())

job = executor.submit(time.sleep, 600)
until("it to run", lambda: job.get_info(mode="force").get("State") == "RUNNING")
job.cancel()
until("its end", lambda: job.get_info(mode="force").get("State", "").startswith("CANCELLED"))
print("cancelled", job.state)
