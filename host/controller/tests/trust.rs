//! Who gets in from other machines: tokens, certificates, and what each of them opens.

mod common;

use common::{Cluster, Joined};
use ephor_controller::peer::{ATTESTED_GID, ATTESTED_UID};
use ephor_controller::trust::Authority;
use ephor_proto::v1;
use ephor_proto::v1::agents_client::AgentsClient;
use ephor_proto::v1::ephor_client::EphorClient;
use tonic::{Code, Request};

fn attesting<T>(message: T, uid: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(ATTESTED_UID, uid.parse().unwrap());
    request.metadata_mut().insert(ATTESTED_GID, "0".parse().unwrap());
    request
}

fn own_uid() -> String {
    nix::unistd::geteuid().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lets_one_node_in_once() {
    let cluster = Cluster::start().await;
    let token = cluster.token("").await;
    let joined = cluster.join(&token, "n1").await.unwrap();
    assert_eq!(joined.node, "n1");
    let again = cluster.join(&token, "n2").await.err().unwrap();
    assert_eq!(again.code(), Code::Unauthenticated);
    assert!(again.message().contains("ephor node token"), "{}", again.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_node_is_not_for_another() {
    let cluster = Cluster::start().await;
    let token = cluster.token("n1").await;
    assert_eq!(cluster.join(&token, "n10").await.err().unwrap().code(), Code::Unauthenticated);
    assert_eq!(cluster.join(&token, "simulate:n1").await.err().unwrap().code(), Code::Unauthenticated);
    // Nothing of that used it up.
    cluster.join(&token, "n1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_and_names_are_refused() {
    let cluster = Cluster::start().await;
    let mut token = cluster.token("").await;
    for name in ["", "a b", "../x", "a/b", "controller.ephor\0", &"x".repeat(300)] {
        assert_eq!(cluster.join(&token, name).await.err().unwrap().code(), Code::InvalidArgument, "{name:?}");
    }
    let channel = cluster.tls(&token.authority, None).await.unwrap();
    let request = v1::JoinRequest { secret: token.secret.clone(), node: "n1".into(), csr: "no request".into() };
    assert_eq!(AgentsClient::new(channel).join(request).await.unwrap_err().code(), Code::InvalidArgument);
    cluster.join(&token, "n1").await.unwrap();
    for wrong in ["", "x", &"y".repeat(100_000)] {
        token.secret = wrong.to_owned();
        assert_eq!(cluster.join(&token, "n1").await.err().unwrap().code(), Code::Unauthenticated, "{}", wrong.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_only_joining_is_answered() {
    let cluster = Cluster::start().await;
    let token = cluster.token("").await;
    let channel = cluster.tls(&token.authority, None).await.unwrap();
    let mut users = EphorClient::new(channel.clone());
    let refused = users.status(attesting(v1::Empty {}, "0")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    let messages = tokio_stream::iter([v1::AgentMessage::default()]);
    let refused = AgentsClient::new(channel).session(messages).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_speaks_for_the_users_of_its_node_and_only_by_attesting_them() {
    let cluster = Cluster::start().await;
    let token = cluster.token("").await;
    let joined = cluster.join(&token, "n1").await.unwrap();
    let channel = cluster.tls(&token.authority, Some(&joined)).await.unwrap();
    let mut relayed = EphorClient::new(channel);
    relayed.status(attesting(v1::Empty {}, &own_uid())).await.unwrap();
    let silent = relayed.status(v1::Empty {}).await.unwrap_err();
    assert_eq!(silent.code(), Code::Unauthenticated, "{silent:?}");
    for bad in ["-1", "4294967295", "root"] {
        let refused = relayed.status(attesting(v1::Empty {}, bad)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_another_authority_are_worth_nothing() {
    let cluster = Cluster::start().await;
    let other = Cluster::start().await;
    let (token, foreign) = (cluster.token("").await, other.token("").await);
    let joined = other.join(&foreign, "n1").await.unwrap();
    // The controller does not take it, at the handshake or with the first call.
    let refused = match cluster.tls(&token.authority, Some(&joined)).await {
        Ok(channel) => EphorClient::new(channel).status(attesting(v1::Empty {}, &own_uid())).await.is_err(),
        Err(_) => true,
    };
    assert!(refused);
    // And an agent does not take a controller of another authority.
    assert!(cluster.tls(&foreign.authority, None).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controllers_certificate_speaks_for_nobody() {
    let cluster = Cluster::start().await;
    let token = cluster.token("").await;
    let authority = Authority::load_or_create(&cluster.folder.path().join("data/trust")).unwrap();
    let own = authority.controller_identity().unwrap();
    let identity = Joined { certificate: own.certificate, key: own.key, node: String::new() };
    let refused = match cluster.tls(&token.authority, Some(&identity)).await {
        Ok(channel) => EphorClient::new(channel).status(attesting(v1::Empty {}, "0")).await.is_err(),
        // It is for servers only, which the handshake already sees.
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_socket_ignores_attestations() {
    let cluster = Cluster::start().await;
    let mut request = attesting(common::submission(), "12345");
    request.get_mut().name = "mine".into();
    let job = cluster.user().submit(request).await.unwrap().into_inner().job;
    let query = v1::JobQuery { jobs: vec![v1::JobRef { job, index: None }], ..v1::JobQuery::default() };
    let list = cluster.user().list_jobs(query).await.unwrap().into_inner();
    assert_eq!(list.jobs[0].uid.to_string(), own_uid());
}
