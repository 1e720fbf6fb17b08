//! Steps: `srun` inside jobs, over several nodes, through real controllers, agents and shims.

use ephor_tests::{Options, TestCluster, binary, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A cluster, and a folder with links named as Slurm's commands.
struct Site {
    cluster: TestCluster,
    links: PathBuf,
}

const NOBODY: u32 = 65534;

impl Site {
    fn start(agents: usize, cpus: u32) -> Self {
        Self::with(Options { agents, cpus, ..Options::default() })
    }

    fn with(options: Options) -> Self {
        let cluster = TestCluster::start(options);
        let links = cluster.folder().join("bin");
        fs::create_dir(&links).unwrap();
        cluster.ephor_ok(&["slurm-links", links.to_str().unwrap()]);
        fs::set_permissions(&links, fs::Permissions::from_mode(0o755)).unwrap();
        Self { cluster, links }
    }

    fn folder(&self) -> &Path {
        self.cluster.folder()
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.links.join(name));
        command.args(words).current_dir(self.folder()).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.links.display())).env("HOME", self.folder());
        command.env("EPHOR_SOCKET", self.cluster.socket());
        command
    }

    fn run(&self, name: &str, words: &[&str]) -> (i32, String, String) {
        said(self.command(name, words).output().unwrap())
    }

    /// Submits a script with these options, and gives the job's id.
    fn submit(&self, options: &[&str], text: &str) -> String {
        let path = self.folder().join("job.sh");
        fs::write(&path, format!("#!/bin/bash\n{text}")).unwrap();
        let words = [&["--parsable"][..], options, &["job.sh"]].concat();
        let (code, out, err) = self.run("sbatch", &words);
        assert_eq!(code, 0, "{err}");
        out.trim().to_owned()
    }

    /// Runs a script as a job to its end, and gives what it wrote.
    fn job(&self, options: &[&str], text: &str) -> String {
        let id = self.submit(options, text);
        self.wait_for_state(&id, "COMPLETED");
        self.file(&format!("slurm-{id}.out"))
    }

    fn wait_for_state(&self, id: &str, state: &str) {
        let job = self.cluster.wait_for_state(id, state);
        assert_eq!(job["state"], state);
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap_or_default()
    }

    /// Waits for a file with a line, and gives it without its end.
    fn line(&self, name: &str) -> String {
        wait_for(&format!("a line in {name}"), || {
            let text = self.file(name);
            text.ends_with('\n').then(|| text.trim_end().to_owned())
        })
    }

    /// Waits until these processes are gone, whose numbers lie in files.
    fn wait_until_gone(&self, files: &[&str]) {
        for file in files {
            let pid = self.line(file);
            wait_for(&format!("process {pid} of {file} to end"), || (!alive(&pid)).then_some(()));
        }
    }
}

