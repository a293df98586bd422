//! Bodies of requests: any bytes are a request or a problem with a message.
#![no_main]

use flock_server::request::{ExplainRequest, PredictRequest, TriplesRequest, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for problem in [
        json::<PredictRequest>(data).err(),
        json::<ExplainRequest>(data).err(),
        json::<TriplesRequest>(data).err(),
    ] {
        assert!(problem.is_none_or(|p| !p.error.is_empty() && p.status().is_client_error()));
    }
});
