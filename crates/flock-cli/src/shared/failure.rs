//! How a command ends when it does not end well.

use std::error::Error;
use std::io;

use clap::error::ErrorKind;
use flock_kg::calibrate::CalibrationError;
use flock_kg::candidates::{CandidateError, CandidatesError};
use flock_kg::eval::datasets::fetch::FetchError;
use flock_kg::eval::datasets::{DatasetError, DatasetRemedy, Split, UnknownDataset};
use flock_kg::eval::partial::PartialError;
use flock_kg::eval::{EvalError, EvalRemedy};
use flock_kg::graph::{Format, LoadError, Remedy};
use flock_kg::reproduce::{ReproduceError, ReproduceRemedy};
use flock_kg::train::{TrainError, TrainRemedy};
use flock_kg::{AskError, AskRemedy, PredictorError};
use serde::Serialize;

use crate::shared::output::FileError;

/// Why a command stops.
#[derive(Debug)]
pub enum Failure {
    /// Said in one line, status 1.
    Error(String),
    /// The command line of this command contradicts itself, status 2.
    Misuse(&'static str, String),
    /// Everything has been said already, status 1.
    Reported,
    /// Nobody reads our output any more (`… | head`), which is no failure at all.
    PipeClosed,
}

impl Failure {
    /// Says what happened and gives the exit status. `cli` is the whole command line.
    pub fn report(self, mut cli: clap::Command) -> u8 {
        match self {
            Failure::Error(message) => {
                say!("error: {message}");
                1
            }
            Failure::Misuse(name, message) => {
                let misused = cli.find_subcommand_mut(name).expect("it is one of ours");
                let _ = misused.error(ErrorKind::ArgumentConflict, message).print();
                2
            }
            Failure::Reported => 1,
            Failure::PipeClosed => 0,
        }
    }
}

/// Any error as a [`Failure::Error`], with a hint where one is known.
pub fn error(e: impl Error + 'static) -> Failure {
    Failure::Error(message(&e))
}

/// What an error says, and what to do about it in the terms of the command line: libraries do not know of flags.
pub fn message(e: &(dyn Error + 'static)) -> String {
    let mut causes = std::iter::successors(Some(e), |e: &&(dyn Error + 'static)| (*e).source());
    let words = match e.downcast_ref() {
        Some(EvalError::RankColumns { file }) => format!("{file}:1: expected the columns of eval --ranks"),
        _ => e.to_string(),
    };
    words + &causes.find_map(advice).unwrap_or_default()
}

/// What follows the words of an error of a library: `; hint: …` in most cases.
fn advice(e: &(dyn Error + 'static)) -> Option<String> {
    if let Some(e) = e.downcast_ref::<LoadError>() {
        return e.remedy().map(|remedy| hint(Some(&remedy)));
    }
    if let Some(hint) = own_hint(e) {
        return Some(format!("; hint: {hint}"));
    }
    let dataset = |remedy| TrainRemedy::Eval(EvalRemedy::Dataset(remedy));
    let remedy = if let Some(e) = e.downcast_ref::<TrainError>() {
        e.remedy()
    } else if let Some(e) = e.downcast_ref::<EvalError>() {
        e.remedy().map(TrainRemedy::Eval)
    } else if let Some(e) = e.downcast_ref::<PartialError>() {
        e.remedy().map(TrainRemedy::Eval)
    } else if let Some(e) = e.downcast_ref::<DatasetError>() {
        e.remedy().map(dataset)
    } else if let Some(e) = e.downcast_ref::<FetchError>() {
        e.remedy().map(dataset)
    } else {
        e.downcast_ref::<UnknownDataset>().map(|e| dataset(e.remedy()))
    };
    remedy.map(|remedy| match remedy {
        TrainRemedy::Eval(EvalRemedy::Dataset(remedy)) => dataset_advice(&remedy),
        TrainRemedy::Eval(remedy) => format!("; hint: {}", eval_hint(&remedy)),
        remedy => format!("; hint: {}", train_hint(&remedy)),
    })
}

fn train_hint(remedy: &TrainRemedy) -> String {
    match remedy {
        TrainRemedy::StartNew => "leave out --resume to start a run there".to_string(),
        TrainRemedy::SameValue | TrainRemedy::SameGraphs | TrainRemedy::OtherDirectory | TrainRemedy::Wait => {
            format!("{remedy} (--out)")
        }
        other => other.to_string(),
    }
}

fn eval_hint(remedy: &EvalRemedy) -> String {
    match remedy {
        EvalRemedy::OtherFile => "another --out".to_string(),
        EvalRemedy::OtherFileOrOverwrite => "another --out, or --fresh to overwrite it".to_string(),
        EvalRemedy::StartOver => "--fresh to start anew".to_string(),
        EvalRemedy::SameOptions => {
            "the same options to go on with it, --fresh to start anew, or another --out".to_string()
        }
        other => other.to_string(),
    }
}

fn dataset_advice(remedy: &DatasetRemedy) -> String {
    let hint = match remedy {
        DatasetRemedy::Resume => return ", the same command goes on from there".to_string(),
        // The words before it are a list.
        DatasetRemedy::Accept { kept } => {
            let again = kept.as_ref().map(|dir| format!(", or remove {dir} to download it again"));
            return format!("\nhint: --accept to keep it all the same{}", again.unwrap_or_default());
        }
        DatasetRemedy::OtherSource => "--from URL or DIR that has it as published, or try again later".to_string(),
        DatasetRemedy::PredictOther(Split::Valid) => "--split valid".to_string(),
        DatasetRemedy::PredictOther(Split::Test) => "--split test, or leave it out of validation.extra".to_string(),
        DatasetRemedy::AddTriples(Split::Test) => {
            "put triples to predict into test.txt, tab-separated like train.txt".to_string()
        }
        DatasetRemedy::AddTriples(Split::Valid) => format!("{remedy}, or leave it out of validation.extra"),
        DatasetRemedy::ListNames => "flock-kg datasets lists all".to_string(),
        DatasetRemedy::Fetch { name } => format!("flock-kg datasets fetch {name} --data DIR, or another --data"),
        DatasetRemedy::CheckOrRemove => {
            "flock-kg datasets --data DIR checks it; remove it to fetch it again".to_string()
        }
        DatasetRemedy::NameSource { path, name, part } => {
            format!("--from URL or DIR that has {path}, or {name}/{part}.txt in the layout itself")
        }
        other => other.to_string(),
    };
    format!("; hint: {hint}")
}

/// What to do about an error of the library, in the terms of the command line.
fn own_hint(e: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(e) = e.downcast_ref::<AskError>() {
        // An error that stands for another has no source of its own to look at.
        if let AskError::Predictor(e) = e {
            return own_hint(&**e);
        }
        if let AskError::Candidate(e) = e {
            return own_hint(e);
        }
        return match e.remedy()? {
            AskRemedy::AddBlank => Some("put '?' (quoted, or the shell may expand it) where the answer goes"),
            AskRemedy::NameTheOthers => Some("name the other two"),
            AskRemedy::NameAllThree => Some("name head, relation and tail; --blank says which is the answer"),
            AskRemedy::OtherModel(_) => Some("give --model one trained for that task"),
            _ => None,
        };
    }
    if let Some(e) = e.downcast_ref::<ReproduceError>() {
        return match e.remedy()? {
            ReproduceRemedy::List => Some("flock-kg reproduce lists all"),
            ReproduceRemedy::UseOption => {
                Some("of Petals --set epochs=N; of others --steps, --minutes, --threads, --train-on")
            }
            ReproduceRemedy::NameData => {
                Some("--data DIR has datasets by name; flock-kg datasets fetch brings them there")
            }
            _ => None,
        };
    }
    if let Some(e) = e.downcast_ref::<PredictorError>() {
        return match e {
            PredictorError::SameTask { .. } => Some("give --model twice, once for each task"),
            PredictorError::Threads { .. } => Some("--threads"),
            PredictorError::NoModel => Some("--model FILE"),
            PredictorError::Calibration(e) => own_hint(&**e),
            _ => None,
        };
    }
    if let Some(e) = e.downcast_ref::<CalibrationError>() {
        return match e {
            CalibrationError::Ask(e) => own_hint(&**e),
            CalibrationError::TooFew { .. } => Some("--queries, --top"),
            CalibrationError::Format { .. } => Some("run calibrate again, or remove the file"),
            _ => None,
        };
    }
    if let Some(e) = e.downcast_ref::<CandidateError>() {
        return match e {
            CandidateError::Nothing { .. } => {
                Some("leave one of --among, --among-type, --among-range, --among-domain out")
            }
            CandidateError::NotRelations { .. } => {
                Some("ask for a head or a tail, or leave --among-type, --among-range and --among-domain out")
            }
            _ => None,
        };
    }
    match e.downcast_ref::<CandidatesError>()? {
        CandidatesError::LongList { .. } => Some("leave --among out to rank all"),
        _ => None,
    }
}

/// `; hint: …`, or nothing.
pub fn hint(remedy: Option<&Remedy>) -> String {
    let Some(remedy) = remedy else { return String::new() };
    let text = match remedy {
        Remedy::CheckPath => "check the path, or name - for standard input".to_string(),
        Remedy::ToUtf8 { from } => format!("iconv -f {from} -t UTF-8"),
        Remedy::FromJson => "jq -c '.[]' makes lines of an array; or name the --format".to_string(),
        Remedy::SayHeader => "--header if it is, --no-header if it is a triple".to_string(),
        Remedy::NameFormat => format!("--format {}", Format::words()),
        Remedy::Format { format, why } => format!("--format {format} ({why})"),
        Remedy::Columns { columns, names, or_quote } => {
            let quote = if *or_quote { ", or quote names that contain commas" } else { "" };
            // A shell takes a name with spaces apart.
            let chosen = Remedy::chosen(*columns, names).to_string();
            let plain = |c: char| c.is_alphanumeric() || ",_-.:".contains(c);
            let chosen =
                if chosen.chars().all(plain) { chosen } else { format!("'{}'", chosen.replace('\'', "'\\''")) };
            match &names[..] {
                [] => format!("--columns {chosen}{quote}"),
                names => format!("this file has columns {}: try --columns {chosen}{quote}", names.join(", ")),
            }
        }
        Remedy::FewerColumns => "--columns counts from 1".to_string(),
        Remedy::NameKeys => "--columns with the keys of head, relation and tail".to_string(),
        Remedy::AddEdges => "name a file of edges too, with --with FILE".to_string(),
        Remedy::NoColumns => {
            "leave --columns and --header out, or give --format tsv or csv if it is one of these".to_string()
        }
        Remedy::SmallerPages => "a smaller --page-size, or try again later".to_string(),
        Remedy::FillOrSkip => "fill it in, or leave such rows out with --lenient".to_string(),
        other => other.to_string(),
    };
    format!("; hint: {text}")
}

/// One line of JSON.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(error)
}

/// The only bare I/O errors in this program are those of standard output and of `--out`.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            _ if e.get_ref().is_some_and(|e| e.is::<FileError>()) => Failure::Error(e.to_string()),
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Error(format!("cannot write to standard output: {e}")),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Error(message)
    }
}

#[cfg(test)]
mod tests {
    use flock_kg::eval::datasets::Part;
    use flock_kg::graph::{LoadOptions, load_reader};
    use flock_kg::train::StateError;
    use flock_kg::train::data::DataError;

    use super::*;

    /// The whole line for every kind of remedy, as people have seen it since the first release.
    #[test]
    fn remedies_are_said_as_flags() {
        let plain = LoadOptions::default();
        let columns = LoadOptions { columns: Some([3, 0, 1].into()), ..plain.clone() };
        let cases: [(&str, &[u8], &LoadOptions, &str); 16] = [
            ("g.tsv", b"a\tb\tc\td\n", &plain, "expected 3 tab-separated fields, found 4; hint: --columns 1,2,3"),
            (
                "g.csv",
                b"a,b,c,d\n",
                &plain,
                "expected 3 comma-separated fields, found 4; hint: --columns 1,2,3, or quote names that contain commas",
            ),
            (
                "g.csv",
                b"a,b,c\n",
                &columns,
                "expected at least 4 comma-separated fields, found 3; hint: --columns counts from 1",
            ),
            (
                "g.tsv",
                b"a\tb\n",
                &plain,
                "expected 3 tab-separated fields, found 2; hint: a triple needs a relation too: head, relation, tail",
            ),
            (
                "g.tsv",
                b"a,b,c\n",
                &plain,
                "expected 3 tab-separated fields, found 1; hint: --format csv (the line has commas)",
            ),
            (
                "g.tsv",
                b"<a:b> <a:c> <a:d> .\n",
                &plain,
                "expected 3 tab-separated fields, found 1; hint: --format nt (the line looks like N-Triples)",
            ),
            (
                "g.csv",
                b"a\tb\tc\n",
                &plain,
                "expected 3 comma-separated fields, found 1; hint: --format tsv (the line has tabs)",
            ),
            (
                "g.tsv",
                b"a\t\tc\n",
                &plain,
                "field 2 is empty, expected the name of a relation; hint: fill it in, or leave such rows out with --lenient",
            ),
            (
                "g.tsv",
                b"caf\xe9\tb\tc\n",
                &plain,
                "invalid UTF-8 at byte 4 of the line, expected UTF-8 text; hint: iconv -f LATIN1 -t UTF-8",
            ),
            ("g.tsv", b"\xff\xfea\0", &plain, "found UTF-16 text, expected UTF-8; hint: iconv -f UTF-16 -t UTF-8"),
            (
                "g.csv",
                b"a,\"b,c\n",
                &plain,
                "a quote is opened and never closed, expected a closing \"; hint: write a quote inside a name as \"\"",
            ),
            (
                "g.ttl",
                b"<a:b> <a:c> <d> .\n",
                &plain,
                "No scheme found in an absolute IRI; hint: declare a base IRI (@base in Turtle, xml:base in RDF/XML)",
            ),
            (
                "g.nt",
                b"<a:b> <a:c> <a:d> .\n",
                &columns,
                "is nt, which has no columns and no header; hint: leave --columns and --header out, or give --format tsv or \
                 csv if it is one of these",
            ),
            (
                "graph",
                b"a b c\n",
                &plain,
                "cannot tell the format from the name or the first line; hint: --format tsv, csv, jsonl, parquet, arrow, nt, nq, ttl, \
                 trig, rdfxml, jsonld, obo or graphml",
            ),
            ("g.tsv", b"PK\x03\x04..", &plain, "found zip data, expected text, gzip or zstd; hint: unpack it first"),
            (
                "g.tsv",
                b"",
                &plain,
                "no triples, expected at least one: 0 rows read, 0 literals and 0 bad rows left out",
            ),
        ];
        for (name, content, options, want) in cases {
            let said = message(&load_reader(name, content, options).unwrap_err());
            let (place, what) = said.split_once(": ").unwrap();
            assert!(place == name || place == format!("{name}:1"), "{said}");
            assert_eq!(what, want);
        }
    }

    /// The same for datasets, evaluations and training runs: flags stand here, none in the words of the libraries.
    #[test]
    fn advice_names_flags_and_library_errors_do_not() {
        let text = |s: &str| s.to_string();
        let (dir, file) = (text("d"), text("f"));
        let nothing = |split, other| DatasetError::NothingToPredict { dir: text("d"), split, other };
        let evaluations: Vec<(EvalError, &str)> = vec![
            (nothing(Split::Test, true).into(), "; hint: --split valid"),
            (
                nothing(Split::Test, false).into(),
                "; hint: put triples to predict into test.txt, tab-separated like train.txt",
            ),
            (nothing(Split::Valid, true).into(), "; hint: --split test, or leave it out of validation.extra"),
            (
                nothing(Split::Valid, false).into(),
                "; hint: put triples to predict into valid.txt, or leave it out of validation.extra",
            ),
            (
                DatasetError::Missing { dir: dir.clone(), name: text("HM_1k") }.into(),
                "; hint: flock-kg datasets fetch HM_1k --data DIR, or another --data",
            ),
            (
                DatasetError::Unknown(UnknownDataset { name: text("x"), near: Vec::new() }).into(),
                "; hint: flock-kg datasets lists all",
            ),
            (PartialError::Busy { file: file.clone() }.into(), "; hint: another --out"),
            (PartialError::Content { file: file.clone() }.into(), "; hint: another --out, or --fresh to overwrite it"),
            (PartialError::Version { file: file.clone(), found: 1 }.into(), "; hint: --fresh to start anew"),
            (
                PartialError::Other { file: file.clone(), dataset: text("x"), difference: text("y") }.into(),
                "; hint: the same options to go on with it, --fresh to start anew, or another --out",
            ),
        ];
        for (e, advice) in evaluations {
            assert_eq!(message(&e), format!("{e}{advice}"));
            assert!(!e.to_string().contains("--") && !e.remedy().unwrap().to_string().contains("--"));
        }
        let fetched: Vec<(FetchError, &str)> = vec![
            (
                FetchError::Exists { dir: dir.clone() },
                "; hint: flock-kg datasets --data DIR checks it; remove it to fetch it again",
            ),
            (
                FetchError::NotFound { tried: vec![text("u")], path: text("p"), name: text("HM_1k"), part: Part::Test },
                "; hint: --from URL or DIR that has p, or HM_1k/test.txt in the layout itself",
            ),
            (FetchError::Http { url: text("u"), reason: text("r") }, ", the same command goes on from there"),
            (
                FetchError::Differs { name: text("x"), differences: vec![text("y")], suspicions: vec![], kept: None },
                "\nhint: --accept to keep it all the same",
            ),
            (
                FetchError::Differs {
                    name: text("x"),
                    differences: vec![text("y")],
                    suspicions: vec![],
                    kept: Some(text("kg/.fetch/x")),
                },
                "\nhint: --accept to keep it all the same, or remove kg/.fetch/x to download it again",
            ),
            (
                FetchError::Row { file: text("f"), line: 1, found: 2 },
                "; hint: --from URL or DIR that has it as published, or try again later",
            ),
        ];
        for (e, advice) in fetched {
            assert_eq!(message(&e), format!("{e}{advice}"));
            assert!(!e.to_string().contains("--") && !e.remedy().unwrap().to_string().contains("--"));
        }
        let (old, new) = (serde_json::json!(1), serde_json::json!(2));
        let runs: Vec<(TrainError, &str)> = vec![
            (
                TrainError::NotFinite { step: 2, what: "loss", graph: text("g"), query: text("q") },
                "; hint: a lower optimiser.rate, or optimiser.clip = 1",
            ),
            (
                TrainError::Changed { dir: dir.clone(), key: text("seed"), old, new },
                "; hint: the same value to go on with it, or another directory (--out)",
            ),
            (
                TrainError::OtherGraph { dir: dir.clone(), old: text("a"), new: text("b") },
                "; hint: the same graphs, or another directory (--out)",
            ),
            (TrainError::NoState { dir: dir.clone() }, "; hint: leave out --resume to start a run there"),
            (TrainError::Foreign { dir: dir.clone(), file: "metrics.jsonl" }, "; hint: another directory (--out)"),
            (
                TrainError::Occupied { dir: dir.clone(), file: file.clone() },
                "; hint: another directory, or remove what is there",
            ),
            (TrainError::Locked { dir }, "; hint: wait for it, or another directory (--out)"),
            (StateError::Checksum { file }.into(), "; hint: remove it to start anew"),
            (DataError::State { found: 1, expected: 2 }.into(), "; hint: resume with the same graphs"),
            (DataError::Counts.into(), "; hint: the file it comes from is damaged"),
            (TrainError::Eval(nothing(Split::Test, true).into()), "; hint: --split valid"),
        ];
        for (e, advice) in runs {
            assert_eq!(message(&e), format!("{e}{advice}"));
            assert!(!e.to_string().contains("--") && !e.remedy().unwrap().to_string().contains("--"));
        }
    }
}
