//! What policies say about callers, and what stands when they say nothing or fail (laws 6 and 9).

mod common;

use common::{Cluster, component, config, submission};
use ephor_controller::Controller;
use ephor_proto::v1;
use tonic::Code;

const AUTHENTICATION: &str = "authentication/local";

fn slot(name: &str) -> v1::SlotRef {
    v1::SlotRef { slot: name.into() }
}

fn upload(slot: &str, component: Vec<u8>, fault: &str) -> v1::ComponentUpload {
    let config = if fault.is_empty() { String::new() } else { format!("{{\"fault\": \"{fault}\"}}") };
    v1::ComponentUpload { slot: slot.into(), component, config, grants: vec!["ephor:host/directory".into()] }
}

async fn policy(cluster: &Cluster, name: &str) -> v1::PolicyView {
    let list = cluster.user().list_policies(v1::Empty {}).await.unwrap().into_inner();
    list.policies.into_iter().find(|p| p.slot == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_has_its_built_in_policies_a_queue_and_an_account() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let list = user.list_policies(v1::Empty {}).await.unwrap().into_inner();
    let slots: Vec<&str> = list.policies.iter().map(|p| p.slot.as_str()).collect();
    assert_eq!(slots, ["authentication/local", "admission/50-main", "priority", "scheduling", "accounting"]);
    assert!(list.policies.iter().all(|p| p.state == "live"));
    let objects = user.export(v1::Empty {}).await.unwrap().into_inner();
    assert_eq!(objects.queues[0].name, "main");
    assert_eq!(objects.accounts[0].name, "default");
    let job = user.submit(submission()).await.unwrap().into_inner().job;
    assert_eq!(job, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_policy_means_no_access_and_root_brings_it_back() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    user.disable_policy(slot(AUTHENTICATION)).await.unwrap();
    let refused = user.status(v1::Empty {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("policy activate"), "{}", refused.message());
    assert_eq!(user.submit(submission()).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(policy(&cluster, AUTHENTICATION).await.state, "disabled");
    user.roll_back_policy(slot(AUTHENTICATION)).await.unwrap();
    user.status(v1::Empty {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_authentication_policy_refuses_and_root_rolls_it_back() {
    let Some(hostile) = component("hostile", "hostile-authentication") else { return };
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    for fault in ["trap", "loop", "wrong-values"] {
        user.activate_policy(upload(AUTHENTICATION, hostile.clone(), fault)).await.unwrap();
        let refused = user.status(v1::Empty {}).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains("hostile-authentication"), "{}", refused.message());
        let view = policy(&cluster, AUTHENTICATION).await;
        assert!(view.last_faults.iter().any(|f| f.generation == view.generation), "{fault}: {view:?}");
        let back = user.roll_back_policy(slot(AUTHENTICATION)).await.unwrap().into_inner();
        assert_eq!(back.name, "auth-local");
        user.status(v1::Empty {}).await.unwrap();
        // What it did wrong can still be read.
        assert!(!back.last_faults.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_admission_policy_refuses_jobs_and_nothing_else() {
    let Some(hostile) = component("hostile", "hostile-admission") else { return };
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let before = user.submit(submission()).await.unwrap().into_inner().job;
    user.activate_policy(upload("admission/60-hostile", hostile, "trap")).await.unwrap();
    let refused = user.submit(submission()).await.unwrap_err();
    assert!(refused.message().contains("hostile-admission"), "{}", refused.message());
    user.status(v1::Empty {}).await.unwrap();
    user.disable_policy(slot("admission/60-hostile")).await.unwrap();
    assert_eq!(user.submit(submission()).await.unwrap().into_inner().job, before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn components_that_do_not_do_change_nothing() {
    let cluster = Cluster::start().await;
    let mut user = cluster.user();
    let generation = policy(&cluster, "scheduling").await.generation;
    let error = user.activate_policy(upload("scheduling", b"nonsense".to_vec(), "")).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = user.activate_policy(upload("cooking", Vec::new(), "")).await.unwrap_err();
    assert!(error.message().contains("roles are"), "{}", error.message());
    if let Some(fifo) = component("plugins", "scheduling-fifo") {
        let error = user.activate_policy(upload("priority", fifo.clone(), "")).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{}", error.message());
        let error = user.activate_policy(upload("scheduling", fifo, "x")).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{}", error.message());
    }
    assert_eq!(policy(&cluster, "scheduling").await.generation, generation);
    assert_eq!(user.roll_back_policy(slot("scheduling")).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_controller_on_the_folder_is_told_so() {
    let cluster = Cluster::start().await;
    let other = tempfile::tempdir().unwrap();
    let mut settings = config(other.path());
    settings.data_folder = cluster.folder.path().join("data");
    let error = Controller::start(&settings, false).await.err().unwrap().to_string();
    assert!(error.contains("is in use by process"), "{error}");
    let mut settings = config(other.path());
    settings.agents_listen = cluster.controller.agents_address;
    let error = Controller::start(&settings, false).await.err().unwrap().to_string();
    assert!(error.contains("agents_listen") && error.contains("in use"), "{error}");
    let mut settings = config(other.path());
    settings.socket_path = cluster.controller.socket_path.clone();
    let error = format!("{:#}", Controller::start(&settings, false).await.err().unwrap());
    assert!(error.contains("somebody listens"), "{error}");
}
