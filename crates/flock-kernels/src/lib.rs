//! flock-kernels
