//! What goes wrong is said in one line on standard error, with status 1; misuse has status 2. Nothing goes to standard output.

mod common;

use common::Place;

/// Runs, expects status 1 and exactly this line.
#[track_caller]
fn fails(place: &Place, args: &[&str], message: &str) {
    let ran = place.run(args);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(1), "", format!("error: {message}\n").as_str()));
}

/// Runs, expects status 2 and this at the beginning of standard error.
#[track_caller]
fn misuse(place: &Place, args: &[&str], message: &str) {
    let ran = place.run(args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.starts_with(&format!("error: {message}")), "{}", ran.err);
}

#[test]
fn graph_files() {
    let place = Place::new();
    place.write("empty.tsv", "");
    place.write("two.tsv", "Lisbon\tPortugal\n");
    place.write("latin.tsv", b"Lisbon\tin\tPortugal\nS\xe3o Paulo\tin\tBrazil\n");
    std::fs::create_dir(place.path("none")).unwrap();
    place.write("none/README.md", "a, b, c\n");
    for command in [["predict", "FILE", "a", "b", "?"].as_slice(), &["info", "FILE"]] {
        let with = |file| command.iter().map(|a| if *a == "FILE" { file } else { *a }).collect::<Vec<&str>>();
        fails(&place, &with("nope.tsv"), "nope.tsv: no such file; hint: check the path, or name - for standard input");
        let ran = place.run(&with("none"));
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.starts_with("error: none: is a directory, expected a graph file"), "{}", ran.err);
        let ran = place.run(&with("empty.tsv"));
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.starts_with("error: empty.tsv: no triples, expected at least one"), "{}", ran.err);
        let message = "two.tsv:1: expected 3 tab-separated fields, found 2; \
                       hint: a triple needs a relation too: head, relation, tail";
        fails(&place, &with("two.tsv"), message);
        let ran = place.run(&with("latin.tsv"));
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.starts_with("error: latin.tsv:2: invalid UTF-8 at byte 2"), "{}", ran.err);
        assert!(ran.err.lines().count() == 1);
    }
}

#[test]
fn endpoints() {
    let place = Place::new();
    let ask = |address: &str, message: &str| fails(&place, &["info", address], message);
    ask("sparql:localhost", "sparql:localhost: expected an address such as sparql:http://localhost:7878/query");
    ask("sparql:http://localhost/#g", "sparql:http://localhost/#g: expected #graph=IRI, or nothing, after the address");
}

