//! Loads, checks, links, calls and bounds the WebAssembly components that fill the policy roles.
