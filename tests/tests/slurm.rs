//! Slurm's commands, called by their names through links, against a live controller: as scripts and programs call them.

use ephor_tests::{Options, TestCluster, binary, wait_for};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A cluster, and a folder with links named as the commands.
struct Site {
    cluster: TestCluster,
    links: PathBuf,
}

/// What a command did.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Site {
    fn start(options: Options) -> Self {
        let cluster = TestCluster::start(Options { config: "cluster_name = \"c1\"".into(), ..options });
        let links = cluster.folder().join("bin");
        fs::create_dir(&links).unwrap();
        cluster.ephor_ok(&["slurm-links", links.to_str().unwrap()]);
        Self { cluster, links }
    }

    fn folder(&self) -> &Path {
        self.cluster.folder()
    }

    fn run_with(&self, name: &str, words: &[&str], input: &str, variables: &[(&str, &str)]) -> Said {
        let mut command = Command::new(self.links.join(name));
        command.args(words).current_dir(self.folder()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.links.display())).env("HOME", self.folder());
        command.env("EPHOR_SOCKET", self.cluster.socket()).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that reads no input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn run(&self, name: &str, words: &[&str]) -> Said {
        self.run_with(name, words, "", &[])
    }

    fn ok(&self, name: &str, words: &[&str]) -> String {
        let said = self.run(name, words);
        assert_eq!(said.code, 0, "{name} {words:?}: {said:?}");
        said.out
    }

    /// Submits with `--parsable`.
    fn submit(&self, words: &[&str]) -> String {
        let words: Vec<&str> = ["--parsable"].iter().chain(words).copied().collect();
        self.ok("sbatch", &words).trim_end().to_owned()
    }

    fn wait_for_state(&self, id: &str, state: &str) {
        wait_for(&format!("job {id} to be {state}"), || {
            let said = self.ok("sacct", &["-X", "-n", "-P", "-o", "State", "-j", id]);
            (!said.is_empty() && said.lines().all(|line| line == state)).then_some(())
        });
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder().join(name), text).unwrap();
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn jobs_are_submitted_in_every_way_and_know_themselves() {
    let site = Site::start(Options::default());
    let show = "#!/bin/sh\nenv | grep -E '^(SLURM|TMPDIR)' | sort\necho pid=$$ args=$*\n";
    site.write("job.sh", show);
    let said = site.run("sbatch", &["-c1", "-n2", "--mem=100M", "-J", "hello", "job.sh", "a", "b"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "Submitted batch job 1\n", ""));
    site.wait_for_state("1", "COMPLETED");
    let out = site.file("slurm-1.out");
    let folder = site.folder().display().to_string();
    let pid = out.lines().find_map(|line| line.strip_prefix("pid=")?.strip_suffix(" args=a b")).expect("arguments");
    for (name, value) in [
        ("SLURMD_NODENAME", "n1"),
        ("SLURM_CPUS_ON_NODE", "2"),
        ("SLURM_CPUS_PER_TASK", "1"),
        ("SLURM_GTIDS", "0"),
        ("SLURM_JOBID", "1"),
        ("SLURM_JOB_CPUS_PER_NODE", "2"),
        ("SLURM_JOB_ID", "1"),
        ("SLURM_JOB_NAME", "hello"),
        ("SLURM_JOB_NODELIST", "n1"),
        ("SLURM_JOB_NUM_NODES", "1"),
        ("SLURM_MEM_PER_NODE", "100"),
        ("SLURM_NPROCS", "2"),
        ("SLURM_NTASKS", "2"),
        ("SLURM_PROCID", "0"),
        ("SLURM_SUBMIT_DIR", &folder),
        ("SLURM_TASKS_PER_NODE", "2"),
        ("SLURM_TASK_PID", pid),
        ("TMPDIR", "/tmp"),
    ] {
        assert!(out.lines().any(|line| line == format!("{name}={value}")), "{name}={value} is not in\n{out}");
    }
    // The job of a job has nothing of it, and what nobody asked for is not set.
    let outer = [("SLURM_JOB_ID", "77"), ("SLURM_NTASKS_PER_NODE", "3"), ("SLURM_ARRAY_TASK_ID", "5"), ("KEPT", "yes")];
    let said = site.run_with("sbatch", &["--parsable", "-o", "env.out", "--wrap", "env"], "", &outer);
    assert_eq!(said.out, "2\n", "{said:?}");
    site.wait_for_state("2", "COMPLETED");
    let out = site.file("env.out");
    let has = |name: &str| out.lines().any(|line| line.starts_with(&format!("{name}=")));
    assert!(has("KEPT") && out.contains("SLURM_JOB_ID=2\n"), "{out}");
    for name in
        ["SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"]
    {
        assert!(!has(name), "{name} is set:\n{out}");
    }
    let said = site.run_with("sbatch", &["-o", "in.out", "--export=NONE,FOO=1"], show, &[]);
    assert_eq!(said.out, "Submitted batch job 3\n", "{said:?}");
    site.wait_for_state("3", "COMPLETED");
    let out = site.file("in.out");
    assert!(out.contains("SLURM_EXPORT_ENV=NONE,FOO=1") && out.contains("SLURM_JOB_NAME=sbatch"), "{out}");
    let said = site.run("sbatch", &["--wait", "-Q", "--wrap", "exit 3"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""), "{said:?}");
}

