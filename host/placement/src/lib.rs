//! Answers what fits where and when on a set of nodes, with savepoints and exact rollback.