fn said(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Whether a process is there and not a zombie.
fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A task that writes its number down and stays.
const STAY: &str = "echo $$ > pid.$SLURM_PROCID; exec sleep 1000";

#[test]
fn tasks_know_themselves_and_their_step() {
    let site = Site::start(2, 4);
    let show = r#"srun sh -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_GTIDS"'
srun -n1 -N1 -w n2 -c2 -J inner env > env.out
srun --export=NONE,A=5 -n1 /usr/bin/env > none.out
for i in 1 2 3 4 5 6; do srun -N1 -n2 sh -c 'echo $SLURMD_NODENAME'; done > in-turn 2>&1
"#;
    let out = site.job(&["-N2", "-n4", "--ntasks-per-node=2", "-o", "slurm-%j.out"], show);
    assert_eq!(sorted(&out), ["0 0 0 n1 0,1", "1 1 0 n1 0,1", "2 0 1 n2 2,3", "3 1 1 n2 2,3"]);
    let env = site.file("env.out");
    for entry in [
        "SLURM_CPUS_ON_NODE=2",
        "SLURM_CPUS_PER_TASK=2",
        "SLURM_DISTRIBUTION=block",
        "SLURM_JOB_NAME=inner",
        "SLURM_JOB_NODELIST=n[1-2]",
        "SLURM_JOB_NUM_NODES=2",
        "SLURM_LAUNCH_NODE_IPADDR=127.0.0.1",
        "SLURM_LOCALID=0",
        "SLURM_NNODES=1",
        "SLURM_NTASKS=1",
        "SLURM_PROCID=0",
        "SLURM_SRUN_COMM_HOST=127.0.0.1",
        "SLURM_STEP_ID=1",
        "SLURM_STEP_NODELIST=n2",
        "SLURM_STEP_NUM_NODES=1",
        "SLURM_STEP_NUM_TASKS=1",
        "SLURM_STEP_TASKS_PER_NODE=1",
        "SLURM_UMASK=0022",
        "SLURMD_NODENAME=n2",
        "EPHOR_JOB_ID=1",
        "EPHOR_NODE=n2",
        "EPHOR_STEP_ID=1",
    ] {
        assert!(env.lines().any(|line| line == entry), "{entry} is not in\n{env}");
    }
    // The way to the controller leads over the node's own agent.
    assert!(env.contains("EPHOR_SOCKET=") && env.contains("/n2/agent.sock"), "{env}");
    assert!(env.lines().any(|line| line.starts_with("SLURM_TASK_PID=")));
    // A step that is over is in nobody's way.
    assert_eq!(site.file("in-turn"), "n1\n".repeat(12));
    let none = site.file("none.out");
    assert!(none.contains("A=5\n") && none.contains("SLURM_STEP_ID=2\n") && !none.contains("HOME="), "{none}");
}

#[test]
fn output_goes_where_it_is_to_go() {
    let site = Site::start(2, 4);
    let script = r#"
srun -l sh -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2' > labelled 2>&1
srun -o shared-%J.txt sh -c 'echo $SLURM_PROCID; echo e$SLURM_PROCID >&2'
srun --unbuffered --output task-%j-%s_%t.out --error task-%j-%s_%t.err sh -c 'echo o$SLURM_PROCID; echo e$SLURM_PROCID >&2'
srun -o node-%n-%N.out sh -c 'echo $SLURM_PROCID'
srun -o none -e 3 sh -c 'echo out; echo e$SLURM_PROCID >&2' 2> only
printf 'a\nb\n' | srun -l cat > fed
printf 'one\n' | srun -i 2 -l cat > first
echo content > in.txt
srun -i in.txt -n1 cat > from-file
srun -n1 -u printf 'no end' > half
srun -D / -n1 pwd > folder
head -c 300000 /dev/zero | tr '\0' x | srun -n1 cat | wc -c > count
"#;
    site.job(&["-N2", "-n4", "--ntasks-per-node=2"], script);
    let labelled = site.file("labelled");
    let all = (0..4).flat_map(|n| [format!("{n}: err {n}"), format!("{n}: out {n}")]).collect::<Vec<_>>();
    assert_eq!(sorted(&labelled), all);
    assert_eq!(sorted(&site.file("shared-1.1.txt")), ["0", "1", "2", "3", "e0", "e1", "e2", "e3"]);
    for n in 0..4 {
        assert_eq!(site.file(&format!("task-1-2_{n}.out")), format!("o{n}\n"));
        assert_eq!(site.file(&format!("task-1-2_{n}.err")), format!("e{n}\n"));
    }
    assert_eq!(sorted(&site.file("node-0-n1.out")), ["0", "1"]);
    assert_eq!(sorted(&site.file("node-1-n2.out")), ["2", "3"]);
    assert_eq!(site.file("only"), "e3\n");
    assert_eq!(sorted(&site.file("fed")), ["0: a", "0: b", "1: a", "1: b", "2: a", "2: b", "3: a", "3: b"]);
    assert_eq!(site.file("first"), "2: one\n");
    assert_eq!(site.file("from-file"), "content\n");
    assert_eq!(site.file("half"), "no end");
    assert_eq!(site.file("folder"), "/\n");
    assert_eq!(site.file("count").trim(), "300000");
}

#[test]
fn ends_are_told_and_add_up() {
    let site = Site::start(2, 4);
    let script = r#"
srun sh -c 'exit $((SLURM_PROCID * 2))' 2> codes; echo $? >> codes
srun -n1 -w n1 sh -c 'kill -SEGV $$' 2> signal; echo $? >> signal
srun -n2 -N1 -w n1 nosuchprogram 2> missing; echo $? >> missing
srun -K -n2 -N2 sh -c 'test $SLURM_PROCID = 1 && exit 3; exec sleep 1000' 2> bad; echo $? >> bad
srun -W1 -n2 -N2 sh -c 'test $SLURM_PROCID = 1 && exit 0; exec sleep 1000' 2> wait; echo $? >> wait
srun -n1 sh -c '(sleep 1000 & echo $! > pid.left); exit 4' 2> left; echo $? >> left
srun -n9 true 2> many; echo $? >> many
srun -w n9 -n1 true 2> strange; echo $? >> strange
srun --mpi=pmix -n1 true 2> mpi; echo $? >> mpi
srun 2> nothing; echo $? >> nothing
"#;
    site.job(&["-N2", "-n4", "--ntasks-per-node=2"], script);
    let codes = site.file("codes");
    let mut lines = sorted(&codes);
    lines.retain(|line| line.starts_with("srun"));
    assert_eq!(
        lines,
        [
            "srun: error: n1: task 1: Exited with exit code 2",
            "srun: error: n2: task 2: Exited with exit code 4",
            "srun: error: n2: task 3: Exited with exit code 6"
        ]
    );
    assert!(codes.ends_with("\n6\n"), "{codes}");
    let signal = site.file("signal");
    assert!(signal.starts_with("srun: error: n1: task 0: Segmentation fault"), "{signal}");
    assert!(signal.ends_with("\n139\n"), "{signal}");
    let missing = site.file("missing");
    assert!(missing.contains("task 1: cannot run nosuchprogram: No such file or directory"), "{missing}");
    assert!(missing.ends_with("\n2\n"), "{missing}");
    let bad = site.file("bad");
    assert!(bad.contains("n2: task 1: Exited with exit code 3\nsrun: Terminating StepId="), "{bad}");
    assert!(bad.contains("srun: error: n1: task 0: Killed\n137\n"), "{bad}");
    let wait = site.file("wait");
    assert!(wait.contains("srun: First task exited 1s ago\nsrun: StepId=1.4 task 0: running"), "{wait}");
    assert!(wait.contains("task 1: exited\nsrun: Terminating StepId=1.4\n") && wait.ends_with("\n137\n"), "{wait}");
    assert!(site.file("left").ends_with("Exited with exit code 4\n4\n"), "{}", site.file("left"));
    assert!(!alive(&site.line("pid.left")), "what a task left behind ends with it");
    let many = site.file("many");
    assert!(many.contains("Unable to create step for job 1: More processors requested than permitted\n1\n"), "{many}");
    let strange = site.file("strange");
    assert!(strange.contains("node n9 is none of the job's\n"), "{strange}");
    assert!(strange.contains("Requested node configuration is not available\n1\n"), "{strange}");
    assert!(site.file("mpi").contains("mpirun") && site.file("mpi").ends_with("\n255\n"), "{}", site.file("mpi"));
    assert_eq!(site.file("nothing"), "srun: fatal: No command given to execute.\n1\n");
    // Outside a job there is none.
    let (code, _, err) = site.run("srun", &["true"]);
    assert!(code == 1 && err.contains("--jobid"), "{code}: {err}");
    let (code, _, err) = site.run("srun", &["--jobid=1", "true"]);
    assert!(code == 1 && err.contains("Job/step already completing or completed"), "{code}: {err}");
}

#[test]
fn steps_in_the_background_share_the_job() {
    let site = Site::start(2, 4);
    // Three at once on four cores, and one that needs what they hold.
    let script = r#"
go() { srun -N1 -n1 -w $1 sh -c "echo > up.$2; until test -e go; do sleep 0.02; done; echo done $2"; }
go n1 a & go n2 b & go n2 c &
until test -e up.a -a -e up.b -a -e up.c; do sleep 0.02; done
srun -N1 -n2 -w n2 sh -c 'echo last' 2> waited &
srun --overlap -N1 -n2 -w n2 sh -c 'echo over' > over
touch ready
wait
"#;
    let id = site.submit(&["-N2", "-n4", "--ntasks-per-node=2"], script);
    wait_for("the step without cores of its own", || site.folder().join("ready").exists().then_some(()));
    assert_eq!(site.file("over"), "over\nover\n");
    let note = format!("srun: Job {id} step creation temporarily disabled, retrying (Requested nodes are busy)\n");
    wait_for("a step to wait", || (site.file("waited") == note).then_some(()));
    assert_eq!(site.file(&format!("slurm-{id}.out")), "");
    fs::write(site.folder().join("go"), "").unwrap();
    site.wait_for_state(&id, "COMPLETED");
    let out = site.file(&format!("slurm-{id}.out"));
    assert_eq!(sorted(&out), ["done a", "done b", "done c", "last", "last"]);
    assert_eq!(site.file("waited"), format!("{note}srun: Step created for job {id}\n"));
}

#[test]
fn gpus_are_shared_or_a_tasks_own() {
    let gpu = |n: u32| format!("[[gpu]]\nkind = \"a100\"\nuuid = \"GPU-{n}\"\nmem_mib = 1000\n");
    let agent_config = format!("[gpus]\nsource = \"list\"\n{}", (0..4).map(gpu).collect::<String>());
    let site = Site::with(Options { agents: 1, cpus: 4, agent_config, ..Options::default() });
    let script = r#"
see='echo $SLURM_PROCID:$CUDA_VISIBLE_DEVICES:$SLURM_STEP_GPUS'
srun -n2 sh -c "$see" > all
srun -n2 --gpus-per-task=a100:2 sh -c "$see" > tasks
srun -n1 --gres=none sh -c "$see" > none
srun -n1 --gpus-per-node=3 sh -c "$see; echo > up; until test -e go; do sleep 0.02; done" > three &
until test -e up; do sleep 0.02; done
srun -n1 --gpus=1 sh -c "$see" > last
touch go
wait
srun -n1 --gpus-per-task=5 true 2> many
"#;
    let id = site.submit(&["-n4", "--gpus-per-node=4"], script);
    site.wait_for_state(&id, "FAILED");
    let all = "GPU-0,GPU-1,GPU-2,GPU-3";
    assert_eq!(sorted(&site.file("all")), [format!("0:{all}:0,1,2,3"), format!("1:{all}:0,1,2,3")]);
    assert_eq!(sorted(&site.file("tasks")), ["0:GPU-0,GPU-1:0,1,2,3", "1:GPU-2,GPU-3:0,1,2,3"]);
    assert_eq!(site.file("none"), "0::\n");
    assert_eq!(
        (site.file("three").as_str(), site.file("last").as_str()),
        ("0:GPU-0,GPU-1,GPU-2:0,1,2\n", "0:GPU-3:3\n")
    );
    assert!(site.file("many").contains("does not hold the cores and GPUs for 1 tasks"), "{}", site.file("many"));
}

#[test]
fn signals_reach_every_task_once() {
    let site = Site::start(2, 4);
    let task = r#"echo $$ > pid.$SLURM_PROCID
trap 'echo usr1 >> got.$SLURM_PROCID' USR1; trap 'echo int >> got.$SLURM_PROCID; exit 5' INT
trap 'echo term >> got.$SLURM_PROCID; exit 6' TERM
while :; do sleep 0.02; done
"#;
    fs::write(site.folder().join("task.sh"), task).unwrap();
    // A shell ignores ^C for what it starts in the background.
    let script = "set -m; srun bash task.sh 2> first & echo $! > pid.srun; wait $!; echo $? > code; srun bash task.sh";
    let id = site.submit(&["-N2", "-n2"], script);
    site.line("pid.0");
    site.line("pid.1");
    let srun = site.line("pid.srun");
    let signal = |name: &str| {
        assert!(Command::new("kill").args([&format!("-{name}"), &srun]).status().unwrap().success());
    };
    signal("USR1");
    wait_for("USR1", || (site.file("got.0") == "usr1\n" && site.file("got.1") == "usr1\n").then_some(()));
    signal("INT");
    wait_for("the state of the tasks", || {
        site.file("first").contains(&format!("srun: StepId={id}.0 tasks 0-1: running\n")).then_some(())
    });
    assert!(site.file("first").contains("srun: interrupt (one more within 1 sec to abort)\n"));
    // Two that come within a second, whatever the machine does meanwhile.
    wait_for("the second ^C", || {
        // It may have ended by the one before.
        let _ = Command::new("kill").args(["-INT", &srun]).output();
        site.file("first").contains(&format!("srun: sending Ctrl-C to StepId={id}.0\n")).then_some(())
    });
    wait_for("the end of the step", || (!site.file("code").is_empty()).then_some(()));
    assert!(["5\n", "137\n"].contains(&site.file("code").as_str()), "{}", site.file("code"));
    // The job's end reaches the tasks as SIGTERM, through srun, on both nodes.
    wait_for("the next step", || {
        let other = |n: &str| site.file(n).trim_end().parse::<u32>().is_ok_and(|pid| alive(&pid.to_string()));
        (other("pid.0") && other("pid.1")).then_some(())
    });
    site.cluster.ephor_ok(&["job", "cancel", &id]);
    site.wait_for_state(&id, "CANCELLED");
    site.wait_until_gone(&["pid.0", "pid.1"]);
    for n in 0..2 {
        let got = site.file(&format!("got.{n}"));
        assert!(got.ends_with("term\n") && got.matches("term").count() == 1, "{got}");
    }
}

#[test]
fn a_step_ends_with_whoever_started_it_and_with_its_job() {
    // In the best group that this machine has, and by descent alone.
    for confine in ["auto", "walk"] {
        let agent_config = format!("confine = \"{confine}\"\n");
        ends_with_others(Site::with(Options { agents: 2, cpus: 4, agent_config, ..Options::default() }));
    }
}

fn ends_with_others(mut site: Site) {
    let task = format!("srun sh -c '{STAY}'");
    // Killed: the tasks go with it, and what they held is free.
    let script = format!("{task} & echo $! > pid.srun; wait $!; srun sh -c 'echo again'");
    let id = site.submit(&["-N2", "-n2"], &script);
    site.line("pid.0");
    site.line("pid.1");
    let srun = site.line("pid.srun");
    assert!(Command::new("kill").args(["-9", &srun]).status().unwrap().success());
    site.wait_until_gone(&["pid.0", "pid.1"]);
    site.wait_for_state(&id, "COMPLETED");
    // Above it stands the shell's word that srun was killed.
    let out = site.file(&format!("slurm-{id}.out"));
    assert!(out.ends_with("again\nagain\n"), "{out}");

    // A step that another process holds outlives its script no longer than the job; also where the agents were away.
    for n in 0..2 {
        fs::remove_file(site.folder().join(format!("pid.{n}"))).unwrap();
    }
    let script = format!("setsid {task} < /dev/null & sleep 1000");
    let id = site.submit(&["-N2", "-n2"], &script);
    site.line("pid.0");
    site.line("pid.1");
    site.cluster.kill_agent("n1");
    site.cluster.kill_agent("n2");
    site.cluster.start_agent("n1");
    site.cluster.start_agent("n2");
    assert!(alive(&site.line("pid.0")) && alive(&site.line("pid.1")), "agents come and go");
    site.cluster.ephor_ok(&["job", "cancel", &id]);
    site.wait_for_state(&id, "CANCELLED");
    site.wait_until_gone(&["pid.0", "pid.1"]);
}

#[test]
fn a_step_of_a_job_that_ended_while_a_node_was_away_ends_when_the_node_is_back() {
    let mut site = Site::start(2, 4);
    let id = site.submit(&["-N2", "-n2", "--no-requeue"], "sleep 1000");
    let job = site.cluster.wait_for_state(&id, "RUNNING");
    let nodes: Vec<String> = job["nodes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_owned()).collect();
    // The first has the script, and says that it ended.
    let [first, other] = &nodes[..] else { panic!("{job}") };
    // Started from outside, so that it does not end with the job's own processes.
    let jobid = format!("--jobid={id}");
    let stay = "echo $$ > pid.$SLURMD_NODENAME; exec sleep 1000";
    let mut srun = site.command("srun", &[&jobid, "-N2", "-n2", "sh", "-c", stay]).spawn().unwrap();
    let (on_first, on_other) = (format!("pid.{first}"), format!("pid.{other}"));
    site.line(&on_first);
    site.line(&on_other);
    site.cluster.kill_agent(other);
    site.cluster.ephor_ok(&["job", "cancel", &id]);
    site.wait_for_state(&id, "CANCELLED");
    // The first node knows at once that the job is over.
    site.wait_until_gone(&[&on_first]);
    assert!(alive(&site.line(&on_other)), "nobody is there to end it");
    site.cluster.start_agent(other);
    site.wait_until_gone(&[&on_other]);
    assert_eq!(srun.wait().unwrap().code(), Some(137));
}

#[test]
fn scancel_sends_a_signal_to_each_task_once_and_the_script_goes_on() {
    let site = Site::start(2, 4);
    let script = r#"
srun -N2 -n2 -o task-%t bash -c 'trap "echo saved" USR2; echo ready; until test -e go; do sleep 0.05 & wait; done'
echo after $?
"#;
    let id = site.submit(&["-N2", "-n2"], script);
    let tasks_say = |text: &str| {
        for name in ["task-0", "task-1"] {
            wait_for(&format!("{name} to say {text:?}"), || (site.file(name) == text).then_some(()));
        }
    };
    tasks_say("ready\n");
    assert_eq!(site.run("scancel", &[&id, "--signal", "USR2"]), (0, String::new(), String::new()));
    tasks_say("ready\nsaved\n");
    fs::write(site.folder().join("go"), "").unwrap();
    site.wait_for_state(&id, "COMPLETED");
    assert_eq!(site.file(&format!("slurm-{id}.out")), "after 0\n");
    tasks_say("ready\nsaved\n");
}

#[test]
fn a_running_step_does_not_notice_a_controller_that_restarts() {
    let mut site = Site::start(2, 4);
    let script = r#"
srun -N2 -n2 sh -c 'echo > up.$SLURM_PROCID; until test -e go; do sleep 0.02; done; echo done $SLURM_STEP_ID' &
until test -e up.0 -a -e up.1; do sleep 0.02; done
touch ready
until test -e next; do sleep 0.02; done
srun -N2 -n2 sh -c 'echo done $SLURM_STEP_ID' 2> waited &
wait
"#;
    let id = site.submit(&["-N2", "-n2"], script);
    wait_for("the step", || site.folder().join("ready").exists().then_some(()));
    site.cluster.kill_controller();
    site.cluster.start_controller();
    site.cluster.wait_for_nodes(2);
    fs::write(site.folder().join("next"), "").unwrap();
    // What runs holds its cores also for a controller that did not start it.
    wait_for("the second step to wait", || site.file("waited").contains("Requested nodes are busy").then_some(()));
    fs::write(site.folder().join("go"), "").unwrap();
    site.wait_for_state(&id, "COMPLETED");
    let out = site.file(&format!("slurm-{id}.out"));
    assert_eq!(sorted(&out), ["done 0", "done 0", "done 1", "done 1"]);
}

#[test]
fn a_step_runs_as_the_jobs_owner_and_is_started_by_nobody_else() {
    if !nix::unistd::geteuid().is_root() {
        return println!("SKIPPED: switching users needs root");
    }
    let site = Site::start(2, 4);
    let own = site.folder().join("theirs");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let script = "srun -N2 -n2 -o id-%t sh -c 'id -u; grep CapEff /proc/self/status; umask'; sleep 1000";
    let mut command = site.command("sbatch", &["--parsable", "-N2", "-n2", "--wrap", script]);
    let (code, id, err) = said(command.current_dir(&own).uid(NOBODY).gid(NOBODY).output().unwrap());
    assert_eq!(code, 0, "{err}");
    let id = id.trim();
    for n in 0..2 {
        let name = format!("theirs/id-{n}");
        wait_for("a task's word", || (site.file(&name).lines().count() == 3).then_some(()));
        assert_eq!(site.file(&name), "65534\nCapEff:\t0000000000000000\n0022\n");
    }
    // Another user is refused, root is not, and still the owner's user runs it.
    let jobid = format!("--jobid={id}");
    let mut command = site.command("srun", &[&jobid, "--overlap", "-n1", "id", "-u"]);
    let (code, _, err) = said(command.uid(1).gid(1).output().unwrap());
    assert!(code == 1 && err.contains("Access/permission denied"), "{code}: {err}");
    let mut command = site.command("srun", &[&jobid, "--overlap", "-n1", "id", "-u"]);
    let (code, out, err) = said(command.output().unwrap());
    assert_eq!((code, out.as_str()), (0, "65534\n"), "{err}");
    assert!(binary("ephor").exists());
}
