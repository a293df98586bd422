//! flock-graph
