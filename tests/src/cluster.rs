//! A controller and agents as real processes in a temporary folder.

use crate::process::{Process, binary};
use crate::wait::wait_for;
use ephor_proto::v1;
use ephor_proto::v1::ephor_client::EphorClient;
use hyper_util::rt::TokioIo;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

/// How the cluster is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Agents, named n1, n2, ...
    pub agents: usize,
    /// Cores that each offers.
    pub cpus: u32,
    /// Lines added to the controller's configuration.
    pub config: String,
    /// The agents' configuration files.
    pub agent_config: String,
    /// The scene of GPUs that the agents' stand-in library plays: see [`crate::gpus`].
    pub gpus: Option<String>,
    /// Cores of each simulated node; 0: none.
    pub simulated: u32,
    /// How many nodes are simulated, by one process.
    pub simulated_nodes: usize,
    /// The file that describes them; empty: nodes with many cores and much memory, `sim1` and so on.
    pub scene: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agents: 1,
            cpus: 4,
            config: String::new(),
            agent_config: String::new(),
            gpus: None,
            simulated: 0,
            simulated_nodes: 1,
            scene: String::new(),
        }
    }
}

/// See the module. Everything ends with it.
pub struct TestCluster {
    folder: TempDir,
    options: Options,
    controller: Option<Process>,
    agents: BTreeMap<String, Process>,
}

impl TestCluster {
    /// Starts a controller and its agents, and waits until all nodes are up.
    ///
    /// # Panics
    /// When something does not start; the logs are printed.
    pub fn start(options: Options) -> Self {
        let folder = tempfile::Builder::new().prefix("ephor-test-").tempdir().expect("a temporary folder");
        // Jobs of other users must reach their working folder below it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("the folder is ours");
        let port = free_port();
        let config = format!(
            "data_folder = \"{0}/data\"\nsocket_path = \"{0}/ephor.sock\"\nagents_listen = \"127.0.0.1:{port}\"\n\
             launch_grace_s = 1\n{1}\n",
            folder.path().display(),
            options.config
        );
        fs::write(folder.path().join("controller.toml"), config).expect("the folder can be written");
        let mut cluster = Self { folder, options, controller: None, agents: BTreeMap::new() };
        cluster.start_controller();
        for i in 1..=cluster.options.agents {
            cluster.start_agent(&format!("n{i}"));
        }
        if cluster.options.simulated > 0 {
            cluster.start_simulator();
        }
        let simulated = if cluster.options.simulated > 0 { cluster.options.simulated_nodes } else { 0 };
        cluster.wait_for_nodes(cluster.options.agents + simulated);
        cluster
    }

    /// The temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The user socket.
    pub fn socket(&self) -> PathBuf {
        self.folder().join("ephor.sock")
    }

    /// The controller's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The command that starts the controller.
    pub fn controller_command(&self) -> Command {
        let mut command = Command::new(binary("ephor"));
        command.args(["controller", "--config"]).arg(self.folder().join("controller.toml"));
        command
    }

