//! What `srun` asks the controller: room for the step, and its start.

use super::listen::Listening;
use crate::exit::CliError;
use crate::output;
use crate::slurm::connect;
use ephor_proto::v1;
use ephor_slurm::Failure;
use ephor_slurm::srun::{PROGRAM, Step};
use std::time::{Duration, Instant};

/// How long a controller that does not answer is asked again: a restart takes seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first and the longest wait before asking again.
const WAITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// How long the word that a step is over may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long nothing is said of waiting: that the step before has ended may be news that is on its way.
const UNSAID: Duration = Duration::from_secs(1);

/// Finds room for the step, and waits for it where other steps hold it.
///
/// # Errors
/// The job cannot have such a step, or no controller answers.
pub fn plan(step: &Step) -> anyhow::Result<v1::StepPlan> {
    let (min, max) = step.nodes.unzip();
    let request = v1::StepRequest {
        job: Some(v1::JobRef { job: step.job, index: None }),
        tasks: step.tasks,
        nodes_min: min.unwrap_or(0),
        nodes_max: max,
        cpus_per_task: step.cpus_per_task.unwrap_or(0),
        tasks_per_node: step.tasks_per_node,
        node_list: step.node_list.clone(),
        exclude: step.exclude.clone(),
        overlap: step.overlap,
        overcommit: step.overcommit,
        gpus_per_task: step.gpus_per_task,
        gpus_per_node: step.gpus_per_node,
        cyclic: step.cyclic,
    };
    let (begun, mut wait, mut waited, mut silent) = (Instant::now(), WAITS.0, false, None);
    let say = |text: String| {
        if !step.quiet {
            output::problem(&format!("{PROGRAM}: {text}"));
        }
    };
    loop {
        // A connection for each question: they are counted, and many steps may wait on one node.
        let asked = connect().and_then(|mut c| c.call(async |c| c.plan_step(request.clone()).await));
        match asked {
            Ok(plan) if plan.busy => {
                silent = None;
                if begun.elapsed() > UNSAID && !std::mem::replace(&mut waited, true) {
                    let why = "step creation temporarily disabled, retrying (Requested nodes are busy)";
                    say(format!("Job {} {why}", step.job));
                }
            }
            Ok(plan) => {
                if waited {
                    say(format!("Step created for job {}", step.job));
                }
                return Ok(plan);
            }
            Err(error) if is_silence(&error) => {
                let since = *silent.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return Err(error);
                }
            }
            Err(error) => return Err(refused(step.job, &error.to_string()).into()),
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(WAITS.1);
    }
}

/// Nobody answered, so that asking again may help.
fn is_silence(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(CliError::Unreachable(_)))
        || error.to_string().contains("cannot reach the controller")
}

/// Starts the step on its nodes.
///
/// # Errors
/// A node could not start its part; then no other runs on.
pub fn start(step: &Step, plan: &v1::StepPlan, listening: &Listening, program: v1::StepProgram) -> anyhow::Result<()> {
    let request = v1::StepStart {
        attempt: plan.attempt,
        step: plan.step,
        program: Some(program),
        addresses: listening.addresses.iter().map(ToString::to_string).collect(),
        certificate: listening.certificate.clone(),
        key: listening.key.clone(),
    };
    let started = connect()?.call(async |c| c.start_step(request).await);
    started.map(drop).map_err(|error| match error.is::<CliError>() {
        true => error,
        false => refused(step.job, &error.to_string()).into(),
    })
}

/// Says that the step is over, so that the next one finds its cores free at once. The nodes say so too, a little later:
/// nothing hangs on this.
pub fn end(plan: &v1::StepPlan) {
    let request = v1::StepRef { attempt: plan.attempt, step: plan.step };
    let _ = connect().and_then(|mut controller| {
        controller.call(async |c| {
            let late = |_| tonic::Status::deadline_exceeded("no answer");
            tokio::time::timeout(FAREWELL, c.end_step(request)).await.unwrap_or_else(|e| Err(late(e)))
        })
    });
}

/// The controller's refusal in its own words, and below it the line that clients know for it.
fn refused(job: u64, why: &str) -> Failure {
    let known = match why {
        _ if why.contains("does not hold the cores") => "More processors requested than permitted",
        _ if why.contains("does not run") || why.contains("being ended") || why.contains("has ended") => {
            "Job/step already completing or completed"
        }
        _ if why.contains("there is no such job") || why.contains("history") => "Invalid job id specified",
        _ if why.contains("not yours") => "Access/permission denied",
        _ => "Requested node configuration is not available",
    };
    let lines = vec![
        format!("{PROGRAM}: error: {why}"),
        format!("{PROGRAM}: error: Unable to create step for job {job}: {known}"),
    ];
    Failure { lines, code: 1 }
}