#[test]
fn names() {
    let place = Place::new();
    let predict = |texts: [&'static str; 3]| place.predict(&texts);
    let ran = predict(["Portgual", "borders", "?"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!(ran.err, "error: unknown entity \"Portgual\"; near names: \"Portugal\"\n");
    let ran = predict(["?", "border", "Spain"]);
    assert_eq!(ran.err, "error: unknown relation \"border\"; near names: \"borders\"\n");
    let ran = predict(["Spain", "Portugal", "?"]);
    assert!(ran.err.starts_with("error: unknown relation \"Portugal\" (that is the name of an entity)"), "{}", ran.err);
}

#[test]
fn questions() {
    let place = Place::new();
    let one = "expected one ? among head, relation and tail, found ";
    // The graph does not even have to be there.
    misuse(&place, &["predict", "nope.tsv", "Portugal", "borders", "Spain"], &format!("{one}none"));
    misuse(&place, &["predict", "nope.tsv", "?", "borders", "?"], &format!("{one}2"));
    misuse(&place, &["predict", "world.tsv", "Portugal", "borders"], "the following required arguments");
    misuse(&place, &["predict", "world.tsv"], "the following required arguments");
    misuse(
        &place,
        &["predict", "world.tsv", "a", "b", "?", "--queries", "q.tsv"],
        "the argument '[HEAD]' cannot be used with '--queries <FILE>'",
    );
    misuse(&place, &["predict", "-", "--queries", "-"], "only one of GRAPH, --queries and --among");
}

#[test]
fn options() {
    let place = Place::new();
    let with = |extra: &[&'static str]| [&["predict", "world.tsv", "Portugal", "borders", "?"], extra].concat();
    misuse(
        &place,
        &with(&["--threads", "0"]),
        "invalid value '0' for '--threads <N>': expected a number from 1 to 1024",
    );
    misuse(&place, &with(&["--walks", "0"]), "invalid value '0' for '--walks <N>'");
    misuse(&place, &with(&["--passes", "0"]), "invalid value '0' for '--passes <P>'");
    misuse(&place, &with(&["--precision", "f16"]), "invalid value 'f16' for '--precision <PRECISION>'");
    misuse(
        &place,
        &with(&["--columns", "1,2"]),
        "invalid value '1,2' for '--columns <H,R,T>': expected three different",
    );
    misuse(&place, &with(&["--columns", "0,1,2"]), "invalid value '0,1,2'");
    misuse(&place, &with(&["--columns", "1,1,2"]), "invalid value '1,1,2'");
    misuse(
        &place,
        &with(&["--language", "en,d e"]),
        "invalid value 'd e' for '--language <TAGS>': expected language tags",
    );
    misuse(&place, &with(&["--page-size", "0"]), "invalid value '0'");
    misuse(&place, &with(&["--header", "--no-header"]), "the argument '--header' cannot be used with '--no-header'");
    let explain = ["explain", "world.tsv", "Portugal", "borders", "Spain"];
    for flag in ["--top", "--updates", "--hide"] {
        misuse(&place, &[&explain[..], &[flag, "0"]].concat(), "invalid value '0' for '");
    }
    misuse(&place, &["serve", "--edits", "e.redb"], "the following required arguments were not provided:\n  <GRAPH>");
    misuse(&place, &["serve", "--columns", "1,2,3"], "--format, --columns, --header");
    misuse(&place, &["serve", "--token", ""], "a value is required for '--token <TOKEN>'");
    misuse(&place, &["serve", "--queue", "18446744073709551615"], "invalid value '18446744073709551615'");
    misuse(&place, &["serve", "--deadline", "0s"], "invalid value '0s' for '--deadline <TIME>'");
    misuse(&place, &with(&["--frobnicate"]), "unexpected argument '--frobnicate'");
    misuse(&place, &["frobnicate"], "unrecognized subcommand 'frobnicate'");
    let ran = place.command(&with(&[])).env("FLOCK_SIMD", "mmx").output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).starts_with("error: FLOCK_SIMD: "), "{ran:?}");
}

#[test]
fn models() {
    let place = Place::new();
    let ask = |texts: [&'static str; 3], models: &[&'static str]| {
        let models = models.iter().flat_map(|m| ["--model", m]);
        ["predict", "world.tsv"].into_iter().chain(texts).chain(models).collect::<Vec<&str>>()
    };
    let tail = ["Portugal", "borders", "?"];
    fails(
        &place,
        &ask(["Portugal", "?", "Spain"], &["entity.safetensors"]),
        "entity.safetensors: this is an entity model: it cannot answer (head, ?, tail); \
         hint: give --model one trained for that task",
    );
    fails(
        &place,
        &ask(tail, &["relation.safetensors"]),
        "relation.safetensors: this is a relation model: it cannot answer (head, relation, ?); \
         hint: give --model one trained for that task",
    );
    fails(
        &place,
        &ask(tail, &["entity.safetensors", "entity.safetensors"]),
        "entity.safetensors and entity.safetensors are both entity models, expected one of each task; hint: give --model twice, once for each task",
    );
    for (file, begins) in [("world.tsv", "world.tsv: not a safetensors file: "), ("nope", "nope: "), (".", ".: ")] {
        let ran = place.run(&ask(tail, &[file]));
        assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
        assert!(ran.err.starts_with(&format!("error: {begins}")), "{}", ran.err);
    }
    let ran = place.run(&["import", "world.tsv", "out.safetensors"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("error: world.tsv: not a PyTorch zip file"), "{}", ran.err);
    assert!(!place.path("out.safetensors").exists());
}

#[test]
fn among() {
    let place = Place::new();
    let with = |file| place.predict(&["Portugal", "borders", "?", "--among", file]);
    // Unknown names are skipped and counted; if all are unknown, the first is told with names near it.
    place.write("typo.txt", "Spain\n\nFrnace\nx\n");
    let ran = with("typo.txt");
    assert_eq!(ran.err, "warning: typo.txt: the graph lacks 2 of the names, skipped: \"Frnace\", \"x\"\n");
    assert_eq!(ran.code, Some(0));
    place.write("typos.txt", "\nFrnace\nx\n");
    let ran = with("typos.txt");
    let unknown = "typos.txt:2: unknown entity \"Frnace\"; near names: \"France\"";
    assert_eq!(ran.err, format!("error: {unknown}; none of the 2 candidates is known\n"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    place.write("blank.txt", "\n \n");
    assert_eq!(with("blank.txt").err, "error: blank.txt: no names, expected one per line\n");
    place.write("latin.txt", b"Spain\nS\xe3o Paulo\n");
    assert_eq!(with("latin.txt").err, "error: latin.txt:2: invalid UTF-8, expected one name per line\n");
    assert!(with("nope.txt").err.starts_with("error: nope.txt: cannot read: "));
    // A byte order mark, Windows line ends, a name twice, and no line end at the end.
    place.write("windows.txt", "\u{feff}Spain\r\nSpain\r\n\r\nFrance");
    assert_eq!(with("windows.txt").code, Some(0));
}

#[test]
fn conditions_on_candidates() {
    let place = Place::new();
    let error = |args: &[&str]| {
        let ran = place.predict(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        ran.err
    };
    let ask = ["Portugal", "borders", "?"];
    let with = |args: &[&str]| error(&[&ask[..], args].concat());
    assert_eq!(
        with(&["--among-type", "Europe"]),
        "error: \"Europe\": expected RELATION=VALUE, such as instance_of=city\n"
    );
    assert!(with(&["--among-range", "border"]).contains("unknown relation \"border\"; near names: \"borders\""));
    let none = with(&["--among-type", "in=Europe", "--among-domain", "capital_of"]);
    assert!(none.starts_with("error: no entity of the graph is a candidate: expected at least one"), "{none}");
    assert!(none.contains("with in = Europe and that are heads of capital_of; hint: leave one of"), "{none}");
    let relation = error(&["Portugal", "?", "Spain", "--among-range", "in"]);
    assert!(relation.starts_with("error: the question asks for a relation"), "{relation}");
}

/// Files without an end, or of one long line, are given up in good time and little memory.
#[cfg(unix)]
#[test]
fn endless_files() {
    let place = Place::new();
    let ran = place.predict(&["Portugal", "borders", "?", "--among", "/dev/zero"]);
    assert_eq!(ran.err, "error: /dev/zero:1: found a line of more than 64 KiB, expected one name per line\n");
    let rule = "found more than 1 MiB without the end of a row, expected head, relation and tail\n";
    let ran = place.predict(&["--queries", "/dev/zero"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert_eq!(ran.err, format!("error: /dev/zero:1: {rule}"));
    // What came before is answered; a quote that is never closed and blank lines are no way around.
    for (name, start, fill) in [
        ("q.tsv", "Portugal\tborders\t?\n", "x"),
        ("q.csv", "Portugal,borders,?\n\"", "\n"),
        ("b.tsv", "Portugal\tborders\t?\n", "\n"),
    ] {
        place.write(name, format!("{start}{}", fill.repeat(4 << 20)));
        let ran = place.predict(&["--queries", name, "--json"]);
        assert_eq!((ran.code, ran.json().len()), (Some(1), 1), "{}", ran.err);
        assert!(ran.err.ends_with(rule), "{}", ran.err);
    }
    let ran = place.run(&["info", "/dev/zero", "--format", "tsv"]);
    assert_eq!(ran.err, "error: /dev/zero:1: found a row of more than 16 MiB, expected one triple per line\n");
}

/// What a file has in it is shown without what would steer a terminal, and not all of it.
#[test]
fn what_is_shown_of_a_file() {
    let place = Place::new();
    place.write("q.tsv", format!("{}\u{1b}[31m\tborders\t?\n", "x".repeat(5000)));
    let ran = place.predict(&["--queries", "q.tsv"]);
    let (start, end) = ("x".repeat(120), "x".repeat(55));
    assert!(
        ran.err.starts_with(&format!("error: q.tsv:1: unknown entity \"{start}…{end}\\u{{1b}}[31m\"; ")),
        "{}",
        ran.err
    );
    place.write("g.ttl", format!("<a:b> <a:c> {}\u{1b} .\n", "x".repeat(5000)));
    let ran = place.run(&["info", "g.ttl"]);
    assert!(ran.err.len() < 400 && !ran.err.contains('\u{1b}'), "{}", ran.err);
}

#[test]
fn an_unfit_candidate_fails_its_own_questions_only() {
    let place = Place::new();
    place.write("list.txt", "Spain\nFrance\n");
    place.write("q.tsv", "Portugal\tborders\t?\nPortugal\t?\tSpain\nSpain\tborders\t?\n");
    let ran = place.predict(&["--queries", "q.tsv", "--among", "list.txt", "--json"]);
    assert_eq!(ran.code, Some(1));
    let lines = ran.json();
    assert!(lines[0]["answers"].is_array() && lines[2]["answers"].is_array(), "{ran:?}");
    assert!(lines[1]["error"].as_str().unwrap().starts_with("list.txt:1: unknown relation"), "{ran:?}");
}

/// Who cannot be told what is wrong still gets the status.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_error_changes_no_status() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = place.command(&["info", "nope.tsv"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn query_files() {
    let place = Place::new();
    assert!(place.predict(&["--queries", "nope.tsv"]).err.starts_with("error: nope.tsv: cannot read: "));
    assert_eq!(place.predict(&["--queries", "."]).err, "error: .: is a directory, expected a file of queries\n");
    place.write("none.tsv", "\n");
    let ran = place.predict(&["--queries", "none.tsv"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    assert_eq!(ran.err, "warning: none.tsv: no queries\n");
}

/// A full disk is an error, not a silent success.
#[cfg(target_os = "linux")]
#[test]
fn full_disk() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = common::predict_args(&["Portugal", "borders", "?"]);
    let output = place.command(&args).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.starts_with("error: cannot write to standard output: "), "{err}");
}

#[test]
fn analyses_list_the_options_that_they_take() {
    let place = Place::new();
    for (name, absent, present) in [
        ("passes", "--passes <", "--walks <"),
        ("walks", "--walks <", "--passes <"),
        ("frontier", "--walks <", "--most-passes <"),
        ("relations", "--limit <", "--questions <"),
        ("ablations", "--counts <", "--limit <"),
    ] {
        let help = place.run(&["analyse", name, "--help"]).ok();
        assert!(!help.contains(absent) && help.contains(present), "{help}");
        assert!(help.contains("--model <") && !help.contains("given twice"), "{help}");
    }
    let passes = ["analyse", "passes", "Toy", "--data", "."];
    misuse(&place, &[&passes[..], &["--passes", "2"]].concat(), "the numbers of passes are those of --counts");
    let twice = ["--model", "entity.safetensors", "--model", "relation.safetensors"];
    misuse(&place, &[&passes[..], &twice].concat(), "the argument '--model <FILE>' cannot be used multiple times");
}

#[test]
fn hints_name_no_split_that_is_not_there() {
    let place = Place::new();
    std::fs::create_dir(place.path("Toy")).unwrap();
    place.write("Toy/train.txt", "a\tr\tb\nb\tr\tc\n");
    let eval = |split: &str| {
        let ran = place.run(&["eval", "Toy", "--data", ".", "--split", split, "--model", "entity.safetensors"]);
        assert_eq!(ran.code, Some(1));
        ran.err
    };
    let expected = "no test.txt with triples of the walked graph; hint: put triples to predict into test.txt";
    assert!(eval("test").contains(expected), "{}", eval("test"));
    assert!(eval("valid").contains("hint: put triples to predict into valid.txt"), "{}", eval("valid"));
    place.write("Toy/valid.txt", "a\tr\tc\n");
    assert!(eval("test").contains("hint: --split valid"), "{}", eval("test"));
}