#[test]
fn arrays_and_dependencies_are_shown_and_cancelled_by_element() {
    let site = Site::start(Options::default());
    let array = site.submit(&[
        "-H",
        "-a",
        "1-4%2",
        "-o",
        "a-%a.out",
        "--wrap",
        "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT",
    ]);
    assert_eq!(
        site.ok("squeue", &["-h", "-o", "%i|%t|%r|%K|%F"]),
        format!("{array}_[1-4%2]|PD|JobHeldUser|1-4%2|{array}\n")
    );
    let single = site.ok("squeue", &["-h", "-r", "-o", "%i"]);
    assert_eq!(lines(&single), (1..=4).map(|n| format!("{array}_{n}")).collect::<Vec<_>>());
    site.ok("scancel", &[&format!("{array}_2")]);
    let states = site.ok("squeue", &["-h", "-t", "all", "-o", "%i %T"]);
    let mut states = lines(&states);
    states.sort_unstable();
    assert_eq!(states, [format!("{array}_2 CANCELLED"), format!("{array}_[1,3-4%2] PENDING")]);
    let after = site.submit(&["-d", &format!("afterany:{array}"), "-o", "after.out", "--wrap", "echo after"]);
    assert_eq!(
        site.ok("squeue", &["-h", "-j", &after, "-o", "%r %E"]),
        format!("Dependency afterany:{array}_*(unfulfilled)\n")
    );
    site.ok("scontrol", &["release", &array]);
    site.wait_for_state(&after, "COMPLETED");
    assert_eq!(["a-1.out", "a-3.out", "a-4.out"].map(|name| site.file(name)), ["1 of 4\n", "3 of 4\n", "4 of 4\n"]);
    assert_eq!(site.file("after.out"), "after\n");
    // submitit's question, word for word.
    let said = site.ok("sacct", &["-o", "JobID,State,NodeList", "--parsable2", "-j", &array, "-j", &after]);
    let mut said = lines(&said);
    assert_eq!(said.remove(0), "JobID|State|NodeList");
    for line in [
        format!("{array}_2|CANCELLED|None assigned"),
        format!("{array}_3|COMPLETED|n1"),
        format!("{after}|COMPLETED|n1"),
        format!("{after}.batch|COMPLETED|n1"),
    ] {
        assert!(said.contains(&line.as_str()), "{line} is not in {said:?}");
    }
    // What is gone was wanted gone.
    assert_eq!(site.ok("scancel", &[&after, "99999"]), "");
}

