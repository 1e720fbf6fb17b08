//! Every case of the corpus through reading and showing alone: what the controller adds is filled in as the cluster of the
//! corpus would. The whole way is `make corpus`.

mod cases;
#[allow(dead_code, reason = "one list is for the whole way")]
mod without;

use cases::{Case, Corpus, Outcome, Place};
use ephor_model::submit::Caller;
use ephor_model::{Draft, JobSpec, JobState, MemRequest, Payload, Span, Timestamp};
use ephor_slurm::Failure;
use ephor_slurm::job::{ArrayPlace, DependencyView, JobView};
use ephor_slurm::sbatch::{self, CommandLine, Script};
use ephor_slurm::scontrol::show_job::{self, Against};
use std::path::Path;

const NOW: Timestamp = Timestamp(1_796_079_849_000);
const FOLDER: &str = "/work";
const ID: u64 = 7;

fn run(case: &Case) -> Result<(Draft, Vec<String>), Failure> {
    let line = CommandLine::read(&case.argv)?;
    let script = match line.wrapped() {
        Some(command) => Script::wrapped(command),
        None => {
            let (shown, name) = if case.via.is_some() { ("stdin", "sbatch") } else { ("job.sh", "job.sh") };
            Script { text: case.script().into_bytes(), shown: shown.into(), name: name.into() }
        }
    };
    let environment = ["HOME=/home/ann".to_owned()];
    let caller = Caller { now: NOW, utc_offset: Span(0), work_dir: FOLDER, environment: &environment };
    let read = sbatch::read(&line, script, &caller)?;
    Ok((read.draft, read.warnings))
}

/// The job as it would be shown, held.
fn view(draft: Draft) -> JobView {
    let JobSpec { name, payload, time_limit, request, common } = draft.spec;
    let (mut request, spec) = ((*request).clone(), (*common).clone());
    if request.mem == MemRequest::Unset {
        request.mem = MemRequest::PerCpu(100);
    }
    let array = spec.array.as_ref();
    let place = array.map(|array| {
        let indices: Vec<u32> = (0..array.count()).filter_map(|n| array.index(n)).collect();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for index in indices {
            match runs.last_mut() {
                Some(run) if run.1 + 1 == index => run.1 = index,
                _ => runs.push((index, index)),
            }
        }
        let text = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
        let list = runs.iter().map(text).collect::<Vec<_>>().join(",");
        let throttle = array.throttle.map(|n| format!("%{n}")).unwrap_or_default();
        ArrayPlace { id: ID, index: None, pending: Some(format!("{list}{throttle}")) }
    });
    let dependencies = spec
        .dependencies
        .iter()
        .map(|d| DependencyView { kind: d.kind.name().into(), job: d.job.0, index: d.index, array: d.job.0 == 1 })
        .collect();
    JobView {
        id: ID,
        array: place,
        name,
        user: "ann".into(),
        uid: 0,
        group: "ann".into(),
        gid: 0,
        account: spec.account,
        queue: if spec.queue.is_empty() { "main".into() } else { spec.queue },
        qos: spec.qos,
        state: JobState::Pending,
        reason: "JobHeldUser".into(),
        submitted: NOW,
        eligible: None,
        begin: spec.begin,
        started: None,
        ended: None,
        expected_end: None,
        promised_start: None,
        deadline: spec.deadline,
        time_limit,
        attempts: 0,
        exit_code: 0,
        exit_signal: 0,
        nodes: Vec::new(),
        cpu_ms: 0,
        peak_mem: 0,
        cpu_milli: i64::try_from(request.cpu_count()).unwrap() * 1000,
        request,
        priority: 1,
        nice: spec.nice,
        work_dir: spec.work_dir,
        stdin: spec.stdin,
        stdout: spec.stdout.unwrap(),
        stderr: spec.stderr,
        command: matches!(payload, Payload::Script { .. }).then(|| "job.sh".into()),
        dependencies,
        dependency_any: spec.dependency_any,
        comment: spec.comment,
        requeue: spec.requeue.unwrap_or(true),
        licences: spec.licences,
        reservation: spec.reservation,
        words: spec.words,
        node_cpus: Some(64),
        default_mem_per_cpu: Some(100),
    }
}

#[test]
fn every_case_means_what_was_measured() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/sbatch/corpus.yaml");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: {} is not there", file.display());
        return;
    };
    let corpus: Corpus = serde_saphyr::from_str(&text).unwrap();
    assert!(corpus.cases.len() > 90, "{} cases were read", corpus.cases.len());
    let mut wrong = Vec::new();
    for case in &corpus.cases {
        let name = if case.wraps() {
            "wrap"
        } else if case.via.is_some() {
            "sbatch"
        } else {
            "job.sh"
        };
        let script = if case.via.is_some() { "stdin" } else { "job.sh" };
        let in_an_hour = vec![(NOW + Span::minutes(60)).to_iso(Span(0))];
        let place = Place { script, name, folder: FOLDER, user: "ann", in_an_hour };
        let outcome = match run(case) {
            Ok((draft, warnings)) => {
                let against = Against { now: NOW, offset: Span(0) };
                let shown = show_job::show(&view(draft), against, true);
                Outcome { code: 0, stderr: warnings.join("\n"), jobs: vec![shown] }
            }
            Err(failure) => Outcome { code: failure.code.into(), stderr: failure.lines.join("\n"), jobs: Vec::new() },
        };
        let differences = case.differences(&outcome, &place);
        let known = without::WITHOUT.iter().chain(without::CONTROLLER).find(|(id, _)| *id == case.id);
        match (differences.as_slice(), known) {
            ([], None) => {}
            ([], Some((id, why))) => wrong.push(format!("{id} is listed ({why}) and means what it must")),
            (_, Some(_)) => {}
            (differences, None) => wrong.push(format!("{}: {}", case.id, differences.join("; "))),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), corpus.cases.len(), wrong.join("\n"));
}
