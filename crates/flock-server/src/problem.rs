//! What goes wrong: a status, and a JSON object that says what was found and expected, with a code for programs and, where there is
//! one, a remedy in terms of this API. No text here speaks of the command line; whoever reads it may not have started the server.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flock_kg::candidates::CandidateError;
use flock_kg::graph::{LoadError, NameKind, Remedy, RowError, UnknownName};
use flock_kg::{AskError, Task};
use serde::Serialize;

use crate::live::LiveError;
use crate::store::{StoreError, StoreRemedy};

/// The kind of a problem. It decides the status.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// 400: the request makes no sense.
    BadRequest,
    /// 400: an uploaded graph cannot be read.
    BadGraph,
    /// 400: the server has no model for this kind of question.
    NoModel,
    /// 400: a name could stand for several; `near` lists them.
    AmbiguousName,
    /// 401: the request shows no token and needs one.
    TokenNeeded,
    /// 401: the request shows a token, and it is not the server's.
    WrongToken,
    /// 403: the server does not go by this host name.
    WrongHost,
    /// 403: the request comes from a page of another site.
    OtherSite,
    /// 403: without a token the server takes changes only straight from programs of its own user on its own machine.
    ReadOnly,
    /// 404: the graph has no such name.
    UnknownName,
    /// 404: there is no such uploaded graph, or not any more.
    UnknownGraph,
    /// 404: there is nothing at this path.
    NotFound,
    /// 405: the path does not take this method.
    MethodNotAllowed,
    /// 408: the body came too slowly.
    TooSlow,
    /// 409: another server has the file of edits.
    EditsInUse,
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is of another type.
    WrongType,
    /// 429: too much is waiting, or too many connections or bodies are open.
    Busy,
    /// 500: the server failed; its log says more.
    Internal,
    /// 500: the edit could not be kept, and was not made.
    NotKept,
    /// 503: the answer was not ready in time.
    Late,
    /// 503: the server is ending.
    Ending,
    /// 507: the disk is full; the edit was not made.
    DiskFull,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Code::BadRequest | Code::BadGraph | Code::NoModel | Code::AmbiguousName => StatusCode::BAD_REQUEST,
            Code::TokenNeeded | Code::WrongToken => StatusCode::UNAUTHORIZED,
            Code::WrongHost | Code::OtherSite | Code::ReadOnly => StatusCode::FORBIDDEN,
            Code::UnknownName | Code::UnknownGraph | Code::NotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Code::EditsInUse => StatusCode::CONFLICT,
            Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::WrongType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::Busy => StatusCode::TOO_MANY_REQUESTS,
            Code::Internal | Code::NotKept => StatusCode::INTERNAL_SERVER_ERROR,
            Code::Late | Code::Ending => StatusCode::SERVICE_UNAVAILABLE,
            Code::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// What is wrong.
    pub error: String,
    /// What kind of problem it is.
    pub code: Code,
    /// What to do about it, in terms of this API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Names that may have been meant, as they are shown; each can be asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
}

impl Problem {
    /// A problem of some kind.
    pub fn new(code: Code, error: impl std::fmt::Display) -> Problem {
        Problem { error: error.to_string(), code, remedy: None, near: Vec::new() }
    }

    /// A request that makes no sense.
    pub fn bad(error: impl std::fmt::Display) -> Problem {
        Problem::new(Code::BadRequest, error)
    }

    /// Something that should not happen. It is said on standard error, and the client hears that it happened.
    pub fn internal(what: impl std::fmt::Display) -> Problem {
        talk(format_args!("error: {what}"));
        let problem = Problem::new(Code::Internal, "the server failed to answer; its log says more");
        problem.remedy("please report it with the request")
    }

    /// The same with what to do.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Problem {
        self.remedy = Some(remedy.into());
        self
    }

    /// The status it is sent with.
    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// Why an uploaded file is no graph. `name` is what it was called, with which all of the loader's messages begin.
    pub fn bad_graph(e: &LoadError) -> Problem {
        // Remedies in the API's own terms, where it has some; else in the loader's words, which name no flag.
        if let Some(Remedy::Columns { columns, names, .. }) = e.remedy() {
            let has =
                if names.is_empty() { String::new() } else { format!("this file has columns {}; ", names.join(", ")) };
            let columns = Remedy::chosen(columns, &names);
            let remedy = format!("{has}choose head, relation and tail in the query, such as columns={columns}");
            return Problem::new(Code::BadGraph, e).remedy(remedy);
        }
        let own = match e {
            LoadError::UnknownFormat { .. } => Some(
                "say the format: Content-Type text/csv, text/turtle or application/n-triples, or a name that ends in .tsv, \
                 .csv, .ttl or .nt",
            ),
            LoadError::NamesWithoutHeader { .. } => Some("leave header=false out, or choose the columns by number"),
            LoadError::Row { what: RowError::Fields { .. }, .. } => Some(
                "send three fields in a row, head, relation and tail: separated by tabs as text/tab-separated-values, or by \
                 commas as text/csv; or say which columns these are, as in columns=1,2,3",
            ),
            LoadError::Row { what: RowError::EmptyField { .. }, .. } => Some("fill the field in, or leave the row out"),
            LoadError::Utf16 { .. } | LoadError::Row { what: RowError::InvalidUtf8 { .. }, .. } => {
                Some("send UTF-8 text")
            }
            LoadError::Row { what: RowError::TooLong | RowError::ManyFields, .. } => Some("send one triple in a line"),
            LoadError::Row { what: RowError::LongName, .. } => Some("shorten the name, or leave the row out"),
            LoadError::TooMuch { .. } | LoadError::TooLarge { .. } => Some("send a smaller graph"),
            LoadError::Archive { .. } => Some("send plain text, or text packed with gzip or zstd"),
            LoadError::Damaged { .. } => Some("pack the file again, or send plain text"),
            LoadError::Empty { .. } => Some("send a file with at least one triple in TSV, CSV, Turtle or N-Triples"),
            _ => None,
        };
        let code = if matches!(e, LoadError::TooMuch { .. }) { Code::TooLarge } else { Code::BadGraph };
        let problem = Problem::new(code, e);
        let remedy = own.map(String::from).or_else(|| e.remedy().map(|remedy| remedy.to_string()));
        problem.remedy(remedy.unwrap_or_else(|| "correct the file and send it again".to_string()))
    }
}