#[test]
fn clients_read_what_they_expect() {
    let site = Site::start(Options::default());
    let id = site.submit(&[
        "-J",
        "work",
        "-c2",
        "-t",
        "90",
        "--comment",
        "a b",
        "--wrap",
        "echo run $SLURM_RESTART_COUNT; sleep 300",
    ]);
    site.wait_for_state(&id, "RUNNING");
    let user = site.ok("squeue", &["-h", "-o", "%u"]).trim_end().to_owned();
    // batchspawner, nextflow, parsl, NeMo-Run, psij, aiida, simple-slurm, exporters.
    assert_eq!(site.ok("squeue", &["-h", "-j", &id, "-o", "%T %B"]), "RUNNING n1\n");
    assert_eq!(site.ok("squeue", &["--noheader", "-o", "%i %t", "-t", "all", "-u", &user]), format!("{id} R\n"));
    assert_eq!(
        site.ok("squeue", &["--noheader", "--format=%i %t", "--job", &format!("{id},{id}")]),
        format!("{id} R\n")
    );
    assert_eq!(site.ok("squeue", &["-n", "work", "-h", "-o", "%A"]), format!("{id}\n"));
    let psij = site.ok("squeue", &["-O", "JobArrayID,StateCompact,Reason", "-t", "all", "--me"]);
    let fields: Vec<Vec<&str>> = psij.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(fields, [vec!["JOBID", "ST", "REASON"], vec![&id, "R", "None"]]);
    let aiida = "%i^^^%t^^^%r^^^%B^^^%u^^^%D^^^%C^^^%R^^^%P^^^%l^^^%j";
    let line = format!("{id}^^^R^^^None^^^n1^^^{user}^^^1^^^2^^^n1^^^main^^^1:30:00^^^work\n");
    assert_eq!(site.ok("squeue", &["--noheader", "-o", aiida, &format!("--jobs={id},{id}")]), line);
    assert_eq!(
        site.ok("squeue", &["-a", "-r", "-h", "-o", "%A,%T,%r", "--states=all"]),
        format!("{id},RUNNING,None\n")
    );
    // Unknown jobs: one is an error, of two the known ones are shown.
    let gone = site.run("squeue", &["-h", "-j", "99999"]);
    assert_eq!((gone.code, gone.err.as_str()), (1, "slurm_load_jobs error: Invalid job id specified\n"));
    assert_eq!(site.ok("squeue", &["-h", "-j", "99998,99999"]), "");

    let shown = site.ok("scontrol", &["show", "job", "-o", &id]);
    for field in [
        "JobName=work",
        "JobState=RUNNING",
        "TimeLimit=01:30:00",
        "NumCPUs=2",
        "NodeList=n1",
        "Comment=a b",
        "CPUs/Task=2",
    ] {
        assert!(shown.contains(&format!(" {field} ")), "{field} is not in {shown}");
    }
    let gone = site.run("scontrol", &["show", "job", "99999"]);
    assert_eq!((gone.code, gone.err.as_str()), (1, "slurm_load_jobs error: Invalid job id specified\n"));
    assert_eq!(site.ok("scontrol", &["show", "hostnames", "n[08-10],g1"]), "n08\nn09\nn10\ng1\n");
    let own = site.run_with("scontrol", &["show", "hostname"], "", &[("SLURM_JOB_NODELIST", "n[1-2]")]);
    assert_eq!(own.out, "n1\nn2\n");
    let config = site.ok("scontrol", &["show", "config"]);
    assert!(config.contains("\nMinJobAge               = 300 sec\n"), "{config}");
    // Once every cluster was called the same here.
    assert!(config.contains("\nClusterName             = c1\n"), "{config}");
    let partition = site.ok("scontrol", &["show", "partition", "-o"]);
    assert!(
        partition.starts_with("PartitionName=main ") && partition.contains(" State=UP TotalCPUs=4 TotalNodes=1 "),
        "{partition}"
    );
    assert_eq!(site.run("scontrol", &["show", "partition", "nope"]).err, "Partition nope not found\n");
    assert!(site.ok("scontrol", &["show", "node", "n1"]).contains("\n   State=MIXED "));

    assert_eq!(site.ok("sinfo", &["-h", "-o", "%P %a %D %T %N %c"]), "main* up 1 mixed n1 4\n");
    assert_eq!(site.ok("sinfo", &["-h", "-o", "%C"]), "2/2/0/4\n");
    assert_eq!(site.ok("sinfo", &["-o", "%P"]), "PARTITION\nmain*\n");
    assert_eq!(site.ok("sinfo", &["--version"]), "slurm 22.05.8\n");
    site.ok("scontrol", &["update", "NodeName=n1", "State=DRAIN", "Reason=disk"]);
    assert_eq!(site.ok("sinfo", &["-h", "-o", "%T %E"]), "draining disk\n");
    site.ok("scontrol", &["update", "NodeName=n1", "State=RESUME"]);

    let held = site.submit(&["-H", "--wrap", "true"]);
    site.ok("scontrol", &["update", &format!("jobid={held}"), "TimeLimit=7", "Comment=later", "nice=5"]);
    let shown = site.ok("scontrol", &["-o", "show", "job", &held]);
    assert!(
        shown.contains(" TimeLimit=00:07:00 ") && shown.contains(" Comment=later ") && shown.contains(" Nice=5 "),
        "{shown}"
    );
    let bad = site.run("scontrol", &["update", &format!("jobid={held}"), "foo=bar"]);
    assert_eq!(
        (bad.code, bad.err.as_str()),
        (1, "Update of this parameter is not supported: foo=bar\nRequest aborted\n")
    );
    let pending = site.run("scontrol", &["requeue", &held]);
    assert_eq!((pending.code, pending.err), (1, format!("Job is pending execution for job {held}\n")));
    let unknown = site.run("scontrol", &["hold", "99999"]);
    let text = "Invalid job id specified for job 99999\nslurm_suspend error: Invalid job id specified\n";
    assert_eq!((unknown.code, unknown.err.as_str()), (1, text));
    site.ok("scontrol", &["release", &held]);
    site.wait_for_state(&held, "COMPLETED");

    let out = format!("slurm-{id}.out");
    wait_for("the first run", || (site.file(&out) == "run\n").then_some(()));
    site.ok("scontrol", &["requeue", &id]);
    wait_for("the second run", || (site.file(&out) == "run\nrun 1\n").then_some(()));
    assert!(site.ok("scontrol", &["show", "job", &id]).contains(" Restarts=1 "));
    site.ok("scancel", &["-Q", "--name=work"]);
    site.wait_for_state(&id, "CANCELLED");
    assert_eq!(site.ok("squeue", &["-h"]), "");
}

