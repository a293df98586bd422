//! What goes wrong, as a status and a JSON object that says what was found, what was expected and what to do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flock_kg::graph::UnknownName;
use flock_kg::model::ModelError;
use flock_kg::question::QuestionError;
use serde::Serialize;

/// The body of every answer that is not a success.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// What is wrong.
    pub error: String,
    /// Names that may have been meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    #[serde(skip)]
    status: u16,
}

impl Problem {
    /// A problem with a status.
    pub fn new(status: StatusCode, error: impl std::fmt::Display) -> Problem {
        Problem { error: error.to_string(), near: Vec::new(), status: status.as_u16() }
    }

    /// A request that makes no sense.
    pub fn bad(error: impl std::fmt::Display) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, error)
    }

    /// The status it is sent with.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<UnknownName> for Problem {
    fn from(unknown: UnknownName) -> Problem {
        Problem { near: unknown.near.clone(), ..Problem::new(StatusCode::NOT_FOUND, unknown) }
    }
}

impl From<QuestionError> for Problem {
    fn from(e: QuestionError) -> Problem {
        match e {
            QuestionError::Unknown(unknown) => unknown.into(),
            other => Problem::bad(other),
        }
    }
}

impl From<ModelError> for Problem {
    fn from(e: ModelError) -> Problem {
        Problem::bad(e)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, axum::Json(self)).into_response();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
