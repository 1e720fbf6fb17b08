//! Submits every script of a corpus of measured cases to a live controller, and says which mean what they must.
//!
//! The cluster is that of the corpus: simulated nodes with the cores, memory, GPUs and features that its head names. A line
//! for each case, in the last how many passed. Cases that Ephor has no word for fail, with the reason that is listed.

#[path = "../../../host/slurm/tests/corpus/cases.rs"]
mod cases;
#[path = "../../../host/slurm/tests/corpus/without.rs"]
#[allow(dead_code, reason = "one list is for reading alone")]
mod without;

use anyhow::{Context, bail, ensure};
use cases::{Case, Corpus, Outcome, Place};
use ephor_model::{Span, Timestamp};
use ephor_tests::{Options, TestCluster, binary};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const SCENE: &str = "[[nodes]]\nprefix = \"n\"\ncount = 64\ncpus = 64\nmemory_mib = 512000\ngpus = 8\ngpu_kind = \"a100\"\n\
                     features = [\"n\", \"a100\", \"A100\", \"v100\", \"skylake\", \"haswell\", \"knl\"]\n\
                     [[nodes]]\nprefix = \"g\"\ncount = 8\ncpus = 64\nmemory_mib = 512000\ngpus = 8\ngpu_kind = \"v100\"\n\
                     features = [\"g\", \"v100\", \"A100\"]\n";
const NODES: usize = 72;

fn main() -> anyhow::Result<ExitCode> {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let file = file.context("name the file of the corpus: make corpus FILE=../shared/sbatch/corpus.yaml")?;
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let corpus: Corpus = serde_saphyr::from_str(&text).map_err(|e| anyhow::anyhow!("{}: {e}", file.display()))?;
    let cluster = cluster()?;
    let (mut passed, mut failed, mut unknown) = (0, 0, 0);
    for case in &corpus.cases {
        let differences = run(case, &cluster).with_context(|| format!("the case {}", case.id))?;
        let listed = without::WITHOUT.iter().chain(without::DIFFERENT).find(|(id, _)| *id == case.id);
        match (differences.as_slice(), listed) {
            ([], _) => {
                passed += 1;
                println!("ok   {}", case.id);
            }
            (differences, Some((_, why))) => {
                failed += 1;
                println!("FAIL {}: not there, since {why}: {}", case.id, differences.join("; "));
            }
            (differences, None) => {
                failed += 1;
                unknown += 1;
                println!("FAIL {}: {}", case.id, differences.join("; "));
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if unknown == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The cluster of the corpus. Its first job is an array that is held, which dependencies name.
fn cluster() -> anyhow::Result<TestCluster> {
    let options =
        Options { agents: 0, simulated: 64, simulated_nodes: NODES, scene: SCENE.into(), ..Options::default() };
    let cluster = TestCluster::start(options);
    let defaults = ["--default-mem-per-cpu", "100M", "--default-time", "36600-0"];
    for (words, features) in [
        (["queue", "set", "main"], Some("n")),
        (["queue", "create", "gpu"], None),
        (["queue", "create", "test"], Some("n")),
    ] {
        let features = features.map(|f| format!("--node-features={f}"));
        let words: Vec<&str> = words.into_iter().chain(defaults).chain(features.as_deref()).collect();
        cluster.ephor_ok(&words);
    }
    for (name, count) in [("lustre1", "10"), ("lustre2", "10"), ("ansys", "4")] {
        cluster.ephor_ok(&["licence", "create", name, "--count", count]);
    }
    cluster.ephor_ok(&["account", "create", "six@gpu"]);
    cluster.ephor_ok(&["user", "create", &login_name()?, "--accounts", "six@gpu,default"]);
    let output = slurm(&cluster, cluster.folder(), "sbatch", &["-H", "--array=1-3", "--wrap", "true"], None)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        said == "Submitted batch job 1\n",
        "the first job is an array: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(cluster)
}

fn login_name() -> anyhow::Result<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid())?;
    Ok(user.context("whoever runs this has no name")?.name)
}

/// Runs one of Slurm's commands in a folder.
fn slurm(
    cluster: &TestCluster,
    folder: &Path,
    name: &str,
    words: &[&str],
    input: Option<&str>,
) -> anyhow::Result<Output> {
    let mut command = Command::new(binary("ephor"));
    command.args(["slurm", name]).args(words).current_dir(folder);
    command.env("EPHOR_SOCKET", cluster.socket()).env("TZ", "UTC");
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("SBATCH_") || variable.to_string_lossy().starts_with("SLURM_") {
            command.env_remove(variable);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let mut pipe = child.stdin.take().context("the child has an input")?;
    // A command that refuses its options reads nothing.
    let _ = pipe.write_all(input.unwrap_or_default().as_bytes());
    drop(pipe);
    Ok(child.wait_with_output()?)
}

/// Every way in which a case does not mean what it must.
fn run(case: &Case, cluster: &TestCluster) -> anyhow::Result<Vec<String>> {
    let folder = cluster.folder().join("corpus").join(&case.id);
    fs::create_dir_all(&folder)?;
    let by_input = case.via.as_deref() == Some("stdin");
    let script = case.script();
    fs::write(folder.join("job.sh"), &script)?;
    let mut words = vec!["-H"];
    words.extend(case.argv.iter().map(String::as_str));
    if !by_input && !case.wraps() {
        words.push("job.sh");
    }
    let before = now()?;
    let output = slurm(cluster, &folder, "sbatch", &words, by_input.then_some(script.as_str()))?;
    let after = now()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut jobs = Vec::new();
    if output.status.success() {
        let Some(id) = said.split_whitespace().last() else { bail!("sbatch ended with 0 and said nothing") };
        let shown = slurm(cluster, &folder, "scontrol", &["show", "job", "-o", id], None)?;
        jobs.extend(String::from_utf8_lossy(&shown.stdout).lines().filter(|l| !l.is_empty()).map(str::to_owned));
        slurm(cluster, &folder, "scancel", &[id], None)?;
    }
    let outcome = Outcome {
        code: output.status.code().unwrap_or(-1),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        jobs,
    };
    let seconds = before.0 / 1000..=after.0 / 1000;
    let place = Place {
        script: if by_input { "stdin" } else { "job.sh" },
        name: if case.wraps() {
            "wrap"
        } else if by_input {
            "sbatch"
        } else {
            "job.sh"
        },
        folder: folder.to_str().context("the folder's path is text")?,
        user: &login_name()?,
        in_an_hour: seconds.map(|s| Timestamp((s + 3600) * 1000).to_iso(Span(0))).collect(),
    };
    Ok(case.differences(&outcome, &place))
}

fn now() -> anyhow::Result<Timestamp> {
    Ok(Timestamp(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?))
}
