//! For tests that fetch: a web server on this machine, and upstream files of every graph in the
//! registry, under the paths and in the form that upstream has.

#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flock_eval::datasets::Part::{self, Inference, Test, Train, Valid};
use flock_eval::datasets::{RegistryEntry, SplitKind};

pub const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");

/// What the server does and has seen. Files are named as they are asked for, query strings included.
#[derive(Default)]
pub struct State {
    pub files: HashMap<String, Vec<u8>>,
    /// Bytes after which a connection breaks.
    pub cut: Option<usize>,
    pub ignores_ranges: bool,
    /// Path, first byte asked for, bytes sent.
    pub seen: Vec<(String, usize, usize)>,
}

/// Serves until the test ends.
pub fn serve(state: Arc<Mutex<State>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_string();
            let (mut from, mut fresh) = (0, None);
            for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
                let line = line.to_lowercase();
                if let Some(range) = line.strip_prefix("range: bytes=") {
                    from = range.trim_end_matches('-').parse().unwrap();
                }
                fresh = line.strip_prefix("if-range: ").map(String::from).or(fresh);
            }
            let mut state = state.lock().unwrap();
            let Some(body) = state.files.get(&path).cloned() else {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                continue;
            };
            let tag = format!("\"{}-{}\"", body.len(), body.iter().map(|b| u64::from(*b)).sum::<u64>());
            if state.ignores_ranges || fresh.is_some_and(|f| f != tag) {
                from = 0;
            }
            let head = match from {
                0 => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len()),
                _ if from >= body.len() => {
                    format!(
                        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n",
                        body.len()
                    )
                }
                _ => format!(
                    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\nContent-Length: {}\r\n",
                    body.len() - 1,
                    body.len(),
                    body.len() - from
                ),
            };
            let rest = &body[from.min(body.len())..];
            let sent = state.cut.map_or(rest.len(), |cut| cut.min(rest.len()));
            state.seen.push((path, from, sent));
            let head = format!("{head}ETag: {tag}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&rest[..sent]));
        }
    });
    address
}

/// Serves these files.
pub fn serve_files(files: HashMap<String, Vec<u8>>) -> String {
    serve(Arc::new(Mutex::new(State { files, ..State::default() })))
}

pub fn quiet(_: &str, _: u64) {}

