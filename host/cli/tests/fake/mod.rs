//! A controller that records what it is asked and gives fixed answers, on a socket of its own.

use ephor_proto::v1::ephor_server::{Ephor, EphorServer};
use ephor_proto::v1::*;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

/// What was asked.
#[derive(Default)]
pub struct Asked {
    pub submits: Vec<SubmitRequest>,
    pub actions: Vec<JobActionRequest>,
    pub changes: Vec<ModifyRequest>,
    pub queries: Vec<JobQuery>,
    pub applied: Vec<ObjectSet>,
    pub uploads: Vec<ComponentUpload>,
}

/// The fake controller; it ends when it is dropped.
pub struct Fake {
    pub folder: TempDir,
    pub asked: Arc<Mutex<Asked>>,
    _runtime: Runtime,
}

impl Fake {
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let asked = Arc::new(Mutex::new(Asked::default()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let service = EphorServer::new(Service { asked: asked.clone() });
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(folder.path().join("s")).unwrap()
        };
        runtime.spawn(async move {
            let incoming = UnixListenerStream::new(listener);
            tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self { folder, asked, _runtime: runtime }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder that commands run in.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// The command, in the folder, with that socket.
    pub fn ephor(&self, args: &[&str]) -> Command {
        let mut command = ephor(args);
        command.current_dir(self.folder.path()).env("EPHOR_SOCKET", self.path("s"));
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.ephor(args).output().unwrap())
    }
}

/// The real binary, with nothing of the tester's machine to lead it to a controller.
pub fn ephor(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.args(args).stdin(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("TZ", "UTC").env("MARK", "here");
    command
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }
}

struct Service {
    asked: Arc<Mutex<Asked>>,
}

fn objects() -> ObjectSet {
    ObjectSet {
        queues: vec![QueueObject {
            name: "main".into(),
            state: "open".into(),
            default: true,
            weight: 1,
            max_time: Some(3_600_000),
            quota: vec![Amount { resource: "cpu".into(), value: 2500 }],
            ..QueueObject::default()
        }],
        users: vec![UserObject { name: "ann".into(), uid: 4321, ..UserObject::default() }],
        licences: vec![LicenceObject { name: "solver".into(), count: 5 }],
        ..ObjectSet::default()
    }
}

fn jobs() -> Vec<Job> {
    let plain = |id: u64, state: &str| Job {
        id,
        display_id: id.to_string(),
        name: format!("job{id}"),
        user: "ann".into(),
        queue: "main".into(),
        state: state.into(),
        ..Job::default()
    };
    vec![
        Job { reason: "Resources".into(), ..plain(41, "PENDING") },
        Job {
            started: Some(0),
            ended: Some(65_000),
            exit_code: 3,
            nodes: vec!["n1".into(), "n2".into()],
            name: "evil\u{1b}[31m".into(),
            ..plain(42, "FAILED")
        },
    ]
}

fn policy() -> PolicyView {
    PolicyView {
        slot: "scheduling".into(),
        name: "backfill".into(),
        version: "0.1.0".into(),
        generation: 4,
        state: "live".into(),
        rollback_to: vec![2, 3],
        faults: 1,
        last_faults: vec![PolicyFault {
            generation: 3,
            kind: "trap".into(),
            message: "unreachable\nat schedule".into(),
            count: 1,
            at: 0,
        }],
        ..PolicyView::default()
    }
}

#[tonic::async_trait]
impl Ephor for Service {
    async fn submit(&self, request: Request<SubmitRequest>) -> Result<Response<SubmitReply>, Status> {
        let request = request.into_inner();
        if request.queue == "none-such" {
            return Err(Status::invalid_argument("there is no queue none-such; the queues are main"));
        }
        self.asked.lock().unwrap().submits.push(request);
        Ok(Response::new(SubmitReply { job: 42, messages: vec!["memory was set to 4G".into()] }))
    }

    async fn signal_jobs(&self, _: Request<SignalRequest>) -> Result<Response<JobActionReply>, Status> {
        Err(Status::unimplemented("signals"))
    }

    async fn act_on_jobs(&self, request: Request<JobActionRequest>) -> Result<Response<JobActionReply>, Status> {
        let request = request.into_inner();
        let unknown = request.jobs.iter().filter(|j| j.job == 99);
        let problems = unknown.map(|j| JobProblem { job: j.job.to_string(), error: "there is no such job".into() });
        let reply = JobActionReply { problems: problems.collect() };
        self.asked.lock().unwrap().actions.push(request);
        Ok(Response::new(reply))
    }

    async fn modify_job(&self, request: Request<ModifyRequest>) -> Result<Response<ModifyReply>, Status> {
        let request = request.into_inner();
        if request.job.is_some_and(|j| j.job == 99) {
            return Err(Status::not_found("there is no such job"));
        }
        self.asked.lock().unwrap().changes.push(request);
        Ok(Response::new(ModifyReply { messages: vec!["changed".into()] }))
    }

    async fn plan_step(&self, _: Request<StepRequest>) -> Result<Response<StepPlan>, Status> {
        Err(Status::failed_precondition("job 5 does not run"))
    }

    async fn end_step(&self, _: Request<StepRef>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn start_step(&self, _: Request<StepStart>) -> Result<Response<Empty>, Status> {
        Err(Status::failed_precondition("no step is planned"))
    }

    async fn list_jobs(&self, request: Request<JobQuery>) -> Result<Response<JobList>, Status> {
        let query = request.into_inner();
        let mut jobs = jobs();
        if !query.jobs.is_empty() {
            jobs.retain(|job| query.jobs.iter().any(|j| j.job == job.id));
        }
        self.asked.lock().unwrap().queries.push(query);
        Ok(Response::new(JobList { jobs, truncated: false }))
    }

    async fn explain_job(&self, request: Request<JobRef>) -> Result<Response<Explanation>, Status> {
        if request.into_inner().job == 99 {
            return Err(Status::not_found("there is no job 99"));
        }
        Ok(Response::new(Explanation {
            job: jobs().into_iter().next(),
            lines: vec!["needs 64 cores; 10 are free, 40 more at 12:00".into()],
            policy: "backfill, generation 4".into(),
            earliest_start: Some(0),
            priority: vec![Factor { name: "age".into(), value: 12, how: "waited 12 s".into() }],
        }))
    }

    async fn job_script(&self, _: Request<JobRef>) -> Result<Response<Blob>, Status> {
        Ok(Response::new(Blob { data: b"#!/bin/sh\nexit 3\n".to_vec() }))
    }

    async fn list_nodes(&self, _: Request<Empty>) -> Result<Response<NodeList>, Status> {
        let amount = |value| vec![Amount { resource: "cpu".into(), value }];
        let node = |name: &str| Node {
            name: name.into(),
            state: "IDLE".into(),
            capacity: amount(4000),
            allocated: amount(500),
            ..Node::default()
        };
        Ok(Response::new(NodeList { nodes: vec![node("n1"), node("n2")] }))
    }

    async fn act_on_nodes(&self, _: Request<NodeActionRequest>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn issue_token(&self, _: Request<TokenRequest>) -> Result<Response<Token>, Status> {
        Ok(Response::new(Token { token: "secret".into(), expires: 0 }))
    }

    async fn apply(&self, request: Request<ObjectSet>) -> Result<Response<ApplyReply>, Status> {
        self.asked.lock().unwrap().applied.push(request.into_inner());
        Ok(Response::new(ApplyReply { created: 1, changed: 2, unchanged: 3 }))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<Empty>, Status> {
        match request.into_inner().name.as_str() {
            "main" => Err(Status::failed_precondition("the queue main has jobs")),
            _ => Ok(Response::new(Empty {})),
        }
    }

    async fn export(&self, _: Request<Empty>) -> Result<Response<ObjectSet>, Status> {
        Ok(Response::new(objects()))
    }

    async fn list_queues(&self, _: Request<Empty>) -> Result<Response<QueueList>, Status> {
        let view = |queue| QueueView { queue: Some(queue), pending: 1, running: 2, ..QueueView::default() };
        Ok(Response::new(QueueList { queues: objects().queues.into_iter().map(view).collect() }))
    }

    async fn list_pools(&self, _: Request<Empty>) -> Result<Response<PoolList>, Status> {
        let licence = PoolView {
            kind: "licence".into(),
            name: "solver".into(),
            whose: "licence 'solver'".into(),
            what: "licence:solver".into(),
            used: 2,
            most: 5,
        };
        Ok(Response::new(PoolList { pools: vec![licence] }))
    }

    async fn list_policies(&self, _: Request<Empty>) -> Result<Response<PolicyList>, Status> {
        Ok(Response::new(PolicyList { policies: vec![policy()] }))
    }

    async fn activate_policy(&self, request: Request<ComponentUpload>) -> Result<Response<PolicyView>, Status> {
        self.asked.lock().unwrap().uploads.push(request.into_inner());
        Ok(Response::new(policy()))
    }

    async fn roll_back_policy(&self, _: Request<SlotRef>) -> Result<Response<PolicyView>, Status> {
        Ok(Response::new(policy()))
    }

    async fn disable_policy(&self, _: Request<SlotRef>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn status(&self, _: Request<Empty>) -> Result<Response<StatusReply>, Status> {
        Ok(Response::new(StatusReply { version: "0.1.0".into(), nodes: 2, nodes_up: 1, ..StatusReply::default() }))
    }

    type BackupStream = tokio_stream::Iter<std::vec::IntoIter<Result<Blob, Status>>>;

    async fn backup(&self, _: Request<Empty>) -> Result<Response<Self::BackupStream>, Status> {
        let piece = |data: &[u8]| Ok(Blob { data: data.to_vec() });
        Ok(Response::new(tokio_stream::iter(vec![piece(b"one"), piece(b"two")])))
    }
}
