//! The local socket for users.

use crate::wait::{until, within};
use crate::world::World;
use ephor_proto::v1;
use ephor_proto::v1::ephor_client::EphorClient;
use hyper_util::rt::TokioIo;
use nix::sys::signal::Signal;
use std::path::PathBuf;
use tonic::transport::{Channel, Endpoint};

async fn connect(path: PathBuf) -> EphorClient<Channel> {
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(tokio::net::UnixStream::connect(path).await?)) }
    });
    let endpoint = Endpoint::from_static("http://local");
    EphorClient::new(within("the local socket", endpoint.connect_with_connector(connector)).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_passed_on_with_the_kernels_word_for_who_calls() {
    let (mut world, _session) = World::with_agent(&[]).await;
    let socket = world.data().join("agent.sock");
    let mut client = connect(socket.clone()).await;
    let mut request = tonic::Request::new(v1::TokenRequest { node: "unread on the way".into() });
    request.metadata_mut().insert("ephor-attested-uid", "12345".parse().unwrap());
    request.metadata_mut().insert("ephor-attested-anything", "x".parse().unwrap());
    request.metadata_mut().insert("mine", "kept".parse().unwrap());
    // The controller of this test answers with the request's own bytes.
    let token = within("an answer", client.issue_token(request)).await.unwrap().into_inner();
    assert_eq!(token.token, "unread on the way");
    let calls = world.controller.calls();
    let headers = &calls[0];
    let all = |name: &str| headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(all("ephor-attested-uid"), [nix::unistd::geteuid().to_string()]);
    assert_eq!(all("ephor-attested-gid"), [nix::unistd::getegid().to_string()]);
    assert_eq!((all("mine"), all("ephor-attested-anything").len()), (vec!["kept".to_owned()], 0));

    // A large message in both directions.
    let large = "x".repeat(3 << 20);
    let token = within("an answer", client.issue_token(v1::TokenRequest { node: large.clone() })).await.unwrap();
    assert!(token.into_inner().token == large);

    world.stop(Signal::SIGTERM);
    assert!(!socket.exists(), "a stopped agent takes its socket away");
    world.start(&[]);
    world.controller.welcomed().await;
    let mut client = connect(socket.clone()).await;
    within("an answer", client.issue_token(v1::TokenRequest::default())).await.unwrap();
    world.stop(Signal::SIGKILL);
    assert!(socket.exists());
    world.start(&[]);
    world.controller.welcomed().await;
    let mut client = connect(socket).await;
    within("an answer through a socket that was in the way", client.issue_token(v1::TokenRequest::default()))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_own_calls_are_not_passed_on() {
    let (world, _session) = World::with_agent(&[]).await;
    let path = world.data().join("agent.sock");
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(tokio::net::UnixStream::connect(path).await?)) }
    });
    let channel = Endpoint::from_static("http://local").connect_with_connector(connector).await.unwrap();
    let mut agents = v1::agents_client::AgentsClient::new(channel);
    let refused = within("an answer", agents.join(v1::JoinRequest::default())).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_cannot_take_all_connections() {
    let (world, _session) = World::with_agent(&[]).await;
    let path = world.data().join("agent.sock");
    let open = || std::os::unix::net::UnixStream::connect(&path).unwrap();
    let taken: Vec<_> = (0..ephor_agent::limits::RELAY_CONNECTIONS_PER_USER).map(|_| open()).collect();
    let extra = open();
    // Closed on the agent's side: reading ends.
    let mut extra = tokio::net::UnixStream::from_std({
        extra.set_nonblocking(true).unwrap();
        extra
    })
    .unwrap();
    let mut rest = Vec::new();
    within("the extra connection's end", tokio::io::AsyncReadExt::read_to_end(&mut extra, &mut rest)).await.unwrap();
    drop(taken);
    until("a free place", || {
        let stream = open();
        stream.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        // One that is kept open says nothing by itself, or greets.
        !matches!(std::io::Read::read(&mut &stream, &mut [0; 16]), Ok(0))
    })
    .await;
}
