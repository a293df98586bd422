//! Small files that expand to a lot, and streams without an end: each gives a typed error and takes
//! little memory.

use flock_graph::{Graph, GraphBuilder, LoadError, LoadOptions, PackedError, load_reader};
use peak_alloc::PeakAlloc;
use std::io::{self, Read};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Loads a stream. Returns the error and the peak memory in MiB.
fn attack(name: &str, content: impl Read) -> (LoadError, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = load_reader(name, content, &LoadOptions::default());
    let peak = (MEMORY.peak_usage() - before) >> 20;
    (result.expect_err(name), peak)
}

const RDF: &str = "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://example.org/\"";

fn xml(doctype: &str, attributes: &str, body: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n{doctype}<rdf:RDF {RDF} {attributes}>\n{body}</rdf:RDF>\n")
}

/// Twenty entities, each twice as long as the one before: ten bytes become five million.
fn doubling(doctype: &str, declare: &str, last: &str) -> String {
    let mut entities = format!("<!ENTITY{declare} e0 \"0123456789\">\n");
    for i in 1..20 {
        entities += &format!("<!ENTITY{declare} e{i} \"&e{p};&e{p};\">\n", p = i - 1);
    }
    let doctype = format!("<!{doctype} rdf:RDF [\n{entities}<!ENTITY {last} \"&e19;\">]>\n");
    let many = format!("&{last};").repeat(100);
    xml(
        &doctype,
        "",
        &format!("<rdf:Description rdf:about=\"http://a.b/{many}\"><e:r rdf:resource=\"e:a\"/></rdf:Description>"),
    )
}

