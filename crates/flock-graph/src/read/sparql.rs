//! Reads a graph from a SPARQL endpoint, page by page.
//!
//! `sparql:http://localhost:7878/query` names the default graph of an endpoint, and
//! `sparql:http://localhost:7878/query#graph=http://example.org/g` one of its named graphs. Triples
//! of IRIs are asked for, then labels, then how many literals there are of each property. Blank
//! nodes are left out: they have other names in each answer.
//!
//! Pages are ordered, so that none has a row of another. A page with fewer rows than asked for may
//! be the last, or the endpoint has a limit of its own; only an empty page is the end. A request that
//! fails for a reason that may pass is sent again, for half as many rows. A page is streamed, and rows
//! that came before a connection broke are kept.

use super::rdf::{labels, names_too_long};
use super::source::Source;
use super::{LoadOptions, LoadReport, Sink};
use crate::read::error::{EndpointError, LoadError};
use oxrdf::{NamedNode, Term};
use sparesults::{QueryResultsFormat, QueryResultsParser, QuerySolution, ReaderQueryResultsParserOutput};
use std::io::{self, Read};
use std::thread::sleep;
use std::time::Duration;

/// Number of rows to ask for at a time, if the caller does not say.
const PAGE: u32 = 10_000;

/// Least number of rows that a page is cut to when requests fail.
const LEAST_PAGE: u32 = 100;

/// Number of times that a request is sent, at most.
const TRIES: u32 = 5;

/// Pause before the second try. It doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// Longest pause that an endpoint may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(60);

const ACCEPT: &str =
    "application/sparql-results+json, application/sparql-results+xml;q=0.8, text/tab-separated-values;q=0.5";

/// Passes every triple and label of the endpoint to `sink`.
pub(crate) fn read(
    source: &Source<'_>,
    options: &LoadOptions,
    report: &mut LoadReport,
    sink: &mut dyn Sink,
) -> Result<(), LoadError> {
    let mut endpoint = Endpoint::new(source, options)?;
    let graph = endpoint.graph.clone();
    let pattern = match &graph {
        Some(graph) => format!("GRAPH {graph} {{ ?s ?p ?o }}"),
        None => "?s ?p ?o".to_owned(),
    };
    let links = format!("{{ {pattern} FILTER(isIRI(?s) && isIRI(?o)) }}");

    // Not every endpoint has time to count.
    let total = endpoint.count(&format!("SELECT (COUNT(*) AS ?n) WHERE {links}"))?;
    options.progress.expect_rows(total.unwrap_or(0));
    let mut long = None;
    let rows = endpoint.pages(&format!("SELECT ?s ?p ?o WHERE {links} ORDER BY ?s ?p ?o"), total, |[s, p, o]| {
        let (Some(Term::NamedNode(s)), Some(Term::NamedNode(p)), Some(Term::NamedNode(o))) = (s, p, o) else { return };
        let names = [s.as_str(), p.as_str(), o.as_str()];
        if names_too_long(names) {
            long.get_or_insert_with(|| names.map(str::to_owned));
            return;
        }
        report.rows += 1;
        options.progress.add_row();
        sink.triple(names[0], names[1], names[2]);
    })?;
    if long.is_some() {
        return Err(endpoint.error(EndpointError::LongName));
    }
    if let Some(total) = total
        && rows < total - total / 100
    {
        // A few may have been deleted meanwhile.
        return Err(endpoint.error(EndpointError::Incomplete { rows, total }));
    }
    if rows == 0 {
        let found = if graph.is_some() { Vec::new() } else { endpoint.graphs() };
        return Err(endpoint.error(EndpointError::NoTriples { graphs: found }));
    }

    let properties: Vec<String> = labels::properties().map(|property| format!("<{property}>")).collect();
    let query = format!(
        "SELECT ?s ?p ?o WHERE {{ VALUES ?p {{ {} }} {pattern} FILTER(isIRI(?s) && isLiteral(?o)) }} ORDER BY ?s ?p ?o",
        properties.join(" ")
    );
    endpoint.pages(&query, None, |[s, p, o]| {
        let (Some(Term::NamedNode(s)), Some(Term::NamedNode(p)), Some(Term::Literal(literal))) = (s, p, o) else {
            return;
        };
        report.rows += 1;
        let rank = labels::rank(p.as_str(), literal.language(), &options.languages);
        match (rank, labels::text(&literal)) {
            (Some(rank), Some(label)) => {
                report.labels += 1;
                sink.label(s.as_str(), label, rank);
            }
            _ => report.literal(p.as_str()),
        }
    })?;

    let query = format!(
        "SELECT ?p (COUNT(*) AS ?n) WHERE {{ {pattern} FILTER(isLiteral(?o) && ?p NOT IN ({})) }} GROUP BY ?p",
        properties.join(", ")
    );
    for (property, count) in endpoint.counts(&query)? {
        report.rows += count;
        report.add_literals(&property, count);
    }
    let query = format!("SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} FILTER(isBlank(?s) || isBlank(?o)) }}");
    let blank = endpoint.count(&query)?.unwrap_or(0);
    report.rows += blank;
    report.blank += blank;
    Ok(())
}

