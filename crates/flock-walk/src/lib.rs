//! flock-walk
