//! The page, inside the binary. Its sources are in `ui/`, built by `ui/build.sh`.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

const ASSETS: [(&str, &str, &str); 3] = [
    ("app.js", "text/javascript; charset=utf-8", include_str!("../ui/dist/app.js")),
    ("app.css", "text/css; charset=utf-8", include_str!("../ui/dist/app.css")),
    ("icon.svg", "image/svg+xml", include_str!("../ui/dist/icon.svg")),
];

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

/// The page itself.
pub async fn index() -> Response {
    file("text/html; charset=utf-8", include_str!("../ui/dist/index.html"))
}

/// One of its files: looked up in a list, so no path of a request reaches the disk.
pub async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    match found {
        Some((_, kind, text)) => Ok(file(kind, text)),
        None => Err(crate::guard::nothing_here().await),
    }
}