/// A SPARQL endpoint.
struct Endpoint<'a> {
    /// Its name in messages.
    file: &'a str,
    url: String,
    /// The named graph to read, as `<IRI>`.
    graph: Option<NamedNode>,
    agent: ureq::Agent,
    page: u32,
    /// Greatest number of bytes of all answers, and those so far.
    max_bytes: Option<u64>,
    bytes: u64,
}

/// Why a request failed.
enum RequestError {
    /// It may work the next time, after this pause if the endpoint says so.
    Passing(EndpointError, Option<Duration>),
    Lasting(EndpointError),
    /// The answers are longer than allowed.
    TooMuch,
}

impl<'a> Endpoint<'a> {
    fn new(source: &'a Source<'_>, options: &LoadOptions) -> Result<Endpoint<'a>, LoadError> {
        let file = source.file.as_str();
        let refused = |what| LoadError::Endpoint { file: file.to_owned(), what };
        let address = source.endpoint.as_deref().unwrap_or_default();
        let (url, fragment) = address.split_once('#').unwrap_or((address, ""));
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(refused(EndpointError::Address));
        }
        let graph = match fragment.strip_prefix("graph=") {
            Some(graph) => Some(NamedNode::new(graph).map_err(|_| refused(EndpointError::GraphName))?),
            None if fragment.is_empty() => None,
            None => return Err(refused(EndpointError::GraphName)),
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(180)))
            .timeout_per_read(Some(Duration::from_secs(60)))
            .user_agent(concat!("flock-kg/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Endpoint {
            file,
            url: url.to_owned(),
            graph,
            agent,
            page: options.page_size.unwrap_or(PAGE).max(1),
            max_bytes: options.max_bytes,
            bytes: 0,
        })
    }

    fn error(&self, what: EndpointError) -> LoadError {
        LoadError::Endpoint { file: self.file.to_owned(), what }
    }

    /// Passes all rows of a query to `take`, and returns their number. Stops at `total` rows, if that
    /// is known.
    fn pages(
        &mut self,
        query: &str,
        total: Option<u64>,
        mut take: impl FnMut([Option<Term>; 3]),
    ) -> Result<u64, LoadError> {
        let (mut rows, mut page) = (0, self.page);
        let mut tries = 0;
        while total.is_none_or(|total| rows < total) {
            let mut received = 0;
            let paged = format!("{query} LIMIT {page} OFFSET {rows}");
            let asked = self.ask(&paged, &mut |solution| {
                received += 1;
                take(["s", "p", "o"].map(|name| solution.get(name).cloned()));
            });
            rows += received;
            match asked {
                Ok(()) if received == 0 => break,
                Ok(()) => tries = 0,
                Err(error) => {
                    // What came before the failure counts as progress.
                    tries = if received > 0 { 1 } else { tries + 1 };
                    self.pause(error, tries)?;
                    page = (page / 2).max(LEAST_PAGE.min(self.page));
                }
            }
        }
        Ok(rows)
    }

    /// Returns the number that a query counts, or `None` if the endpoint cannot say.
    fn count(&mut self, query: &str) -> Result<Option<u64>, LoadError> {
        let mut count = None;
        match self.ask(query, &mut |solution| count = number(solution.get("n"))) {
            Err(RequestError::TooMuch) => Err(self.too_much()),
            Err(_) => Ok(None),
            Ok(()) => Ok(count),
        }
    }

    /// Returns the properties and numbers that a query counts, or nothing if the endpoint cannot say.
    fn counts(&mut self, query: &str) -> Result<Vec<(String, u64)>, LoadError> {
        let mut counts = Vec::new();
        let asked = self.ask(query, &mut |solution| {
            if let (Some(Term::NamedNode(property)), Some(count)) = (solution.get("p"), number(solution.get("n"))) {
                counts.push((property.as_str().to_owned(), count));
            }
        });
        match asked {
            Err(RequestError::TooMuch) => Err(self.too_much()),
            Err(_) => Ok(Vec::new()),
            Ok(()) => Ok(counts),
        }
    }

    /// Names a few graphs of the endpoint.
    fn graphs(&mut self) -> Vec<String> {
        let mut graphs = Vec::new();
        let query = "SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 3";
        let asked = self.ask(query, &mut |solution| {
            if let Some(Term::NamedNode(graph)) = solution.get("g") {
                graphs.push(graph.as_str().to_owned());
            }
        });
        if asked.is_ok() { graphs } else { Vec::new() }
    }

    fn too_much(&self) -> LoadError {
        LoadError::TooMuch { file: self.file.to_owned(), limit: self.max_bytes.unwrap_or(0) }
    }

    /// Waits before the next try, or gives up.
    fn pause(&self, error: RequestError, tries: u32) -> Result<(), LoadError> {
        match error {
            RequestError::TooMuch => Err(self.too_much()),
            RequestError::Lasting(what) => Err(self.error(what)),
            RequestError::Passing(what, _) if tries >= TRIES => {
                Err(self.error(EndpointError::GaveUp { tries, last: Box::new(what) }))
            }
            RequestError::Passing(_, asked) => {
                sleep(asked.unwrap_or(PAUSE * 2u32.pow(tries.saturating_sub(1))).min(MAX_PAUSE));
                Ok(())
            }
        }
    }

    /// Sends a query, and passes the rows of the answer to `take`.
    fn ask(&mut self, query: &str, take: &mut dyn FnMut(&QuerySolution)) -> Result<(), RequestError> {
        let request = self.agent.post(&self.url).header("Accept", ACCEPT);
        let response = request.send_form([("query", query)]).map_err(|error| {
            let what = EndpointError::Unreachable { reason: error.to_string() };
            match error {
                ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects | ureq::Error::Http(_) => {
                    RequestError::Lasting(what)
                }
                _ => RequestError::Passing(what, None),
            }
        })?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let pause = header("retry-after").and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
        let media_type = header("content-type").unwrap_or_default().to_owned();
        let (mut reader, mut too_much) = (response.into_body().into_reader(), false);
        if !(200..300).contains(&status) {
            let what = EndpointError::Status { status, said: beginning(&mut reader) };
            let passing = matches!(status, 408 | 429 | 500..=599);
            return Err(if passing { RequestError::Passing(what, pause) } else { RequestError::Lasting(what) });
        }
        let format = QueryResultsFormat::from_media_type(&media_type).filter(|f| *f != QueryResultsFormat::Csv);
        let Some(format) = format else {
            let said = beginning(&mut reader);
            return Err(RequestError::Lasting(EndpointError::NoResults { media_type, said }));
        };
        let left = self.max_bytes.map(|most| most.saturating_sub(self.bytes));
        let mut read = 0;
        let counted = CountingReader { reader, read: &mut read, left, too_much: &mut too_much };
        let answer = take_all(format, counted, take);
        self.bytes += read;
        match answer {
            Err(_) if too_much => Err(RequestError::TooMuch),
            answer => answer,
        }
    }
}

