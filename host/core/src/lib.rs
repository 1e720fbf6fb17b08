//! The cluster as a state machine: commands become events, events fold into state, cycles become plans.
