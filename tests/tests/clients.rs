//! Clients of Slurm from PyPI, unchanged but for the PATH, against real controllers and agents. `make test-clients` installs
//! them and says where they are.

use ephor_tests::{Options, TestCluster};
use std::path::PathBuf;
use std::process::Command;

/// Runs a program of `tests/clients` with the Python that has the clients, and gives what it wrote; `None`: there is none.
fn run(cluster: &TestCluster, program: &str) -> Option<String> {
    let Some(python) = std::env::var_os("EPHOR_CLIENTS").map(|folder| PathBuf::from(folder).join("bin/python")) else {
        println!("SKIPPED: no clients are installed here; `make test-clients` does it");
        return None;
    };
    let links = cluster.folder().join("bin");
    std::fs::create_dir(&links).unwrap();
    cluster.ephor_ok(&["slurm-links", links.to_str().unwrap()]);
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients").join(program);
    let path = format!("{}:{}:/usr/bin:/bin", links.display(), python.parent().unwrap().display());
    let mut command = Command::new(&python);
    command.arg(program).current_dir(cluster.folder()).env_clear();
    command.env("PATH", path).env("HOME", cluster.folder()).env("EPHOR_SOCKET", cluster.socket());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

#[test]
fn submitit_gets_results_ranks_arrays_failures_checkpoints_and_cancellation() {
    let cluster = TestCluster::start(Options { agents: 2, cpus: 4, ..Options::default() });
    let Some(text) = run(&cluster, "with_submitit.py") else { return };
    let expected = "cluster slurm\n\
        result 3\n\
        ranks [(0, 4, 0, 0), (1, 4, 1, 0), (2, 4, 0, 1), (3, 4, 1, 1)]\n\
        array [11, 22, 33]\n\
        failed True\n\
        requeued 2\n\
        cancelled CANCELLED\n";
    assert_eq!(text, expected);
}
