//! The API described: as OpenAPI, made from the types, and as a page for reading that needs nothing else.

use std::fmt::Write;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Html;
use serde_json::Value;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::App;
use crate::routes::{complete, explain, graphs, names, predict, score, status, triples};

#[derive(OpenApi)]
#[openapi(
    info(title = "flock-kg", description = "Predicts missing links in a knowledge graph."),
    paths(
        status::health,
        status::info,
        names::entities,
        names::relations,
        predict::predict,
        predict::stream,
        explain::explain,
        complete::complete,
        complete::stream,
        score::score,
        graphs::neighbourhood,
        triples::triples,
        graphs::graphs
    ),
    tags((name = "api", description = "Questions, names, edits and graphs")),
    modifiers(&Token),
    // Any route may be open or may want the token, as the server was started.
    security((), ("token" = []))
)]
struct Api;

/// Describes the token.
struct Token;

impl Modify for Token {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let about = "The server's token. Edits and uploads need it, and reads if the server guards them. A server on loopback without a \
                     token takes edits and uploads straight from programs of its own user.";
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about)).build();
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// The description for machines.
pub async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Api::openapi())
}

/// The description for people.
pub async fn page(State(app): State<Arc<App>>) -> Html<String> {
    Html(html(&serde_json::to_value(Api::openapi()).unwrap_or_default(), app.guard_reads))
}

fn html(api: &Value, guarded: bool) -> String {
    // A link cannot show a token, so where one is needed there is none.
    let metrics = if guarded { "<code>/metrics</code>, with the token" } else { "<a href=\"/metrics\">/metrics</a>" };
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>flock-kg API</title><style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;\
         max-width:60rem;margin:auto;padding:1rem}code{font-size:.95em}table{border-collapse:collapse;width:100%}\
         td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884}\
         h2{margin-top:2rem}</style><h1>flock-kg API</h1><p>JSON over HTTP. Errors are <code>{\"error\": …, \"code\": …}</code> with a \
         fitting status and often a <code>remedy</code>. For machines: <a href=\"/openapi.json\">/openapi.json</a>. Counters: METRICS.\
         <p><code>curl -s localhost:7878/api/v1/predict -H 'Content-Type: application/json' \
         -d '{\"query\": [\"Portugal\", \"borders\", \"?\"]}'</code>",
    )
    .replace("METRICS", metrics);
    let none = serde_json::Map::new();
    for (path, methods) in api["paths"].as_object().unwrap_or(&none) {
        for (method, about) in methods.as_object().unwrap_or(&none) {
            let _ = write!(out, "<h2><code>{} {}</code></h2>", escape_html(&method.to_uppercase()), escape_html(path));
            let text = about["summary"].as_str().or(about["description"].as_str()).unwrap_or("");
            let _ = write!(out, "<p>{}", escape_html(text));
            if let Some(parameters) = about["parameters"].as_array() {
                rows(&mut out, "Parameters", parameters.iter().map(|p| (p["name"].as_str().unwrap_or(""), p)));
            }
            for (kind, content) in about["requestBody"]["content"].as_object().unwrap_or(&none) {
                let _ = write!(out, "<p>Body: <code>{}</code> {}", escape_html(kind), reference(&content["schema"]));
            }
            let _ = write!(out, "<p>Answers:");
            for (status, response) in about["responses"].as_object().unwrap_or(&none) {
                let content = response["content"].as_object().unwrap_or(&none).values().next();
                let _ = write!(out, " <code>{}</code>", escape_html(status));
                let _ = write!(out, " {}", content.map_or(String::new(), |c| reference(&c["schema"])));
            }
        }
    }
    out.push_str("<h1>Types</h1>");
    for (name, schema) in api["components"]["schemas"].as_object().unwrap_or(&none) {
        let name = escape_html(name);
        let about = escape_html(schema["description"].as_str().unwrap_or(""));
        let _ = write!(out, "<h2 id=\"{name}\"><code>{name}</code></h2><p>{about}");
        let parts = schema["allOf"].as_array().map_or_else(|| vec![schema], |all| all.iter().collect());
        for part in parts {
            if let Some(properties) = part["properties"].as_object() {
                rows(&mut out, "Fields", properties.iter().map(|(name, about)| (name.as_str(), about)));
            } else if let Some(values) = part["enum"].as_array() {
                let values =
                    values.iter().filter_map(Value::as_str).map(|v| format!("<code>{}</code>", escape_html(v)));
                let _ = write!(out, "<p>One of {}", values.collect::<Vec<_>>().join(", "));
            } else if part.get("$ref").is_some() {
                let _ = write!(out, "<p>All of {}", reference(part));
            }
        }
    }
    out
}

fn rows<'a>(out: &mut String, title: &str, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    let _ = write!(out, "<table><tr><th>{title}<th>Type<th>");
    for (name, about) in fields {
        let schema = about.get("schema").unwrap_or(about);
        let text = about["description"].as_str().unwrap_or("");
        let _ =
            write!(out, "<tr><td><code>{}</code><td>{}<td>{}", escape_html(name), reference(schema), escape_html(text));
    }
    out.push_str("</table>");
}

/// A type by its name, linked if it is one of ours.
fn reference(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape_html(name));
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(all) = schema[several].as_array() {
            return all.iter().map(reference).collect::<Vec<_>>().join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", reference(&schema["items"])),
        Value::String(kind) => escape_html(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(escape_html).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
