//! Keeps the state durable: one batch of events and the rows they changed in one transaction.
