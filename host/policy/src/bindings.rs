//! The contract in `wit/` as Rust types and traits, made by wasmtime's bindgen. Nothing here is written by hand.
#![allow(unsafe_code, missing_docs, clippy::all, reason = "generated code")]

/// What every role may ask the host for.
pub mod host {
    wasmtime::component::bindgen!({
        inline: "
            package ephor:bound@0.1.0;
            world host {
                import ephor:types/types@0.1.0;
                import ephor:host/log@0.1.0;
                import ephor:host/config@0.1.0;
                import ephor:host/policy-store@0.1.0;
                import ephor:host/names@0.1.0;
                import ephor:host/directory@0.1.0;
            }
        ",
        path: ["../../wit/types", "../../wit/host"],
        world: "ephor:bound/host",
        imports: { default: trappable },
    });
}

/// The role of authentication.
pub mod authentication {
    wasmtime::component::bindgen!({
        path: ["../../wit/types", "../../wit/host", "../../wit/authentication"],
        world: "ephor:authentication/policy",
        imports: { default: trappable },
        with: {
            "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
            "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
            "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
            "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
            "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
            "ephor:host/directory@0.1.0": crate::bindings::host::ephor::host::directory,
        },
    });
}

/// The role of admission.
pub mod admission {
    wasmtime::component::bindgen!({
        path: ["../../wit/types", "../../wit/host", "../../wit/admission"],
        world: "ephor:admission/policy",
        imports: { default: trappable },
        with: {
            "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
            "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
            "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
            "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
            "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
            "ephor:host/directory@0.1.0": crate::bindings::host::ephor::host::directory,
            "ephor:admission/drafts@0.1.0.draft": crate::admission::DraftHandle,
        },
    });
}

/// The role of priority.
pub mod priority {
    wasmtime::component::bindgen!({
        path: ["../../wit/types", "../../wit/host", "../../wit/priority"],
        world: "ephor:priority/policy",
        imports: { default: trappable },
        with: {
            "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
            "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
            "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
            "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
            "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
            "ephor:priority/jobs@0.1.0.batch": crate::priority::BatchHandle,
        },
    });
}

/// The role of scheduling.
pub mod scheduling {
    wasmtime::component::bindgen!({
        path: ["../../wit/types", "../../wit/host", "../../wit/scheduling"],
        world: "ephor:scheduling/policy",
        imports: { default: trappable },
        with: {
            "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
            "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
            "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
            "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
            "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
            "ephor:scheduling/cycles@0.1.0.cycle": crate::scheduling::CycleHandle,
            "ephor:scheduling/cycles@0.1.0.placing": ephor_placement::Placing,
            "ephor:scheduling/cycles@0.1.0.slot": ephor_core::cycle::CycleSlot,
        },
    });
}

/// The role of accounting.
pub mod accounting {
    wasmtime::component::bindgen!({
        path: ["../../wit/types", "../../wit/host", "../../wit/accounting"],
        world: "ephor:accounting/policy",
        imports: { default: trappable },
        with: {
            "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
            "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
            "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
            "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
            "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
            "ephor:accounting/usage@0.1.0.batch": crate::accounting::BatchHandle,
        },
    });
}