/// A line on standard error. That it cannot be written is no reason to stop.
pub(crate) fn talk(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl From<UnknownName> for Problem {
    fn from(unknown: UnknownName) -> Problem {
        if !unknown.fits.is_empty() {
            let problem = Problem::new(Code::AmbiguousName, &unknown).remedy("use one of the names in near");
            return Problem { near: unknown.fits, ..problem };
        }
        if !unknown.near.is_empty() {
            let problem = Problem::new(Code::UnknownName, &unknown).remedy("use one of the names in near");
            return Problem { near: unknown.near, ..problem };
        }
        let (plural, other) = match unknown.kind {
            NameKind::Entity => ("entities", "a relation"),
            NameKind::Relation => ("relations", "an entity"),
        };
        let other = if unknown.is_other_kind { format!(" (that is the name of {other})") } else { String::new() };
        let error = format!("unknown {} {:?}{other}; no name is near", unknown.kind, unknown.name);
        let remedy = format!("GET /api/v1/{plural}?q= completes names; the graph has {} {plural}", unknown.count);
        Problem::new(Code::UnknownName, error).remedy(remedy)
    }
}

impl From<AskError> for Problem {
    fn from(e: AskError) -> Problem {
        match e {
            AskError::Unknown(unknown) => unknown.into(),
            AskError::Candidate(CandidateError::NoneKnown { unknown, .. }) => (*unknown).into(),
            AskError::Candidate(CandidateError::Unknown { unknown, .. }) => (*unknown).into(),
            AskError::Candidate(CandidateError::NotRelations { .. }) => Problem::bad(e)
                .remedy("ask for a head or a tail, or leave out among_type, among_range and among_domain"),
            AskError::Candidate(_) => {
                Problem::bad(e).remedy("leave one of among, among_type, among_range and among_domain out")
            }
            AskError::UnknownToo { .. } => Problem::new(Code::UnknownName, e),
            AskError::Blanks { found } => {
                Problem::bad(format!("expected one ? among head, relation and tail, found {found}"))
                    .remedy("put ? in the place of the answer and names in the other two")
            }
            AskError::BlankInTriple => {
                Problem::bad(e).remedy("name head, relation and tail; blank says which is the answer")
            }
            AskError::NoCandidates => Problem::bad(e).remedy("put names into among, or leave it out to rank all"),
            AskError::NoModel { task, .. } => {
                let asked = if task == Task::Entity { "for a head or a tail" } else { "for a relation" };
                let error = format!("this server has no {task} model and answers no questions {asked}");
                Problem::new(Code::NoModel, error)
            }
            // The request has been given up, by its client or by the deadline.
            AskError::Cancelled => Problem::late(),
            // Questions are given to a model of their task, with ids of the graph they were parsed with.
            other => Problem::internal(other),
        }
    }
}

impl From<LiveError> for Problem {
    fn from(e: LiveError) -> Problem {
        let LiveError::Store(store) = &e else {
            return match e {
                LiveError::Graph(e) => Problem::bad(e),
                LiveError::Name(unknown) => unknown.into(),
                other => Problem::internal(other),
            };
        };
        // The text names a file of the server, which is for its log.
        talk(format_args!("error: {store}"));
        match (store, store.remedy()) {
            (StoreError::InUse { .. }, _) => {
                Problem::new(Code::EditsInUse, "another server keeps the edits of this graph; the edit was not made")
                    .remedy("send the edit to that server, or again when it has ended")
            }
            (_, StoreRemedy::MakeRoom) => Problem::new(Code::DiskFull, "the disk is full; the edit was not made")
                .remedy("send it again when there is room on the server's disk"),
            _ => Problem::new(Code::NotKept, "the edit could not be kept and was not made; the server's log says why")
                .remedy("send it again when that is mended"),
        }
    }
}

impl Problem {
    /// An answer that was not ready by the deadline.
    pub fn late() -> Problem {
        Problem::new(Code::Late, "the answer was not ready in time")
            .remedy("ask for fewer passes or walks, or set budget_ms")
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