/// Where the files of some graphs are. Written from what upstream has, not from the registry: the
/// registry is tested with it.
pub struct Source {
    /// Names of the graphs, and what stands for `{}` in their paths.
    pub graphs: &'static [(&'static str, &'static str)],
    pub address: &'static str,
    /// `archive!inner` is a file in an archive.
    pub files: &'static [(Part, &'static [&'static str])],
    /// Columns of head, relation and tail.
    pub columns: [usize; 3],
}

const INGRAM: &[(Part, &[&str])] = &[
    (Train, &["data/{}/train.txt"]),
    (Inference, &["data/{}/msg.txt"]),
    (Valid, &["data/{}/valid.txt"]),
    (Test, &["data/{}/test.txt"]),
];

/// What docs/notes/2026-11-18-dataset-sources.md has found, in code.
pub const SOURCES: &[Source] = &[
    Source {
        graphs: &[
            ("FBIngram_25", "FB-25"),
            ("FBIngram_50", "FB-50"),
            ("FBIngram_75", "FB-75"),
            ("FBIngram_100", "FB-100"),
            ("WKIngram_25", "WK-25"),
            ("WKIngram_50", "WK-50"),
            ("WKIngram_75", "WK-75"),
            ("WKIngram_100", "WK-100"),
            ("NLIngram_0", "NL-0"),
            ("NLIngram_25", "NL-25"),
            ("NLIngram_50", "NL-50"),
            ("NLIngram_75", "NL-75"),
            ("NLIngram_100", "NL-100"),
        ],
        address: "https://raw.githubusercontent.com/bdi-lab/InGram/master",
        files: INGRAM,
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[
            ("WikiTopicsMT1_tax", "v1/wikidata_taxv1"),
            ("WikiTopicsMT1_health", "v1/wikidata_healthv1"),
            ("WikiTopicsMT2_org", "v1/wikidata_orgv1"),
            ("WikiTopicsMT2_sci", "v1/wikidata_sciv1"),
            ("WikiTopicsMT3_art", "v2/wikidata_artv2"),
            ("WikiTopicsMT3_infra", "v2/wikidata_infrav2"),
            ("WikiTopicsMT4_sci", "v2/wikidata_sciv2"),
            ("WikiTopicsMT4_health", "v2/wikidata_healthv2"),
        ],
        address: "https://raw.githubusercontent.com/TownesZhou/ISDEA-Fix/HEAD",
        files: &[
            (Train, &["ISDEA/WikiTopics/WikiTopics-{}-trans/train.txt"]),
            (Inference, &["ISDEA/WikiTopics/WikiTopics-{}-ind/observe.txt"]),
            (Valid, &["ISDEA/WikiTopics/WikiTopics-{}-trans/valid.txt"]),
            (Test, &["ISDEA/WikiTopics/WikiTopics-{}-ind/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("Metafam", "Metafam"), ("FBNELL", "FBNELL/FBNELL_v1")],
        address: "https://raw.githubusercontent.com/TownesZhou/InGram/HEAD",
        files: INGRAM,
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[
            ("FB15k237Inductive_v1", "fb237_v1"),
            ("FB15k237Inductive_v2", "fb237_v2"),
            ("FB15k237Inductive_v3", "fb237_v3"),
            ("FB15k237Inductive_v4", "fb237_v4"),
            ("WN18RRInductive_v1", "WN18RR_v1"),
            ("WN18RRInductive_v2", "WN18RR_v2"),
            ("WN18RRInductive_v3", "WN18RR_v3"),
            ("WN18RRInductive_v4", "WN18RR_v4"),
            ("NELLInductive_v1", "nell_v1"),
            ("NELLInductive_v2", "nell_v2"),
            ("NELLInductive_v3", "nell_v3"),
            ("NELLInductive_v4", "nell_v4"),
        ],
        address: "https://raw.githubusercontent.com/kkteru/grail/master",
        files: &[
            (Train, &["data/{}/train.txt"]),
            (Inference, &["data/{}_ind/train.txt"]),
            (Valid, &["data/{}/valid.txt"]),
            (Test, &["data/{}_ind/valid.txt", "data/{}_ind/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[
            ("HM_1k", "Hamaguchi-BM_both-1000"),
            ("HM_3k", "Hamaguchi-BM_both-3000"),
            ("HM_5k", "Hamaguchi-BM_both-5000"),
            ("HM_indigo", "INDIGO-BM"),
        ],
        address: "https://raw.githubusercontent.com/shuwen-liu-ox/INDIGO/master",
        files: &[
            (Train, &["data/{}/train/train.txt"]),
            (Inference, &["data/{}/test/test-graph.txt"]),
            (Valid, &["data/{}/train/valid.txt"]),
            (Test, &["data/{}/test/test-fact.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("ILPC2022_small", "small"), ("ILPC2022_large", "large")],
        address: "https://raw.githubusercontent.com/pykeen/ilpc2022/master",
        files: &[
            (Train, &["data/{}/train.txt"]),
            (Inference, &["data/{}/inference.txt"]),
            (Valid, &["data/{}/inference_validation.txt"]),
            (Test, &["data/{}/inference_test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("FB15k237", "")],
        address: "https://raw.githubusercontent.com/TimDettmers/ConvE/master",
        files: &[
            (Train, &["FB15k-237.tar.gz!train.txt"]),
            (Valid, &["FB15k-237.tar.gz!valid.txt"]),
            (Test, &["FB15k-237.tar.gz!test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("WN18RR", "")],
        address: "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master",
        files: &[
            (Train, &["WN18RR/original/train.txt"]),
            (Valid, &["WN18RR/original/valid.txt"]),
            (Test, &["WN18RR/original/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("CoDExSmall", "codex-s"), ("CoDExMedium", "codex-m"), ("CoDExLarge", "codex-l")],
        address: "https://raw.githubusercontent.com/tsafavi/codex/master",
        files: &[
            (Train, &["data/triples/{}/train.txt"]),
            (Valid, &["data/triples/{}/valid.txt"]),
            (Test, &["data/triples/{}/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("NELL995", "")],
        address: "https://raw.githubusercontent.com/LARS-research/RED-GNN/e064161e8d2b8b3e0ed17d7a746cbcb43b3c327e",
        files: &[
            (Train, &["transductive/data/nell/facts.txt", "transductive/data/nell/train.txt"]),
            (Valid, &["transductive/data/nell/valid.txt"]),
            (Test, &["transductive/data/nell/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("YAGO310", "")],
        address: "https://raw.githubusercontent.com/DeepGraphLearning/KnowledgeGraphEmbedding/master",
        files: &[
            (Train, &["data/YAGO3-10/train.txt"]),
            (Valid, &["data/YAGO3-10/valid.txt"]),
            (Test, &["data/YAGO3-10/test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[
            ("WDsinger", "WD-singer"),
            ("NELL23k", "NELL23K"),
            ("FB15k237_10", "FB15K-237-10"),
            ("FB15k237_20", "FB15K-237-20"),
            ("FB15k237_50", "FB15K-237-50"),
        ],
        address: "https://raw.githubusercontent.com/seukgcode/PAAR/6eacb7ecc43369c3a815feb4c2a2fac26fb7fa38",
        files: &[
            (Train, &["data/{}/train.triples"]),
            (Valid, &["data/{}/dev.triples"]),
            (Test, &["data/{}/test.triples"]),
        ],
        // Head, tail, relation.
        columns: [0, 2, 1],
    },
    Source {
        graphs: &[("AristoV4", "")],
        address: "https://zenodo.org/record/5942560/files",
        files: &[(Train, &["aristo-v4.zip!train"]), (Valid, &["aristo-v4.zip!valid"]), (Test, &["aristo-v4.zip!test"])],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("DBpedia100k", "")],
        address: "https://raw.githubusercontent.com/iieir-km/ComplEx-NNE_AER/master",
        files: &[
            (Train, &["datasets/DB100K/_train.txt"]),
            (Valid, &["datasets/DB100K/_valid.txt"]),
            (Test, &["datasets/DB100K/_test.txt"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("ConceptNet100k", "")],
        address: "https://raw.githubusercontent.com/guojiapub/BiQUE/master",
        files: &[
            (Train, &["src_data/conceptnet-100k/train"]),
            (Valid, &["src_data/conceptnet-100k/valid"]),
            (Test, &["src_data/conceptnet-100k/test"]),
        ],
        columns: [0, 1, 2],
    },
    Source {
        graphs: &[("Hetionet", "")],
        address: "https://www.dropbox.com/s",
        files: &[
            (Train, &["y47bt9oq57h6l5k/train.txt?dl=1"]),
            (Valid, &["a0pbrx9tz3dgsff/valid.txt?dl=1"]),
            (Test, &["4dhrvg3fyq5tnu4/test.txt?dl=1"]),
        ],
        columns: [0, 1, 2],
    },
];

/// The source of a graph, and what stands for `{}` in its paths.
pub fn source(name: &str) -> (&'static Source, &'static str) {
    let of = |s: &'static Source| s.graphs.iter().find(|(graph, _)| *graph == name).map(|(_, at)| (s, *at));
    SOURCES.iter().find_map(of).expect(name)
}

pub type Rows = BTreeMap<Part, Vec<[String; 3]>>;

/// Triples with exactly the counts of the registry.
pub fn synthetic(entry: &RegistryEntry) -> Rows {
    let (valid, test, inductive) = (entry.valid, entry.test, entry.protocol.kind != SplitKind::Transductive);
    // Entities in a circle, so that every name is used: 0 1, 2 3, 4 5, …
    let graph = |e: &str, r: &str, [entities, relations, triples]: [u64; 3]| -> Vec<[String; 3]> {
        assert!(2 * triples >= entities && triples >= relations);
        let row = |i: u64| {
            [
                format!("{e}{}", 2 * i % entities),
                format!("{r}{}", i % relations),
                format!("{e}{}", (2 * i + 1) % entities),
            ]
        };
        (0..triples).map(row).collect()
    };
    // Triples to predict, the first `new` of which have an entity that the graph lacks (HM). They
    // begin at another entity in each file.
    let predicted = |e: &str, r: &str, [entities, relations, triples]: [u64; 3], new: u64, from: u64| {
        let entity = |i: u64| format!("{e}{}", (i + from) % entities);
        let head = |i: u64| if i < new { format!("new{i}") } else { entity(i) };
        (0..triples).map(|i| [head(i), format!("{r}{}", i % relations), entity(i + 3)]).collect::<Vec<_>>()
    };
    let train = match entry.train {
        [0, 0, triples] => [test.entities, test.relations, triples],
        all => all,
    };
    let mut rows = Rows::from([(Train, graph("e", "r", train))]);
    let relations = if test.relations == 0 { train[1] } else { test.relations };
    let (e, r) = match entry.protocol.kind {
        SplitKind::Transductive => ("e", "r"),
        SplitKind::InductiveE => ("n", "r"),
        SplitKind::InductiveEr => ("n", "s"),
    };
    if inductive {
        rows.insert(Inference, graph(e, r, [test.entities, relations, test.triples]));
    }
    let valid = match entry.protocol.valid_graph {
        Train if inductive => predicted("e", "r", [train[0], train[1], valid.predicted], valid.entities - train[0], 1),
        _ => predicted(e, r, [test.entities, relations, valid.predicted], 0, 1),
    };
    rows.insert(Valid, valid);
    rows.insert(Test, predicted(e, r, [test.entities, relations, test.predicted], 0, 2));
    rows
}

/// The triples of a graph at hand.
pub fn at_hand(name: &str) -> Option<Rows> {
    let read = |part: Part| -> Option<(Part, Vec<[String; 3]>)> {
        let text = std::fs::read_to_string(format!("{SHARED}/kg/{name}/{}", part.file())).ok()?;
        let row = |line: &str| line.split('\t').map(String::from).collect::<Vec<_>>().try_into().expect("a triple");
        Some((part, text.lines().map(row).collect()))
    };
    let (source, _) = source(name);
    source.files.iter().map(|(part, _)| read(*part)).collect()
}

/// Upstream files of a graph by path: columns in upstream's order, archives, what is merged in
/// pieces.
pub fn upstream(name: &str, rows: &Rows) -> HashMap<String, Vec<u8>> {
    let (source, at) = source(name);
    upstream_as(name, rows, source.columns, at)
}

/// The same with these columns.
pub fn upstream_as(name: &str, rows: &Rows, columns: [usize; 3], at: &str) -> HashMap<String, Vec<u8>> {
    let mut files: HashMap<String, Vec<u8>> = HashMap::new();
    let mut archives: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for (part, paths) in source(name).0.files {
        let rows = &rows[part];
        let piece = rows.len().div_ceil(paths.len()).max(1);
        for (k, path) in paths.iter().enumerate() {
            let mut text = String::new();
            for row in rows.iter().skip(k * piece).take(piece) {
                let mut fields = [""; 3];
                columns.iter().zip(row).for_each(|(column, name)| fields[*column] = name);
                text += &(fields.join("\t") + "\n");
            }
            let path = path.replace("{}", at);
            match path.split_once('!') {
                None => _ = files.insert(path, text.into_bytes()),
                Some((archive, inner)) => {
                    archives.entry(archive.to_string()).or_default().push((inner.to_string(), text.into_bytes()));
                }
            }
        }
    }
    for (archive, inside) in archives {
        let bytes = if archive.ends_with(".zip") { zip(&inside) } else { tar_gz(&inside) };
        files.insert(archive, bytes);
    }
    files
}

pub fn zip(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(name.as_str(), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn tar_gz(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        // Names that the builder refuses are written all the same.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Writes files as they would be in a copy of the upstream repository: a query string is part of an
/// address, not of a name.
pub fn write_all(root: &Path, files: &HashMap<String, Vec<u8>>) {
    for (path, bytes) in files {
        let path = root.join(path.split('?').next().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
