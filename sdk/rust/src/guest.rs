//! What `policy!` puts around a policy: the panic hook, the configuration, the custom sections, the exports.

use serde::de::DeserializeOwned;

pub use crate::bindings::{accounting, admission, authentication, priority, scheduling};

/// Runs before each call: from the first one on, a panic writes its message and place to the log before it traps.
#[cfg(target_arch = "wasm32")]
pub fn enter() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or("a panic without a text");
            match panic.location() {
                Some(at) => crate::log::error(&format!("panic at {}:{}: {text}", at.file(), at.line())),
                None => crate::log::error(&format!("panic: {text}")),
            }
        }));
    });
}

/// The configuration of this generation.
///
/// # Panics
/// Where it does not fit: the call then fails with the reason in the log, and the host falls to the role's verdict.
pub fn read_config<C: DeserializeOwned + Default>() -> C {
    let json = crate::bindings::host::ephor::host::config::json();
    match crate::config::parse(&json) {
        Ok(config) => config,
        Err(why) => panic!("{why}"),
    }
}

/// Copies a text into an array, for a custom section.
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let mut at = 0;
    while at < N {
        out[at] = text.as_bytes()[at];
        at += 1;
    }
    out
}

/// Makes a component of a policy: `policy!(Scheduling for MyPolicy { manifest: include_str!("../manifest.json") })`.
///
/// The name before `for` is the trait of the role. Natively the line stands for nothing, so that the crate's tests
/// run without a host.
#[macro_export]
macro_rules! policy {
    (Scheduling for $policy:ident { manifest: $manifest:expr $(,)? }) => {
        $crate::policy!(@component $policy, Scheduling, scheduling, $manifest, {
            fn schedule(cycle: &$crate::guest::scheduling::ephor::scheduling::cycles::Cycle) {
                <$policy as $crate::scheduling::Scheduling>::schedule(cycle, config())
            }
        });
    };
    (Priority for $policy:ident { manifest: $manifest:expr $(,)? }) => {
        $crate::policy!(@component $policy, Priority, priority, $manifest, {
            fn prioritize(jobs: &$crate::guest::priority::ephor::priority::jobs::Batch) -> ::std::vec::Vec<i64> {
                <$policy as $crate::priority::Priority>::prioritize(jobs, config())
            }
            fn explain(
                jobs: &$crate::guest::priority::ephor::priority::jobs::Batch,
                row: u32,
            ) -> ::std::vec::Vec<$crate::priority::Factor> {
                <$policy as $crate::priority::Priority>::explain(jobs, row, config())
            }
        });
    };
    (Accounting for $policy:ident { manifest: $manifest:expr $(,)? }) => {
        $crate::policy!(@component $policy, Accounting, accounting, $manifest, {
            fn charge(ended: &$crate::guest::accounting::ephor::accounting::usage::Batch) -> ::std::vec::Vec<i64> {
                <$policy as $crate::accounting::Accounting>::charge(ended, config())
            }
            fn allowances(now: $crate::Timestamp) -> ::std::vec::Vec<$crate::accounting::Allowance> {
                <$policy as $crate::accounting::Accounting>::allowances(now, config())
            }
            fn decay() -> $crate::accounting::Fading {
                <$policy as $crate::accounting::Accounting>::decay(config())
            }
        });
    };
    (Admission for $policy:ident { manifest: $manifest:expr $(,)? }) => {
        $crate::policy!(@component $policy, Admission, admission, $manifest, {
            fn admit(
                now: $crate::Timestamp,
                who: $crate::Identity,
                intent: $crate::admission::Intent,
                job: &$crate::guest::admission::ephor::admission::drafts::Draft,
            ) -> $crate::admission::Verdict {
                let site = $crate::admission::HostSite;
                <$policy as $crate::admission::Admission>::admit(now, &who, intent, job, &site, config())
            }
        });
    };
    (Authentication for $policy:ident { manifest: $manifest:expr $(,)? }) => {
        $crate::policy!(@component $policy, Authentication, authentication, $manifest, {
            fn authenticate(
                now: $crate::Timestamp,
                credential: $crate::authentication::Credential,
                peer: $crate::authentication::Peer,
            ) -> ::std::result::Result<$crate::authentication::Session, ::std::string::String> {
                let directory = $crate::directory::HostDirectory;
                <$policy as $crate::authentication::Authentication>::authenticate(
                    now, &credential, &peer, &directory, config(),
                )
            }
            fn authorize(
                now: $crate::Timestamp,
                who: $crate::Identity,
                action: $crate::authentication::Action,
                target: $crate::authentication::Target,
            ) -> ::std::result::Result<(), ::std::string::String> {
                <$policy as $crate::authentication::Authentication>::authorize(now, &who, action, &target, config())
            }
        });
    };
    (@component $policy:ident, $trait:ident, $role:ident, $manifest:expr, { $($calls:tt)* }) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "exports and custom sections are unsafe attributes")]
        const _: () = {
            type Config = <$policy as $crate::$role::$trait>::Config;

            fn config() -> &'static Config {
                static CONFIG: ::std::sync::OnceLock<Config> = ::std::sync::OnceLock::new();
                $crate::guest::enter();
                CONFIG.get_or_init($crate::guest::read_config)
            }

            struct Exports;

            impl $crate::guest::$role::exports::ephor::$role::$role::Guest for Exports { $($calls)* }

            $crate::guest::$role::export!(Exports with_types_in $crate::guest::$role);

            const MANIFEST: &str = $manifest;
            #[used]
            #[unsafe(link_section = "ephor:manifest")]
            static MANIFEST_SECTION: [u8; MANIFEST.len()] = $crate::guest::section(MANIFEST);

            // The builder checks that manifest and crate agree, and leaves this one out of the component.
            const CRATE: &str = ::std::concat!(::std::env!("CARGO_PKG_NAME"), " ", ::std::env!("CARGO_PKG_VERSION"));
            #[used]
            #[unsafe(link_section = "ephor:crate")]
            static CRATE_SECTION: [u8; CRATE.len()] = $crate::guest::section(CRATE);
        };
    };
}
