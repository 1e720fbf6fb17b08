//! The node daemon: launches, watches, confines and reports the attempts of one node.