    /// Starts the controller and waits until it answers.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn start_controller(&mut self) {
        let mut process = Process::start("controller", &mut self.controller_command(), &self.log("controller"));
        wait_for("the controller to answer", || {
            if let Some(status) = process.ended() {
                panic!("the controller ended with {status}:\n{}", self.read_log("controller"));
            }
            self.ephor(&["status"]).status.success().then_some(())
        });
        self.controller = Some(process);
    }

    /// SIGKILL for the controller.
    pub fn kill_controller(&mut self) {
        self.controller.take().into_iter().for_each(Process::kill9);
    }

    /// SIGTERM for the controller, and waits for its end.
    pub fn stop_controller(&mut self) {
        if let Some(mut process) = self.controller.take() {
            process.signal(Signal::SIGTERM);
            process.wait();
        }
    }

    /// Process id of the controller.
    pub fn controller_pid(&self) -> Option<u32> {
        self.controller.as_ref().map(Process::pid)
    }

    /// Starts (again) the agent of that node.
    ///
    /// # Panics
    /// When no token can be had.
    pub fn start_agent(&mut self, name: &str) {
        let data = self.folder().join(name);
        let mut command = Command::new(binary("ephor-agent"));
        command.arg("--data").arg(&data).args(["--name", name, "--cpus", &self.options.cpus.to_string()]);
        if !data.join("certificate.pem").exists() && !data.exists() {
            let token = self.ephor_ok(&["node", "token"]);
            command.args(["--join", token.trim()]);
        }
        let config = self.folder().join(format!("{name}.toml"));
        fs::write(&config, &self.options.agent_config).expect("the folder can be written");
        command.arg("--config").arg(config);
        if let Some(text) = &self.options.gpus {
            let scene = self.gpu_scene(name);
            if !scene.exists() {
                crate::gpus::play(&scene, text);
            }
            command.env("EPHOR_NVML_SCENE", scene);
        }
        let process = Process::start(name, &mut command, &self.log(name));
        self.agents.insert(name.to_owned(), process);
    }

    /// The file with the scene that an agent's stand-in library plays.
    pub fn gpu_scene(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}-gpus.toml"))
    }

    /// Starts one process with the simulated nodes, `sim1` and so on.
    fn start_simulator(&mut self) {
        let scene = self.folder().join("scene.toml");
        let text = match self.options.scene.as_str() {
            "" => format!(
                "[[nodes]]\nprefix = \"sim\"\ncount = {}\ncpus = {}\nmemory_mib = 1000000\n",
                self.options.simulated_nodes, self.options.simulated
            ),
            scene => scene.to_owned(),
        };
        fs::write(&scene, text).expect("the folder can be written");
        let token = self.ephor_ok(&["node", "token"]);
        let mut command = Command::new(binary("ephor-agent"));
        command.arg("--data").arg(self.folder().join("simulator")).args([
            "--name",
            "simulator",
            "--join",
            token.trim(),
        ]);
        command.arg("--simulate").arg(&scene);
        let process = Process::start("simulator", &mut command, &self.log("simulator"));
        self.agents.insert("simulator".to_owned(), process);
    }

    /// SIGKILL for an agent.
    pub fn kill_agent(&mut self, name: &str) {
        self.agents.remove(name).into_iter().for_each(Process::kill9);
    }

    /// Waits until so many nodes are up.
    ///
    /// # Panics
    /// When they do not come.
    pub fn wait_for_nodes(&self, count: usize) {
        wait_for("the nodes to come up", || {
            let nodes = self.json(&["node", "list"]);
            let all =
                nodes["nodes"].as_array()?.iter().filter(|n| n["state"] != "DOWN" && n["state"] != "UNKNOWN").count();
            (all >= count).then_some(())
        });
    }

    /// Runs `ephor` with these arguments in the temporary folder.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn ephor(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("ephor can be started")
    }

    /// The command itself, for tests that need more.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary("ephor"));
        command.arg("--socket").arg(self.socket()).args(args).current_dir(self.folder());
        command
    }

    /// Runs `ephor`, which must succeed, and gives its output.
    ///
    /// # Panics
    /// When it fails, with what it said.
    pub fn ephor_ok(&self, args: &[&str]) -> String {
        let output = self.ephor(args);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "ephor {args:?} failed: {out}{err}\n{}", self.read_log("controller"));
        out.into_owned()
    }

    /// Runs `ephor`, which must fail, and gives its exit code and what it said.
    ///
    /// # Panics
    /// When it succeeds.
    pub fn ephor_fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.ephor(args);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "ephor {args:?} succeeded: {}", String::from_utf8_lossy(&output.stdout));
        (output.status.code().unwrap_or(-1), err)
    }

    /// Runs `ephor --json`, and reads what it prints; `Null` where it failed.
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(args);
        serde_json::from_slice(&self.ephor(&all).stdout).unwrap_or_default()
    }

    /// Submits a command and gives the job's id.
    ///
    /// # Panics
    /// When it is refused.
    pub fn submit(&self, args: &[&str]) -> u64 {
        let mut all = vec!["--json", "job", "submit"];
        all.extend(args);
        let reply: serde_json::Value = serde_json::from_str(&self.ephor_ok(&all)).expect("a reply as JSON");
        reply["job"].as_u64().expect("the id of a job")
    }

    /// A job (or element, as `12_3`) as JSON.
    pub fn job(&self, id: impl ToString) -> serde_json::Value {
        let list = self.json(&["job", "list", "--all", &id.to_string()]);
        list["jobs"].as_array().and_then(|jobs| jobs.first().cloned()).unwrap_or_default()
    }

    /// Waits until a job is in that state, and gives it.
    ///
    /// # Panics
    /// When it does not get there.
    pub fn wait_for_state(&self, id: impl ToString + Clone, state: &str) -> serde_json::Value {
        let mut last = serde_json::Value::Null;
        let begun = std::time::Instant::now();
        loop {
            let job = self.job(id.clone());
            if job["state"] == state {
                return job;
            }
            last = if job.is_null() { last } else { job };
            assert!(
                begun.elapsed() < crate::DEADLINE,
                "job {} did not get to {state}: {last}\n{}",
                id.to_string(),
                self.read_log("controller")
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// A gRPC client on the user socket.
    ///
    /// # Panics
    /// When the controller is not there.
    pub async fn client(&self) -> EphorClient<Channel> {
        let path = self.socket();
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://controller.invalid").connect_with_connector(connector).await;
        EphorClient::new(channel.expect("the controller answers"))
            .max_decoding_message_size(256 << 20)
            .max_encoding_message_size(128 << 20)
    }

    /// What a process wrote so far.
    pub fn read_log(&self, name: &str) -> String {
        fs::read_to_string(self.log(name)).unwrap_or_default()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}.log"))
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // What still runs of the test's jobs ends with it: shims outlive their agent by design.
        let live = self.json(&["job", "list"]);
        let running = live["jobs"].as_array().into_iter().flatten().filter(|j| j["state"] != "PENDING");
        let ids: Vec<String> = running.map(|j| j["display_id"].as_str().unwrap_or_default().to_owned()).collect();
        if !ids.is_empty() {
            let mut args = vec!["job", "cancel"];
            args.extend(ids.iter().map(String::as_str));
            let _ = self.ephor(&args);
        }
        self.agents.values().for_each(|a| a.signal(Signal::SIGTERM));
        end_shims(self.folder());
    }
}

/// Kills shims (and so their jobs) whose spool lies in this folder.
fn end_shims(folder: &Path) {
    let folder = folder.to_string_lossy().into_owned();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("ephor-shim") && line.contains(&folder) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}

/// A port that nobody listened on a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    listener.local_addr().map_or(0, |a| a.port())
}

/// A request that runs `argv`, for clients that submit in bulk.
pub fn request(argv: &[&str], folder: &Path) -> v1::SubmitRequest {
    v1::SubmitRequest {
        name: argv[0].to_owned(),
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        environment: vec!["PATH=/usr/bin:/bin".into()],
        work_dir: folder.to_string_lossy().into_owned(),
        stdout: Some("/dev/null".into()),
        request: Some(v1::Request { nodes_min: 1, cpus_per_task: 1, ..v1::Request::default() }),
        time_limit: Some(600_000),
        ..v1::SubmitRequest::default()
    }
}
