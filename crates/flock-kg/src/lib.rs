//! flock-kg
