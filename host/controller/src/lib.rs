//! The controller daemon: sequencer, scheduler thread, agent sessions and services.
