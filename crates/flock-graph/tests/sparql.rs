//! A SPARQL endpoint as a graph: against a small server of its own that misbehaves on purpose, and
//! against oxigraph if it is installed (`pip install oxigraph`).
#![cfg(feature = "sparql")]

use flock_graph::{EndpointError, Format, Graph, LoadError, LoadOptions, LoadProgress, LoadReport, load};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Answers a query with status, type and body.
type Handler = dyn FnMut(&str) -> (u16, &'static str, String) + Send;

/// Serves queries until the test ends. Returns the address and the queries so far.
fn serve(mut handler: Box<Handler>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("sparql:http://{}/query", listener.local_addr().unwrap());
    let queries = Arc::new(Mutex::new(Vec::new()));
    let seen = queries.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let query = query_of(&mut stream);
            seen.lock().unwrap().push(query.clone());
            let (status, media_type, body) = handler(&query);
            let head = format!("HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nConnection: close\r\n");
            // A broken answer promises more than it sends.
            let length = body.len() + if body.ends_with("CUT") { 100 } else { 0 };
            let _ = write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}");
        }
    });
    (address, queries)
}

/// Reads a request and returns its query.
fn query_of(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let form = String::from_utf8(body).unwrap();
    let query = form.strip_prefix("query=").unwrap();
    let mut bytes = Vec::new();
    let mut rest = query.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

const JSON: &str = "application/sparql-results+json";

/// Writes rows as JSON. A value that begins with `"` is a literal.
fn json(variables: &[&str], rows: &[Vec<String>]) -> String {
    let term = |value: &String| match value.strip_prefix('"') {
        Some(text) => match text.split_once("\"@") {
            Some((text, language)) => format!(r#"{{"type":"literal","value":"{text}","xml:lang":"{language}"}}"#),
            None => format!(r#"{{"type":"literal","value":"{}"}}"#, text.trim_end_matches('"')),
        },
        None => format!(r#"{{"type":"uri","value":"{value}"}}"#),
    };
    let row = |row: &Vec<String>| {
        let cells: Vec<String> =
            variables.iter().zip(row).map(|(v, value)| format!(r#""{v}":{}"#, term(value))).collect();
        format!("{{{}}}", cells.join(","))
    };
    let head: Vec<String> = variables.iter().map(|v| format!("\"{v}\"")).collect();
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!(r#"{{"head":{{"vars":[{}]}},"results":{{"bindings":[{}]}}}}"#, head.join(","), rows.join(","))
}

fn owned(rows: &[[&str; 3]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|s| (*s).to_owned()).collect()).collect()
}

/// Returns the rows of a page, of at most `cap` rows.
fn page(rows: &[Vec<String>], query: &str, cap: usize) -> Vec<Vec<String>> {
    let number = |word: &str| query.split(word).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let (limit, offset): (usize, usize) = (number("LIMIT "), number("OFFSET "));
    rows.iter().skip(offset).take(limit.min(cap)).cloned().collect()
}

fn links(n: usize) -> Vec<Vec<String>> {
    (0..n)
        .map(|i| vec![format!("http://e.org/{i:03}"), "http://e.org/next".into(), format!("http://e.org/{:03}", i + 1)])
        .collect()
}

/// Answers like an endpoint with `n` links, which sends `cap` rows at most.
fn endpoint(n: usize, cap: usize) -> impl FnMut(&str) -> (u16, &'static str, String) + Send + 'static {
    let labels = owned(&[
        ["http://e.org/000", "http://www.w3.org/2000/01/rdf-schema#label", "\"Null\"@de"],
        ["http://e.org/000", "http://www.w3.org/2000/01/rdf-schema#label", "\"Zero\"@en"],
    ]);
    move |query: &str| {
        let body = if query.contains("ORDER BY") && query.contains("VALUES") {
            json(&["s", "p", "o"], &page(&labels, query, cap))
        } else if query.contains("ORDER BY") {
            json(&["s", "p", "o"], &page(&links(n), query, cap))
        } else if query.contains("GROUP BY") {
            json(&["p", "n"], &[vec!["http://e.org/age".into(), "\"7\"".into()]])
        } else if query.contains("isBlank") {
            json(&["n"], &[vec!["\"2\"".into()]])
        } else {
            json(&["n"], &[vec![format!("\"{n}\"")]])
        };
        (200, JSON, body)
    }
}

fn read(address: &str, options: &LoadOptions) -> Result<(Graph, LoadReport), LoadError> {
    load(Path::new(address), options)
}

fn refused(address: &str, options: &LoadOptions) -> EndpointError {
    match read(address, options) {
        Err(LoadError::Endpoint { what, .. }) => what,
        other => panic!("{:?}", other.map(|(_, report)| report)),
    }
}

fn size(page_size: u32) -> LoadOptions {
    LoadOptions { page_size: Some(page_size), ..LoadOptions::default() }
}

#[test]
fn pages_labels_and_counts() {
    let (address, queries) = serve(Box::new(endpoint(25, usize::MAX)));
    let options = LoadOptions { progress: LoadProgress::default(), ..size(10) };
    let (graph, report) = read(&address, &options).unwrap();
    assert_eq!(graph.topology().num_triples(), 25);
    assert_eq!((report.format, report.rows, report.triples), (Format::Sparql, 25 + 2 + 7 + 2, 25));
    assert_eq!((report.labels, report.literals, report.blank), (2, 7, 2));
    assert!(report.adds_up());
    assert_eq!(report.left_out().as_deref(), Some("7 literals (age 7), 2 statements with blank nodes"));
    let zero = graph.entities().id("http://e.org/000").unwrap();
    assert_eq!(graph.labels().entity(zero), Some("Zero"));
    assert_eq!(options.progress.rows(), (25, Some(25)));
    // Three pages are enough, since the endpoint said how many triples it has.
    let queries = queries.lock().unwrap();
    let pages: Vec<&str> =
        queries.iter().filter(|q| !q.contains("VALUES")).filter_map(|q| q.split("LIMIT ").nth(1)).collect();
    assert_eq!(pages, ["10 OFFSET 0", "10 OFFSET 10", "10 OFFSET 20"]);
    assert!(queries[1].contains("FILTER(isIRI(?s) && isIRI(?o)) } ORDER BY ?s ?p ?o"), "{}", queries[1]);
}

#[test]
fn an_endpoint_that_sends_fewer_rows_than_asked_for() {
    let (address, _) = serve(Box::new(endpoint(25, 4)));
    assert_eq!(read(&address, &size(10)).unwrap().1.triples, 25);

    // It cannot count either, so that only an empty page is the end.
    let mut inner = endpoint(25, 4);
    let (address, _) = serve(Box::new(move |query| {
        if query.contains("COUNT") { (400, "text/plain", "no aggregates".into()) } else { inner(query) }
    }));
    let (_, report) = read(&address, &size(10)).unwrap();
    assert_eq!((report.triples, report.literals), (25, 0));

    // It stops early and says nothing.
    let mut inner = endpoint(25, usize::MAX);
    let (address, _) = serve(Box::new(move |query| {
        let end = query.contains("OFFSET 10") && !query.contains("VALUES");
        if end { (200, JSON, json(&["s", "p", "o"], &[])) } else { inner(query) }
    }));
    assert_eq!(refused(&address, &size(10)), EndpointError::Incomplete { rows: 10, total: 25 });
}

#[test]
fn failures_that_pass() {
    let (mut inner, mut requests) = (endpoint(25, usize::MAX), 0);
    let (address, queries) = serve(Box::new(move |query| {
        requests += 1;
        match requests {
            2 => (503, "text/plain", "busy".into()),
            // Cut in the middle of a row.
            4 => {
                let whole = inner(query).2;
                let at = whole.find("http://e.org/014").unwrap();
                (200, JSON, format!("{}CUT", &whole[..at]))
            }
            _ => inner(query),
        }
    }));
    let (graph, report) = read(&address, &size(10)).unwrap();
    assert_eq!((report.triples, report.duplicates, graph.topology().num_nodes()), (25, 0, 26));
    assert!(queries.lock().unwrap().len() >= 6);
}

#[test]
fn failures_that_last() {
    let (address, queries) = serve(Box::new(|_| (400, "text/plain", "MALFORMED\n QUERY".into())));
    let error = read(&address, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{address}: the endpoint answered with status 400: MALFORMED QUERY"));
    // One for the number of triples, and one for a page.
    assert_eq!(queries.lock().unwrap().len(), 2);

    let (address, _) = serve(Box::new(|_| (200, "text/html", "<html>Hello</html>".into())));
    let error = read(&address, &LoadOptions::default()).unwrap_err();
    let want = "the endpoint sent text/html, expected results of SPARQL; it begins: <html>Hello</html>";
    assert_eq!(error.to_string(), format!("{address}: {want}"));
    assert_eq!(error.remedy().unwrap().to_string(), "check that this is the address for queries");

    let mut inner = endpoint(0, usize::MAX);
    let (address, _) = serve(Box::new(move |query| {
        let graphs = [vec!["http://e.org/g".to_owned()]];
        if query.contains("GRAPH ?g") { (200, JSON, json(&["g"], &graphs)) } else { inner(query) }
    }));
    let error = read(&address, &LoadOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("no triples, expected at least one with an IRI on both sides"), "{error}");
    assert_eq!(error.remedy().unwrap().to_string(), "name a graph, such as #graph=http://e.org/g");

    let (address, _) = serve(Box::new(endpoint(25, usize::MAX)));
    let little = LoadOptions { max_bytes: Some(1000), ..LoadOptions::default() };
    assert!(matches!(read(&address, &little), Err(LoadError::TooMuch { limit: 1000, .. })));
}

#[test]
fn addresses() {
    let options = LoadOptions::default();
    assert_eq!(refused("sparql:localhost:7878", &options), EndpointError::Address);
    assert_eq!(refused("sparql:http://localhost/#x", &options), EndpointError::GraphName);
    assert_eq!(refused("sparql:http://localhost/#graph=a b", &options), EndpointError::GraphName);
    let (address, queries) = serve(Box::new(endpoint(3, usize::MAX)));
    let with_graph = format!("{address}#graph=http://e.org/g#1").replace("http://127", "http://ada:secret@127");
    let (_, report) = read(&with_graph, &options).unwrap();
    assert_eq!(report.triples, 3);
    assert!(queries.lock().unwrap().iter().all(|q| q.contains("GRAPH <http://e.org/g#1> { ?s ?p ?o }")));
    // A password is not shown.
    let error = read("sparql:http://ada:secret@localhost/#x", &options).unwrap_err().to_string();
    assert!(error.starts_with("sparql:http://ada:…@localhost/#x: "), "{error}");
}

/// A server of oxigraph. It ends with the test.
struct Oxigraph(Child);

impl Drop for Oxigraph {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `pip install oxigraph` puts the server on the path. `FLOCK_OXIGRAPH` names it if it is elsewhere.
#[test]
fn oxigraph() {
    let program = std::env::var("FLOCK_OXIGRAPH").unwrap_or_else(|_| "oxigraph".to_owned());
    if Command::new(&program).arg("--version").output().is_err() {
        eprintln!("skipped: no {program}; hint: pip install oxigraph, or FLOCK_OXIGRAPH=PATH");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut data = String::new();
    for i in 0..250 {
        data += &format!("<http://e.org/{i}> <http://e.org/next> <http://e.org/{}> .\n", (i + 1) % 250);
        data += &format!("<http://e.org/{i}> <http://www.w3.org/2000/01/rdf-schema#label> \"node {i}\"@en .\n");
        data += &format!("<http://e.org/{i}> <http://e.org/size> \"{i}\" .\n");
    }
    data += "<http://e.org/1> <http://e.org/next> _:x .\n";
    data += "<http://e.org/a> <http://e.org/in> <http://e.org/b> <http://e.org/g> .\n";
    let file = directory.path().join("data.nq");
    std::fs::write(&file, data).unwrap();
    let store = directory.path().join("store");
    let arguments = ["load", "--location", store.to_str().unwrap(), "--file", file.to_str().unwrap()];
    let loaded = Command::new(&program).args(arguments).output().unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    // A port that is free now. Only another program could take it meanwhile.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let bind = format!("127.0.0.1:{port}");
    let server = Command::new(&program)
        .args(["serve-read-only", "--location", store.to_str().unwrap(), "--bind", &bind])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Oxigraph(server.unwrap());

    // The first request is sent again until the server is up.
    let address = format!("sparql:http://{bind}/query");
    let mut loaded = read(&address, &size(60));
    for _ in 0..5 {
        if loaded.is_err() {
            loaded = read(&address, &size(60));
        }
    }
    let (graph, report) = loaded.unwrap();
    assert_eq!((report.triples, report.labels, report.literals, report.blank), (250, 250, 250, 1));
    assert_eq!(report.literals_by_predicate, [("http://e.org/size".to_owned(), 250)]);
    let seven = graph.entities().id("http://e.org/7").unwrap();
    assert_eq!(graph.labels().entity(seven), Some("node 7"));

    let (graph, report) = read(&format!("{address}#graph=http://e.org/g"), &size(60)).unwrap();
    assert_eq!((report.triples, graph.relations().get(0)), (1, "http://e.org/in"));
}
