//! Reads Turtle and TriG. The parser gets small pieces, so that what it holds stays within limits.
//!
//! Three things let a short file fill the memory: open brackets (each is an unfinished statement),
//! prefixes and bases (each is copied), and names (each is written out in full). A
//! [`BracketScanner`] counts brackets before the parser sees them. Declarations are measured after
//! every piece. An [`ExpansionBudget`] counts the names.

use super::{ExpansionBudget, StatementSink, declare, row_error};
use crate::prefixes::Prefixes;
use crate::read::Format;
use crate::read::LoadOptions;
use crate::read::error::{LoadError, RowError};
use crate::read::rows::{MAX_NAME, MAX_ROW};
use crate::read::source::Source;
use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use oxttl::trig::LowLevelTriGParser;
use oxttl::turtle::LowLevelTurtleParser;
use oxttl::{TriGParser, TurtleParser, TurtleSyntaxError};
use std::io::Read;

/// Number of bytes that the parser gets at a time. Its output for a piece can be checked only after
/// the whole piece.
const PIECE: usize = 32 << 10;

/// Greatest number of open brackets.
pub(crate) const MAX_DEPTH: usize = 1024;

/// Greatest number of prefixes.
const MAX_PREFIXES: usize = 4096;

/// Greatest length of all namespaces together, in bytes.
const MAX_NAMESPACES: usize = 4 << 20;

/// Length above which a name is counted even if the statement before has the same name.
const CHEAP: usize = 1 << 10;

/// Passes every statement to `statements`.
pub(crate) fn read(
    source: &mut Source<'_>,
    options: &LoadOptions,
    statements: &mut StatementSink<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), LoadError> {
    let mut reader = source.take_reader();
    let mut parser = match source.format {
        Format::TriG => Parser::TriG(TriGParser::new().low_level()),
        _ => Parser::Turtle(TurtleParser::new().low_level()),
    };
    let (mut scanner, mut names) = (BracketScanner::new(), NameCounter::default());
    let (mut piece, mut held) = (Vec::with_capacity(PIECE), Vec::new());
    loop {
        piece.clear();
        let len = reader.by_ref().take(PIECE as u64).read_to_end(&mut piece).map_err(|e| source.failed(e))?;
        scanner.follow(&piece).map_err(|what| source.row(scanner.line, what))?;
        names.budget.read += len as u64;
        held.extend_from_slice(&piece);
        // The parser restarts an unfinished token with every piece. So a long token gets pieces of
        // doubling size.
        if len > 0 && held.len() < scanner.token / 2 {
            continue;
        }
        parser.extend_from_slice(&held);
        held.clear();
        if len == 0 {
            parser.end();
        }
        while let Some(quad) = parser.parse_next() {
            match quad {
                Ok(quad) => {
                    names.count(&quad).map_err(|what| source.row(scanner.line, what))?;
                    statements.quad(source, options, || scanner.line, &quad)?;
                }
                // The parser continues with the next statement.
                Err(error) => {
                    let line = error.location().start.line + 1;
                    statements.bad(source, options, line, row_error(&error))?;
                }
            }
        }
        declared(&parser).map_err(|what| source.row(scanner.line, what))?;
        if len == 0 {
            declare(prefixes, parser.prefixes());
            return Ok(());
        }
    }
}

/// A parser of Turtle or TriG.
enum Parser {
    Turtle(LowLevelTurtleParser),
    TriG(LowLevelTriGParser),
}

impl Parser {
    fn extend_from_slice(&mut self, bytes: &[u8]) {
        match self {
            Parser::Turtle(parser) => parser.extend_from_slice(bytes),
            Parser::TriG(parser) => parser.extend_from_slice(bytes),
        }
    }

    fn end(&mut self) {
        match self {
            Parser::Turtle(parser) => parser.end(),
            Parser::TriG(parser) => parser.end(),
        }
    }

    fn parse_next(&mut self) -> Option<Result<Quad, TurtleSyntaxError>> {
        match self {
            Parser::Turtle(parser) => {
                parser.parse_next().map(|triple| triple.map(|t| t.in_graph(GraphName::DefaultGraph)))
            }
            Parser::TriG(parser) => parser.parse_next(),
        }
    }

    fn prefixes(&self) -> Box<dyn Iterator<Item = (&str, &str)> + '_> {
        match self {
            Parser::Turtle(parser) => Box::new(parser.prefixes()),
            Parser::TriG(parser) => Box::new(parser.prefixes()),
        }
    }

    fn base_iri(&self) -> Option<&str> {
        match self {
            Parser::Turtle(parser) => parser.base_iri(),
            Parser::TriG(parser) => parser.base_iri(),
        }
    }
}

/// Refuses too many declarations, because the parser keeps a copy of each.
fn declared(parser: &Parser) -> Result<(), RowError> {
    let (mut count, mut bytes) = (0, parser.base_iri().map_or(0, str::len));
    for (_, namespace) in parser.prefixes() {
        count += 1;
        bytes += namespace.len();
    }
    if count > MAX_PREFIXES {
        return Err(RowError::TooMany { what: "prefixes", limit: MAX_PREFIXES });
    }
    if bytes > MAX_NAMESPACES {
        return Err(RowError::TooMany { what: "bytes of namespaces", limit: MAX_NAMESPACES });
    }
    Ok(())
}

/// Counts names as they are written in the file: a subject or property with many objects is written
/// once.
#[derive(Default)]
struct NameCounter {
    budget: ExpansionBudget,
    head: String,
    relation: String,
    graph: String,
}