/// Passes all rows of an answer to `take`.
fn take_all(
    format: QueryResultsFormat,
    reader: impl Read,
    take: &mut dyn FnMut(&QuerySolution),
) -> Result<(), RequestError> {
    // An answer that is cut short looks like one with a mistake in it.
    let broken = |error: &dyn std::error::Error| {
        RequestError::Passing(EndpointError::Broken { reason: error.to_string() }, None)
    };
    match QueryResultsParser::from_format(format).for_reader(reader) {
        Ok(ReaderQueryResultsParserOutput::Solutions(solutions)) => {
            for solution in solutions {
                take(&solution.map_err(|e| broken(&e))?);
            }
            Ok(())
        }
        Ok(ReaderQueryResultsParserOutput::Boolean(_)) => {
            Err(RequestError::Lasting(EndpointError::Broken { reason: "found yes or no, expected rows".to_owned() }))
        }
        Err(error) => Err(broken(&error)),
    }
}

/// Counts the bytes of an answer, and fails after so many.
struct CountingReader<'a, R> {
    reader: R,
    read: &'a mut u64,
    left: Option<u64>,
    too_much: &'a mut bool,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        *self.read += len as u64;
        if self.left.is_some_and(|left| *self.read > left) {
            *self.too_much = true;
            return Err(io::Error::other("too much"));
        }
        Ok(len)
    }
}

/// Reads the beginning of what an endpoint says, as one line.
fn beginning(reader: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    // What could be read is good enough.
    let _ = reader.take(1 << 10).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn number(term: Option<&Term>) -> Option<u64> {
    match term {
        Some(Term::Literal(literal)) => literal.value().parse().ok(),
        _ => None,
    }
}