#[test]
fn json_has_what_programs_read() {
    let site = Site::start(Options::default());
    let id = site.submit(&["-J", "trainer-0", "-c2", "--mem=100M", "-t", "90", "--wrap", "sleep 300"]);
    site.wait_for_state(&id, "RUNNING");
    let ask = |name: &str, words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&site.ok(name, words)).expect("JSON")
    };
    // torchx's questions, word for word.
    let queue = ask("squeue", &["--json", "-j", &id]);
    let job = &queue["jobs"][0];
    assert_eq!((job["job_id"].to_string(), &job["cluster"]), (id.clone(), &"c1".into()));
    assert_eq!((&job["job_state"], &job["name"]), (&"RUNNING".into(), &"trainer-0".into()));
    let node = &job["job_resources"]["allocated_nodes"][0];
    assert_eq!(
        (&node["nodename"], &node["cpus_used"], &node["memory_allocated"]),
        (&"n1".into(), &2.into(), &100.into())
    );
    let past = ask("sacct", &["--json", "-S1970-01-01-00:00:01"]);
    assert_eq!(past["jobs"][0]["job_id"].to_string(), id);
    assert_eq!(past["jobs"][0]["state"]["current"], "RUNNING");
    assert_eq!(past["jobs"][0]["time"]["limit"], 90);
    let cluster = ask("sinfo", &["--json"]);
    let node = &cluster["nodes"][0];
    assert_eq!((&node["name"], &node["state"], &node["alloc_cpus"]), (&"n1".into(), &"mixed".into(), &2.into()));
    assert_eq!(node["partitions"][0], "main");
    let gone = site.run("squeue", &["--json", "-j", "99999"]);
    assert_eq!((gone.code, gone.err.as_str()), (1, "slurm_load_jobs error: Invalid job id specified\n"));
    site.ok("scancel", &[&id]);
}

#[test]
fn refusals_are_in_the_lines_that_clients_match() {
    let site = Site::start(Options::default());
    let wrap = |words: &[&str]| {
        let words: Vec<&str> = words.iter().chain(&["--wrap", "true"]).copied().collect();
        let said = site.run("sbatch", &words);
        assert_eq!(said.out, "", "{words:?} was taken");
        (said.code, said.err.lines().last().unwrap_or_default().to_owned())
    };
    let failed = |why: &str| (1, format!("sbatch: error: Batch job submission failed: {why}"));
    assert_eq!(wrap(&["-p", "nope"]), failed("Invalid partition name specified"));
    assert_eq!(wrap(&["-A", "nope"]), failed("Invalid account or account/partition combination specified"));
    assert_eq!(wrap(&["-c", "500"]), failed("Requested node configuration is not available"));
    assert_eq!(wrap(&["-d", "afterok:99999"]), failed("Job dependency problem"));
    assert_eq!(wrap(&["-L", "nope"]), failed("Invalid license specification"));
    assert_eq!(wrap(&["-t", "2h"]), (255, "sbatch: error: Invalid --time specification".into()));
    assert_eq!(wrap(&["--signal=FOO@60"]), (255, "sbatch: error: Invalid --signal specification".into()));
    let (code, line) = wrap(&["--reboot"]);
    assert!(code == 255 && line.starts_with("sbatch: error: --reboot is not there in Ephor: "), "{line}");
    assert_eq!(site.run("sbatch", &["nope.sh"]).err, "sbatch: error: Unable to open file nope.sh\n");
    let lost = site.run_with("squeue", &[], "", &[("EPHOR_SOCKET", "/nowhere.sock")]);
    let first = lost.err.lines().next().unwrap_or_default();
    assert_eq!((lost.code, first), (1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"));
}

#[test]
fn every_case_of_the_corpus_means_what_was_measured() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/sbatch/corpus.yaml");
    if !file.exists() {
        println!("skipped: {} is not there", file.display());
        return;
    }
    let output = Command::new(binary("ephor-corpus")).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong: Vec<&str> =
        said.lines().filter(|line| line.starts_with("FAIL") && !line.contains(": not there, since ")).collect();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && wrong.is_empty(), "{}\n{err}", wrong.join("\n"));
    println!("{}", said.lines().last().unwrap_or_default());
}