impl NameCounter {
    fn count(&mut self, quad: &Quad) -> Result<(), RowError> {
        let mut bytes = match &quad.object {
            Term::NamedNode(node) => node.as_str().len(),
            Term::BlankNode(_) => 0,
            Term::Literal(literal) => literal.datatype().as_str().len(),
            Term::Triple(triple) => triple.to_string().len(),
        };
        if let NamedOrBlankNode::NamedNode(node) = &quad.subject {
            bytes += once(&mut self.head, node.as_str());
        }
        bytes += once(&mut self.relation, quad.predicate.as_str());
        if let GraphName::NamedNode(node) = &quad.graph_name {
            bytes += once(&mut self.graph, node.as_str());
        }
        self.budget.spend(bytes)
    }
}

/// Returns the cost of a name. It is free if it is repeated from the statement before.
fn once(last: &mut String, name: &str) -> usize {
    if name.len() > CHEAP {
        return name.len();
    }
    if last == name {
        return 0;
    }
    last.clear();
    last.push_str(name);
    name.len()
}

/// Follows strings, IRIs and comments, to find the brackets between them.
///
/// It agrees with the parser up to the first error. What follows an error is read only in lenient
/// mode, which is not for files from strangers.
struct BracketScanner {
    place: ScannerState,
    /// Number of open brackets.
    depth: usize,
    /// Length of the current token so far, in bytes.
    token: usize,
    /// The line, from 1.
    line: u64,
}

/// What the scanner is in the middle of.
#[derive(Copy, Clone)]
enum ScannerState {
    /// Between tokens or in a name or number.
    Plain,
    /// After a backslash in a name.
    Escape,
    /// After a `<`, which opens an IRI or, with another one, a quoted triple.
    Angle,
    Iri,
    Comment,
    /// After one or two quotes that may open a string: the quote character and their number.
    Quotes(u8, u8),
    /// In a string with single delimiters: the quote character, and whether a backslash came last.
    Short(u8, bool),
    /// In a string with triple delimiters: the quote character, the number of quotes just seen, and
    /// whether a backslash came last.
    Long(u8, u8, bool),
}

impl BracketScanner {
    fn new() -> BracketScanner {
        BracketScanner { place: ScannerState::Plain, depth: 0, token: 0, line: 1 }
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<(), RowError> {
        for &byte in bytes {
            self.line += u64::from(byte == b'\n');
            self.token += 1;
            self.place = match self.place {
                ScannerState::Plain => self.plain(byte)?,
                ScannerState::Escape => ScannerState::Plain,
                // The two brackets count one each, as those at the end do.
                ScannerState::Angle if byte == b'<' => self.open(2)?,
                ScannerState::Angle | ScannerState::Iri if byte == b'>' => self.between(),
                ScannerState::Comment if matches!(byte, b'\n' | b'\r') => self.between(),
                ScannerState::Quotes(quote, 1) if byte == quote => ScannerState::Quotes(quote, 2),
                ScannerState::Quotes(quote, 1) => ScannerState::Short(quote, byte == b'\\'),
                ScannerState::Quotes(quote, _) if byte == quote => ScannerState::Long(quote, 0, false),
                // Two quotes were an empty string.
                ScannerState::Quotes(..) => self.plain(byte)?,
                ScannerState::Short(quote, true) => ScannerState::Short(quote, false),
                ScannerState::Short(quote, false) if byte == quote => self.between(),
                ScannerState::Short(quote, false) => ScannerState::Short(quote, byte == b'\\'),
                ScannerState::Long(quote, _, true) => ScannerState::Long(quote, 0, false),
                ScannerState::Long(quote, 2, false) if byte == quote => self.between(),
                ScannerState::Long(quote, quotes, false) if byte == quote => {
                    ScannerState::Long(quote, quotes + 1, false)
                }
                ScannerState::Long(quote, _, false) => ScannerState::Long(quote, 0, byte == b'\\'),
                ScannerState::Angle | ScannerState::Iri => ScannerState::Iri,
                ScannerState::Comment => ScannerState::Comment,
            };
            let (limit, error) = match self.place {
                ScannerState::Plain | ScannerState::Escape | ScannerState::Angle | ScannerState::Iri => {
                    (MAX_NAME, RowError::LongName)
                }
                _ => (MAX_ROW, RowError::TooLong),
            };
            if self.token > limit {
                return Err(error);
            }
        }
        Ok(())
    }

    fn between(&mut self) -> ScannerState {
        self.token = 0;
        ScannerState::Plain
    }

    fn open(&mut self, brackets: usize) -> Result<ScannerState, RowError> {
        self.depth += brackets;
        if self.depth > MAX_DEPTH {
            return Err(RowError::TooMany { what: "open brackets", limit: MAX_DEPTH });
        }
        Ok(self.between())
    }

    fn plain(&mut self, byte: u8) -> Result<ScannerState, RowError> {
        let place = match byte {
            b'<' => ScannerState::Angle,
            b'#' => ScannerState::Comment,
            b'"' | b'\'' => ScannerState::Quotes(byte, 1),
            b'\\' => return Ok(ScannerState::Escape),
            b'[' | b'(' | b'{' => self.open(1)?,
            b']' | b')' | b'}' | b'>' => {
                self.depth = self.depth.saturating_sub(1);
                ScannerState::Plain
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b';' => ScannerState::Plain,
            _ => return Ok(ScannerState::Plain),
        };
        self.token = 0;
        Ok(place)
    }
}
