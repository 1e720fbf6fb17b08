//! The ephor command: what a person types, and how it is shown.
fn main() {}
