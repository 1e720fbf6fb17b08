//! Turns a core WebAssembly module of a policy into a component with its manifest, in process.
