//! Bodies of requests: any bytes are a request or a problem with a message.

use flock_server::routes::explain::ExplainRequest;
use flock_server::routes::json;
use flock_server::routes::predict::PredictRequest;
use flock_server::routes::triples::TriplesRequest;

/// The bytes as they come.
pub fn run(data: &[u8]) {
    for problem in
        [json::<PredictRequest>(data).err(), json::<ExplainRequest>(data).err(), json::<TriplesRequest>(data).err()]
    {
        assert!(problem.is_none_or(|p| !p.error.is_empty() && p.status().is_client_error()));
    }
}
