//! Flock over HTTP.
