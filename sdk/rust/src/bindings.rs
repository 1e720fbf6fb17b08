//! The contract in `wit/` as Rust types and calls, made by wit-bindgen. Nothing here is written by hand.
#![allow(unsafe_code, missing_docs, clippy::all, reason = "generated code")]

/// What every role may ask the host for.
pub mod host {
    wit_bindgen::generate!({
        inline: "
            package ephor:sdk@0.1.0;
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
        world: "ephor:sdk/host",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq],
    });
}

/// One role: its world under a name of its own (the macros that export it live side by side), on the types of [`host`].
macro_rules! role {
    ($role:ident, $inline:literal, $world:literal, $wit:literal $(, $interface:literal => $module:path)?) => {
        #[doc = concat!("The role `", stringify!($role), "`.")]
        pub mod $role {
            wit_bindgen::generate!({
                inline: $inline,
                path: ["../../wit/types", "../../wit/host", $wit],
                world: $world,
                with: {
                    "ephor:types/types@0.1.0": crate::bindings::host::ephor::types::types,
                    "ephor:host/log@0.1.0": crate::bindings::host::ephor::host::log,
                    "ephor:host/config@0.1.0": crate::bindings::host::ephor::host::config,
                    "ephor:host/policy-store@0.1.0": crate::bindings::host::ephor::host::policy_store,
                    "ephor:host/names@0.1.0": crate::bindings::host::ephor::host::names,
                    $($interface: $module,)?
                },
                generate_all,
                pub_export_macro: true,
                additional_derives: [PartialEq],
            });
        }
    };
}

role!(
    scheduling,
    "package ephor:sdk@0.1.0; world scheduling { include ephor:scheduling/policy@0.1.0; }",
    "ephor:sdk/scheduling",
    "../../wit/scheduling"
);
role!(
    priority,
    "package ephor:sdk@0.1.0; world priority { include ephor:priority/policy@0.1.0; }",
    "ephor:sdk/priority",
    "../../wit/priority"
);
role!(
    accounting,
    "package ephor:sdk@0.1.0; world accounting { include ephor:accounting/policy@0.1.0; }",
    "ephor:sdk/accounting",
    "../../wit/accounting"
);
role!(
    admission,
    "package ephor:sdk@0.1.0; world admission { include ephor:admission/policy@0.1.0; }",
    "ephor:sdk/admission",
    "../../wit/admission",
    "ephor:host/directory@0.1.0" => crate::bindings::host::ephor::host::directory
);
role!(
    authentication,
    "package ephor:sdk@0.1.0; world authentication { include ephor:authentication/policy@0.1.0; }",
    "ephor:sdk/authentication",
    "../../wit/authentication",
    "ephor:host/directory@0.1.0" => crate::bindings::host::ephor::host::directory
);
