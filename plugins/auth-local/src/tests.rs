//! Who comes in and what they may do.

use ephor_sdk::testing::FakeDirectory;

use super::*;

fn directory() -> FakeDirectory {
    FakeDirectory::default()
        .user(0, "root", &["root"])
        .user(1000, "alice", &["users"])
        .user(1001, "bob", &["users", "hpc-admin"])
        .user(1002, "carol", &[])
}

fn config() -> Config {
    Config { operators: vec!["carol".to_owned()], operator_groups: vec!["hpc-admin".to_owned()], ..Config::default() }
}

fn come_in(uid: u32, config: &Config) -> Result<Identity, String> {
    let peer = Peer { uid, gid: uid, node: None };
    let session = AuthLocal::authenticate(5, &Credential::Local, &peer, &directory(), config)?;
    assert_eq!(session.valid_until, Some(600_005));
    Ok(session.identity)
}

fn may(uid: u32, action: Action, owner: Option<u32>, config: &Config) -> Result<(), String> {
    let who = come_in(uid, config).unwrap();
    AuthLocal::authorize(5, &who, action, &Target { owner, name: "7".to_owned() }, config)
}

#[test]
fn the_directory_gives_name_group_and_roles() {
    let roles = |uid| come_in(uid, &config()).unwrap().roles;
    assert_eq!(come_in(1000, &config()).unwrap().name, "alice");
    assert!(roles(1000).is_empty());
    assert_eq!(roles(0), ["operator"]);
    assert_eq!(roles(1001), ["operator"], "by group");
    assert_eq!(roles(1002), ["operator"], "by name");
}

#[test]
fn unknown_uids_are_denied_unless_the_site_lets_them_in() {
    let why = come_in(4242, &config()).unwrap_err();
    assert!(why.contains("4242") && why.contains("allow_unknown"), "{why}");
    let open = Config { allow_unknown: true, ..config() };
    let stranger = come_in(4242, &open).unwrap();
    assert_eq!((stranger.name.as_str(), stranger.roles.len()), ("uid4242", 0));
}

#[test]
fn root_comes_in_even_with_an_empty_directory() {
    let peer = Peer { uid: 0, gid: 0, node: None };
    let session =
        AuthLocal::authenticate(0, &Credential::Local, &peer, &FakeDirectory::default(), &Config::default()).unwrap();
    assert_eq!(
        (session.identity.name.as_str(), session.identity.roles.as_slice()),
        ("root", ["operator".to_owned()].as_slice())
    );
}

#[test]
fn other_credentials_are_denied() {
    let peer = Peer { uid: 0, gid: 0, node: None };
    for credential in [Credential::Bearer("x".into()), Credential::Certificate(vec![1]), Credential::Other("y".into())]
    {
        let why = AuthLocal::authenticate(0, &credential, &peer, &directory(), &config()).unwrap_err();
        assert!(why.contains("local socket"), "{why}");
    }
}

#[test]
fn users_do_their_own_and_read_all() {
    for action in [Action::Submit, Action::ClusterRead] {
        assert_eq!(may(1000, action, None, &config()), Ok(()));
    }
    assert_eq!(may(1000, Action::JobWrite, Some(1000), &config()), Ok(()));
    assert_eq!(may(1000, Action::JobRead, Some(1001), &config()), Ok(()));
    let why = may(1000, Action::JobWrite, Some(1001), &config()).unwrap_err();
    assert!(why.contains("alice") && why.contains("1001") && why.contains("carol, members of hpc-admin"), "{why}");
    assert!(may(1000, Action::JobWrite, None, &config()).is_err(), "a job without an owner is nobody's own");
}

#[test]
fn private_jobs_hide_the_jobs_of_others() {
    let private = Config { private_jobs: true, ..config() };
    assert_eq!(may(1000, Action::JobRead, Some(1000), &private), Ok(()));
    assert!(may(1000, Action::JobRead, Some(1001), &private).is_err());
    assert_eq!(may(1001, Action::JobRead, Some(1000), &private), Ok(()), "operators see all");
}

#[test]
fn the_rest_is_for_operators() {
    for action in [Action::ClusterWrite, Action::PolicyWrite, Action::NodeToken, Action::Backup] {
        assert!(may(1000, action, None, &config()).unwrap_err().contains("operators may"));
        for operator in [0, 1001, 1002] {
            assert_eq!(may(operator, action, None, &config()), Ok(()));
        }
    }
}

#[test]
fn the_configuration_is_typed() {
    let parsed: Config = ephor_sdk::config::parse(r#"{"operators": ["a"], "private_jobs": true}"#).unwrap();
    assert_eq!((parsed.operators.as_slice(), parsed.private_jobs), (["a".to_owned()].as_slice(), true));
    assert!(ephor_sdk::config::parse::<Config>(r#"{"operator": ["a"]}"#).is_err());
}

#[test]
fn the_schema_and_the_code_have_the_same_defaults() {
    let defaults = ephor_sdk::testing::schema_defaults(include_str!("../manifest.json"));
    assert_eq!(ephor_sdk::config::parse(&defaults), Ok(Config::default()));
}
