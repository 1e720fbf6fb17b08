//! A stand-in for NVIDIA's management library, so that the agent can be tried on machines without a GPU.
//!
//! It exports the C symbols of the real one ([`abi`]) and answers them from a scene file, whose path is in the variable
//! `EPHOR_NVML_SCENE`. A scene holds devices, links, MIG instances, counters that move, and what goes wrong when
//! ([`scene`]). The file is read anew whenever it was replaced, so that a test decides what happens next ([`world`]).

mod abi;
mod scene;
mod world;