/// This is one test, because memory is counted for all threads together.
#[test]
fn little_memory_for_files_that_swell() {
    let long = "x".repeat(60_000);
    let one_entity = |n: usize| {
        let doctype = format!("<!DOCTYPE rdf:RDF [<!ENTITY l \"{long}\">]>\n");
        let body = format!("<rdf:Description rdf:about=\"e:a\"><e:r>{}</e:r></rdf:Description>", "&l;".repeat(n));
        xml(&doctype, "", &body)
    };
    let each = |n: usize, what: &dyn Fn(usize) -> String| -> String { (0..n).map(what).collect() };
    let described =
        |i: usize| format!("<rdf:Description rdf:about=\"#{i}\"><e:r rdf:resource=\"#{i}\"/></rdf:Description>\n");
    let with_namespaces = format!("xmlns:l=\"http://{long}/\"");
    let prefixes = each(500, &|i| format!("xmlns:p{i}=\"http://{}/{i}\" ", &long[..200]));
    let literal = "<rdf:Description><e:r rdf:parseType=\"Literal\">";

    let cases: Vec<(&str, &str, String, &str)> = vec![
        ("entities of entities", "g.rdf", doubling("DOCTYPE", "", "big"), "an XML entity"),
        ("lower case", "g.rdf", doubling("doctype", "", "big"), "an XML entity"),
        ("parameter entities", "g.rdf", doubling("DOCTYPE", " %", "big"), "an XML entity"),
        ("a quote in a name", "g.rdf", doubling("DOCTYPE", "", "a\"b"), "an XML entity"),
        ("10,000 times one entity", "g.rdf", one_entity(10_000), "names written out"),
        (
            "a base in XML",
            "g.rdf",
            xml("", &format!("xml:base=\"http://a.b/{long}/\""), &each(20_000, &described)),
            "names written out",
        ),
        ("a namespace in elements", "g.rdf", xml("", &with_namespaces, &"<l:a/>".repeat(100_000)), "names written out"),
        (
            "a namespace in attributes",
            "g.rdf",
            xml("", &with_namespaces, &format!("<e:a {}/>", each(100_000, &|i| format!("l:a{i}=\"\" ")))),
            "more than 1024 attributes",
        ),
        ("deep elements", "g.rdf", xml("", "", &"<e:a>".repeat(1 << 20)), "more than 1024 elements inside each other"),
        (
            "a long collection",
            "g.rdf",
            xml("", "", &format!("<e:a><e:r rdf:parseType=\"Collection\">{}</e:r></e:a>", "<e:a/>".repeat(1 << 20))),
            "more than 262144 members",
        ),
        (
            "a long collection under another name",
            "g.rdf",
            xml(
                "",
                "xmlns:f=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#parse\"",
                &format!("<e:a><e:r f:Type=\"Collection\">{}</e:r></e:a>", "<e:a/>".repeat(1 << 20)),
            ),
            "more than 262144 members",
        ),
        (
            "an XML literal that repeats all prefixes",
            "g.rdf",
            xml("", &prefixes, &format!("{literal}{}</e:r></rdf:Description>", "<p/>".repeat(200_000))),
            "names written out",
        ),
        (
            "a long prefix in Turtle",
            "g.ttl",
            format!("@prefix a: <http://{long}/> .\n{}", each(100_000, &|i| format!("a:{i} a:r a:b .\n"))),
            "names written out",
        ),
        (
            "a long base in Turtle",
            "g.ttl",
            format!("@base <http://{long}/> .\n{}", each(100_000, &|i| format!("<{i}> <r> <b> .\n"))),
            "names written out",
        ),
        (
            "a long property with many objects",
            "g.ttl",
            format!("@prefix a: <http://{long}/> .\n_:a a:r {} .\n", vec!["_:b"; 300_000].join(",")),
            "names written out",
        ),
        (
            "datatypes",
            "g.ttl",
            format!("@prefix a: <http://{long}/> .\n<e:a> <e:r> {} .\n", vec!["''^^a:b"; 200_000].join(",")),
            "names written out",
        ),
        (
            "prefixes that copy the base",
            "g.ttl",
            format!("@base <http://{long}/> .\n{}", each(100_000, &|i| format!("@prefix a{i}: <> .\n"))),
            "bytes of namespaces",
        ),
        (
            "brackets in Turtle",
            "g.ttl",
            format!("@prefix : <e:> .\n{}", "[:r".repeat(1 << 20)),
            "more than 1024 open brackets",
        ),
        ("lists in Turtle", "g.ttl", format!("<e:a> <e:r> {}", "(".repeat(4 << 20)), "more than 1024 open brackets"),
        (
            "a long subject with many statements",
            "g.rdf",
            xml(
                "",
                "",
                &format!("<e:a rdf:about=\"e:{}\" {}/>", long.repeat(20), each(1000, &|i| format!("e:p{i}=\"\" "))),
            ),
            "names written out",
        ),
        (
            "a long language",
            "g.rdf",
            xml(
                "",
                "",
                &format!(
                    "<e:a xml:lang=\"x{}\" {}/>",
                    "-aaaaaaaa".repeat(200_000),
                    each(1000, &|i| format!("e:p{i}=\"\" "))
                ),
            ),
            "names written out",
        ),
        ("quoted triples", "g.ttl", format!("<e:a> <e:r> {}", "<<( <e:a> <e:r> ".repeat(1 << 20)), "open brackets"),
        (
            "annotations",
            "g.trig",
            format!("@prefix : <e:> .\n:a :r :b {}", "{| :a :b ".repeat(1 << 20)),
            "more than 1024 open brackets",
        ),
        (
            "a long name of a graph",
            "g.trig",
            format!("@prefix a: <http://{long}/> .\n{}", each(20_000, &|i| format!("a:{i} {{ _:a <e:r> _:b }}\n"))),
            "names written out",
        ),
        (
            "a long term of JSON-LD",
            "g.jsonld",
            format!(
                "{{\"@context\": {{\"a\": \"http://{long}/\"}}, \"a:r\": [{}1]}}",
                each(100_000, &|i| format!("{{\"@id\": \"a:{i}\"}},"))
            ),
            "names written out",
        ),
        (
            "terms made of terms",
            "g.jsonld",
            format!(
                "{{\"@context\": {{{}\"a0\": \"http://a.b/\"}}, \"a999:r\": 1}}",
                each(1000, &|i| format!("\"a{}\": \"a{i}:{}\",", i + 1, &long[..1000]))
            ),
            "prefixes made of prefixes",
        ),
        (
            "a long id with many statements",
            "g.jsonld",
            format!("{{\"@id\": \"http://{long}/\", \"e:r\": [{}1]}}", "1,".repeat(50_000)),
            "names written out",
        ),
        (
            "a long property with many values",
            "g.jsonld",
            format!("{{\"e:{long}\": [{}1]}}", "1,".repeat(50_000)),
            "names written out",
        ),
        (
            "copies of a large context",
            "g.jsonld",
            format!(
                "[{{\"@context\": {{{}\"a\": \"e:\"}}, \"a:r\": [{}1]}}]",
                each(5000, &|i| format!("\"t{i}\": \"e:{i}\",")),
                "{\"@context\": {}},".repeat(5000)
            ),
            "counted for each context",
        ),
        (
            "a stanza without an end",
            "g.obo",
            format!("[Term]\nid: A:1\n{}", each(400_000, &|i| format!("relationship: part_of B:{i}\n"))),
            "bytes in a stanza",
        ),
        ("deep GraphML", "g.graphml", "<graphml>".repeat(1 << 20), "more than 1024 elements inside each other"),
        ("a row of tabs", "g.tsv", "\t".repeat(12 << 20), "more than 65536 fields"),
        ("a row of commas", "g.csv", ",".repeat(12 << 20), "more than 65536 fields"),
        ("a row of quotes", "g.csv", "\"\",".repeat(4 << 20), "more than 65536 fields"),
        ("a line of numbers", "g.jsonl", format!("[{}1]", "1,".repeat(7 << 20)), "expected an array of 3"),
        ("a line of objects", "g.jsonl", format!("{{\"a\":[{}1]}}", "{},".repeat(5 << 20)), "expected keys such as"),
        ("a line of keys", "g.jsonl", format!("{{{}\"a\":1}}", "\"a\":1,".repeat(2 << 20)), "expected keys such as"),
        ("deep lists", "g.jsonl", "[".repeat(12 << 20), "is no JSON"),
    ];
    for (what, name, content, want) in cases {
        let (error, peak) = attack(name, content.as_bytes());
        assert!(error.to_string().contains(want), "{what}: {error}");
        assert!(matches!(error, LoadError::Row { .. }), "{what}: {error:?}");
        // At most 64 MiB of names for such files, 32 bytes for each byte of the file, and reserve
        // for growth.
        assert!(peak < 200, "{what}: {peak} MiB for {} bytes", content.len());
    }

    // A token, row or tag without an end.
    let endless = |start: &'static str, byte: u8| start.as_bytes().chain(io::repeat(byte));
    for (name, start, byte) in [
        ("g.tsv", "a\tr\t", b'b'),
        ("g.csv", "a,r,\"", b'b'),
        ("g.jsonl", "[\"", b'b'),
        ("g.jsonl", "", 0),
        ("g.nt", "<a:", b'b'),
        ("g.ttl", "<a:b> <a:r> \"", b'b'),
        ("g.ttl", "<a:", b'b'),
        ("g.ttl", "#", b'b'),
        ("g.rdf", "<?xml version=\"1.0\"?><a ", b'b'),
        ("g.rdf", "<?xml version=\"1.0\"?><!--", b'b'),
        ("g.rdf", "<?xml version=\"1.0\"?>", b'\n'),
        ("g.tsv", "", 0),
        ("g.nt", "", 0),
        ("g.ttl", "", 0),
        ("g.rdf", "", 0),
        ("g.nq", "<a:b> <a:b> <a:b> <a:", b'b'),
        ("g.trig", "<a:b> { <a:b> <a:r> \"", b'b'),
        ("g.trig", "", b'<'),
        ("g.jsonld", "{\"@id\": \"", b'b'),
        ("g.jsonld", "", b'['),
        ("g.obo", "[Term]", b'b'),
        ("g.obo", "", 0),
        ("g.graphml", "<graphml a=\"", b'b'),
        ("g.graphml", "<graphml><graph><edge><data>", b'b'),
        ("g.graphml", "<!--", b'b'),
        ("g.graphml", "", 0),
    ] {
        let (error, peak) = attack(name, endless(start, byte));
        assert!(matches!(error, LoadError::Row { line: 1, .. }), "{name} {start}: {error}");
        assert!(peak < 150, "{name} {start}: {peak} MiB");
    }

    // A packed graph that says it is large, and is not.
    let unpacked = |bytes: &[u8]| {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let result = Graph::from_bytes(bytes);
        (result, MEMORY.peak_usage() - before)
    };
    let sealed = |body: &[u8], len: u64| {
        let checked = [&len.to_le_bytes(), &(body.len() as u64).to_le_bytes(), body].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&checked);
        [b"FLOCKGRF\x01\0\0\0", &crc.sum().to_le_bytes()[..], &checked].concat()
    };
    // 64 MiB of zeros in some kilobytes, with the true length and with one that is allowed.
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
    let (result, peak) = unpacked(&sealed(&zeros, 64 << 20));
    assert!(matches!(result, Err(PackedError::Swollen { .. })) && peak < 1 << 20, "{result:?}: {peak} bytes");
    let (result, peak) = unpacked(&sealed(&zeros, 50 * zeros.len() as u64));
    assert!(matches!(result, Err(PackedError::Content { .. })) && peak < 51 * zeros.len(), "{result:?}: {peak} bytes");
    // 2^35 names, 2^35 triples, a name of 2^35 bytes.
    let many = b"\x80\x80\x80\x80\x80\x01";
    for start in [&b""[..], b"\x01", b"\x01\x01a\x01\x01r"] {
        let body = [start, many].concat();
        let (result, peak) = unpacked(&sealed(&body, body.len() as u64));
        assert!(matches!(result, Err(PackedError::Content { .. })) && peak < 1 << 20, "{result:?}: {peak} bytes");
    }
    // The most memory for the fewest bytes: triples that are all alike, and just so much noise that
    // they may be packed. Two bytes of the body are a triple, which takes about 50 bytes while the
    // index is built; and the body is at most 50 times as long as the bytes.
    let mut builder = GraphBuilder::new();
    let (mut noise, mut state) = (String::new(), 1u32);
    for _ in 0..52_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.push(char::from(b'!' + (state >> 24) as u8 % 94));
    }
    builder.entity(&noise);
    let names: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    names.iter().for_each(|head| names.iter().for_each(|tail| builder.add(head, "r", tail)));
    let bytes = builder.finish().unwrap().to_bytes();
    let body = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    assert!(body > 30 * bytes.len(), "{body} bytes, packed {}", bytes.len());
    let (result, peak) = unpacked(&bytes);
    assert!(result.is_ok() && peak < 40 * body, "{peak} bytes for a body of {body}, packed {}", bytes.len());
}
