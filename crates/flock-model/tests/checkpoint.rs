//! Checkpoints: what is written comes back, and what is not a checkpoint is refused with a reason.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use common::{checkpoint_of, expected_tensors, small, tensors, value, values};
use flock_kernels::{Engine, Level, Precision};
use flock_model::Model;
use flock_model::checkpoint::{Averaging, Checkpoint, CheckpointProblem, Metadata, ProcessorKind, Task, Tensor};
use safetensors::tensor::{Dtype, TensorView};

fn checkpoint(task: Task) -> Checkpoint {
    let meta = small(task);
    let tensors = tensors(&meta);
    checkpoint_of(meta, &tensors).unwrap()
}

/// The file another program would write: the given tensors, no metadata.
fn foreign(tensors: &BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, bytes))| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn raw(meta: &Metadata) -> BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> {
    let bytes = |t: Tensor| (Dtype::F32, t.shape, t.data.iter().flat_map(|x| x.to_le_bytes()).collect());
    tensors(meta).into_iter().map(|(name, t)| (name, bytes(t))).collect()
}

fn refusal(bytes: &[u8]) -> String {
    Checkpoint::from_bytes("model.safetensors", bytes).unwrap_err().to_string()
}

/// The file as it was written before there was a checksum: spaces, which JSON does not mind, in its place.
fn without_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let entry = br#","sha256":""#;
    let at = bytes.windows(entry.len()).position(|w| w == entry).expect("the checksum is there");
    bytes[at..at + entry.len() + 64 + 1].fill(b' ');
    bytes
}

fn shared(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/parity")).join(file);
    if !path.exists() {
        eprintln!("skipped: ../shared not found");
        return None;
    }
    Some(path)
}

#[test]
fn parameter_counts_are_the_published_ones() {
    assert_eq!(Metadata::published(Task::Entity).num_parameters(), 801_969);
    assert_eq!(Metadata::published(Task::Relation).num_parameters(), 810_289);
    assert_eq!(Metadata { length: 16, ..Metadata::published(Task::Entity) }.num_parameters(), 715_953);
    // GRU 49,152, its output layer 8,192, feed-forward 36,864, `from_*` 8,192, `to_*` 8,192, logits 512.
    assert_eq!(Metadata::published(Task::Entity).macs_per_position(), 111_104);
    let two = Metadata { layers: 2, ..Metadata::published(Task::Entity) };
    assert_eq!(two.macs_per_position(), 111_104 + 49_152 + 8_192 + 36_864);
    // Each update's second layer: the GRU with its norm and output layer 58,176, the feed-forward 36,864 and its norm 64.
    assert_eq!(two.num_parameters(), 801_969 + 6 * (58_176 + 36_864 + 64));
}

/// Per update, instead of the GRU's 58,176: attention 4 · 192 · 64, a norm of 64, positions 128 · 64, together 57,408.
#[test]
fn a_transformer_has_about_as_many_parameters() {
    let published = Metadata::published(Task::Entity);
    let transformer = Metadata { processor: ProcessorKind::Transformer, ..published.clone() };
    assert_eq!(transformer.num_parameters(), 801_969 - 6 * 58_176 + 6 * 57_408);
    assert_eq!(Metadata { consensus: Averaging::Mean, ..published }.num_parameters(), 801_969);
}

#[test]
fn switches_are_named_where_they_are_not_the_published_ones() {
    let switched = Metadata {
        processor: ProcessorKind::Transformer,
        consensus: Averaging::Mean,
        balanced_on_query_relation: true,
        ..small(Task::Entity)
    };
    let bytes = checkpoint_of(switched.clone(), &tensors(&switched)).unwrap().to_bytes().unwrap();
    assert_eq!(Checkpoint::from_bytes("switched", &bytes).unwrap().weights.meta, switched);
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.contains(r#"\"processor\":\"transformer\",\"consensus\":\"mean\",\"balanced_on_query_relation\":true"#)
    );
    let published = checkpoint(Task::Entity).to_bytes().unwrap();
    let published = String::from_utf8_lossy(&published);
    assert!(!published.contains("processor") && !published.contains("balanced"), "absent means published");

    // The same length in bytes, so that the header's size stays right.
    let other = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut bytes = without_checksum(bytes.clone());
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        refusal(&bytes)
    };
    let error = other("transformer", "transformed");
    assert!(error.contains("unknown variant `transformed`, expected `gru` or `transformer`"), "{error}");
    let error = other("mean", "mode");
    assert!(error.contains("unknown variant `mode`, expected `softmax` or `mean`"), "{error}");
    // Without metadata the tensors tell the processor; nothing tells the consensus.
    let inferred = Checkpoint::from_bytes("raw", &foreign(&raw(&switched))).unwrap().weights.meta;
    assert_eq!((inferred.processor, inferred.consensus), (ProcessorKind::Transformer, Averaging::Softmax));
}

#[test]
fn expected_tensors_are_distinct_and_in_a_fixed_order() {
    let all = expected_tensors(&Metadata::published(Task::Entity));
    let names: std::collections::BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
    // 2 initial states; per update 7 tables, 4 + 14 + 8 layer tensors; 6 of the head
    assert_eq!((all.len(), names.len()), (2 + 6 * (7 + 4 + 14 + 8) + 6, all.len()));
    assert_eq!(all[0], ("node_init".to_string(), vec![64]));
    assert_eq!(all[8], ("emb_anon_type.0.weight".to_string(), vec![129, 64]));
    assert_eq!(all[all.len() - 1], ("head.4.bias".to_string(), vec![1]));
}

#[test]
fn what_is_written_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    for task in [Task::Entity, Task::Relation] {
        let mut written = checkpoint(task);
        written.weights.meta.note = Some("päper \"quoted\"\n".to_string());
        written.weights.meta.steps = 400_000;
        written.hash = written.write(&path).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), written);
    }
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, ["model.safetensors"], "no temporary file stays behind");
}

#[test]
fn the_same_weights_make_the_same_bytes() {
    let hashes: Vec<String> = (0..8).map(|_| checkpoint(Task::Entity).hash).collect();
    assert!(hashes.iter().all(|h| *h == hashes[0]));
    // Format version 1 with a checksum: a change of this hash is a change of the format. It is the hash that this test
    // found when the checksum came in.
    assert_eq!(hashes[0], "8dbf88b1668fd728d19f3f9afe601fa09ece86bf10074117eca6c7881480ca91");
}

#[test]
fn a_refused_write_leaves_the_old_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let mut model = checkpoint(Task::Entity);
    let hash = model.write(&path).unwrap();
    model.weights.tensor_mut("head.4.bias").unwrap()[0] = f32::NAN;
    let error = model.write(&path).unwrap_err().to_string();
    assert!(error.ends_with("tensor `head.4.bias` has NaN at position 0; weights must be finite"), "{error}");
    assert_eq!(Checkpoint::read(&path).unwrap().hash, hash);

    let nowhere = directory.path().join("missing/model.safetensors");
    assert!(checkpoint(Task::Entity).write(nowhere).is_err());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn only_whole_models_are_made() {
    let meta = small(Task::Entity);
    let mut short = tensors(&meta);
    short.get_mut("node_init").unwrap().data.pop();
    let error = checkpoint_of(meta.clone(), &short).unwrap_err().to_string();
    assert_eq!(error, "tensor `node_init` has 7 values, which do not fill its shape [8]");
    for (meta, message) in [
        (Metadata { width: 0, ..meta.clone() }, "width is 0; it must be between 1 and 1024"),
        (Metadata { heads: 3, ..meta.clone() }, "heads is 3; it must divide the width"),
        (Metadata { layers: 0, ..meta.clone() }, "layers is 0; it must be between 1 and 16"),
        (Metadata { layers: 17, ..meta.clone() }, "layers is 17; it must be between 1 and 16"),
        (Metadata { updates: usize::MAX, ..meta.clone() }, "it must be between 1 and 64"),
        (Metadata { length: 1, ..meta.clone() }, "length is 1; it must be between 2 and 16384"),
        (Metadata { n_train: 0, ..meta.clone() }, "n_train is 0; it must be positive"),
        (Metadata { n_least: 8, ..meta.clone() }, "n_least is 8; it must be from 16 to 512"),
        (Metadata { n_per_degree: -1.0, ..meta.clone() }, "n_per_degree is -1; it must be from 0 to 64"),
        (Metadata { mean_nodes: f64::NAN, ..meta.clone() }, "mean_nodes is NaN; it must be positive"),
        (Metadata { width: 1024, updates: 64, ..meta.clone() }, "is more than this program loads"),
    ] {
        let error = checkpoint_of(meta, &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn half_precision_halves_the_file() {
    let mut model = checkpoint(Task::Entity);
    // 1 + 2^-11 lies halfway between two halves, 1 and 1 + 2^-10, and goes to the even one; a bit more goes up.
    model.weights.tensor_mut("node_init").unwrap()[..2]
        .copy_from_slice(&[1.0 + 2f32.powi(-11), 1.0 + 1.5 * 2f32.powi(-11)]);
    let (whole, half) = (model.to_bytes().unwrap(), model.to_half_bytes().unwrap());
    let data = 2 * model.weights.values.len();
    assert!(whole.len() - half.len() > data - 256 && whole.len() - half.len() < data + 256);
    let read = Checkpoint::from_bytes("half", &half).unwrap();
    assert_eq!(read.meta(), model.meta());
    assert_eq!(read.tensor("node_init").unwrap()[..2], [1.0, 1.0 + 2f32.powi(-10)]);
    // Written again it is the same file, so its weights were kept exactly.
    assert_eq!(read.to_half_bytes().unwrap(), half);
    assert_eq!(read.weights, model.weights.in_half_precision());

    model.weights.tensor_mut("head.4.bias").unwrap()[0] = 70_000.0;
    let error = model.to_half_bytes().unwrap_err().to_string();
    assert!(error.starts_with("tensor `head.4.bias` has"), "{error}");
    assert!(model.to_bytes().is_ok());
}

#[test]
fn models_are_averaged() {
    let (mut a, mut b) = (checkpoint(Task::Entity), checkpoint(Task::Entity));
    a.weights.tensor_mut("node_init").unwrap()[0] = 1.0;
    b.weights.tensor_mut("node_init").unwrap()[0] = 4.0;
    b.weights.meta.steps = a.meta().steps + 7;
    // The second one counts twice: (1 + 4 + 4) / 3.
    let mean = Checkpoint::average(&[a.clone(), b.clone(), b.clone()]).unwrap();
    assert_eq!(mean.tensor("node_init").unwrap()[0], 3.0);
    assert_eq!(mean.tensor("type_init"), a.tensor("type_init"));
    assert_eq!(mean.meta().steps, b.meta().steps);
    let named = format!("mean of {}, {1}, {1}", &a.hash[..12], &b.hash[..12]);
    assert!(mean.meta().note.as_ref().is_some_and(|note| note.ends_with(&named)));
    assert_eq!(Checkpoint::average(std::slice::from_ref(&a)).unwrap(), a);

    let other = Metadata { restart: 102, ..small(Task::Entity) };
    let other = checkpoint_of(other.clone(), &tensors(&other)).unwrap();
    let error = Checkpoint::average(&[a, other]).unwrap_err().to_string();
    assert!(error.contains("restarts of walks (0.100); it must be as the first one's"), "{error}");
    assert!(Checkpoint::average(&[]).is_err());
}

#[test]
fn other_sizes_come_back() {
    let meta = Metadata { width: 96, heads: 6, layers: 2, ..small(Task::Relation) };
    let written = checkpoint_of(meta.clone(), &tensors(&meta)).unwrap();
    let bytes = written.to_bytes().unwrap();
    let read = Checkpoint::from_bytes("wide", &bytes).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.tensor("net.1.layer2.gru_out.weight").unwrap().len(), 96 * 192);
    assert!(String::from_utf8_lossy(&bytes).contains(r#"\"layers\":2"#));
    // Sizes are read off the tensors of a file that does not state them.
    let inferred = Checkpoint::from_bytes("raw", &foreign(&raw(&meta))).unwrap();
    assert_eq!(Metadata { note: None, ..inferred.meta().clone() }, meta);
}

#[test]
fn a_file_that_states_no_layers_has_one() {
    // As every file before there was a choice.
    let bytes = checkpoint(Task::Entity).to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("layers"));
    assert_eq!(Checkpoint::from_bytes("old", &bytes).unwrap().meta().layers, 1);
    // More layers than there are tensors for, and fewer.
    let lie = |layers: usize, tensors: &BTreeMap<String, Tensor>| {
        checkpoint_of(Metadata { layers, ..small(Task::Entity) }, tensors).unwrap_err().to_string()
    };
    let two = Metadata { layers: 2, ..small(Task::Entity) };
    let error = lie(2, &tensors(&small(Task::Entity)));
    assert!(error.starts_with("tensor `net.0.layer2.gru_norm.weight` of shape [8] is missing"), "{error}");
    let error = lie(1, &tensors(&two));
    assert!(error.starts_with("tensors a Flock model does not have: `net.0.layer2."), "{error}");
}

#[test]
fn sizes_without_a_kernel_are_refused_when_a_model_is_packed() {
    let engine = Engine::new(Level::Portable, Precision::F32).unwrap();
    let refusal = |width, heads| {
        let meta = Metadata { width, heads, ..small(Task::Entity) };
        let model = Model::new(&checkpoint_of(meta.clone(), &tensors(&meta)).unwrap(), engine);
        model.err().map(|e| e.to_string())
    };
    assert_eq!(refusal(48, 3).unwrap(), "the model has width 48; this build runs widths 32, 64, 96 or 128");
    assert_eq!(
        refusal(64, 8).unwrap(),
        "the model has 8 consensus heads, slices of 8; at width 64 this build runs 4 or 2 heads (slices of 16 or 32)"
    );
    assert_eq!(refusal(32, 1), None);
}

#[test]
fn a_file_without_metadata_is_inferred() {
    for task in [Task::Entity, Task::Relation] {
        let read = Checkpoint::from_bytes("raw", &foreign(&raw(&small(task)))).unwrap();
        assert!(read.meta().note.as_ref().unwrap().contains("inferred"));
        assert_eq!(Metadata { note: None, ..read.meta().clone() }, small(task));
        assert_eq!(read.weights.to_tensors(), tensors(&small(task)));
    }
}

#[test]
fn halves_are_widened_and_other_types_refused() {
    let meta = small(Task::Entity);
    let mut file = raw(&meta);
    // f32 → bf16 drops the lower half, which is zero for these values; f16 of m/64 from the definition of the format
    let bf16 = |x: f32| (x.to_bits() >> 16) as u16;
    let f16 = |x: f32| match x.to_bits() {
        bits if x == 0.0 => (bits >> 16) as u16,
        bits => ((bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | bits >> 13 & 1023) as u16,
    };
    for (name, dtype, half) in
        [("node_init", Dtype::BF16, &bf16 as &dyn Fn(f32) -> u16), ("type_init", Dtype::F16, &f16)]
    {
        let data = values(name, &[8]).into_iter().flat_map(|x| half(x).to_le_bytes()).collect();
        file.insert(name.to_string(), (dtype, vec![8], data));
    }
    let read = Checkpoint::from_bytes("halves", &foreign(&file)).unwrap();
    assert_eq!(read.weights.to_tensors(), tensors(&meta));

    for (dtype, bytes) in [(Dtype::I32, 32), (Dtype::F64, 64), (Dtype::U8, 8)] {
        file.insert("type_init".to_string(), (dtype, vec![8], vec![0; bytes]));
        let message = format!("tensor `type_init` has element type {dtype}; expected F32, F16 or BF16");
        assert_eq!(refusal(&foreign(&file)), format!("model.safetensors: {message}"));
    }
}

#[test]
fn wrong_tensors_are_named() {
    let meta = small(Task::Entity);
    let good = raw(&meta);

    let mut file = good.clone();
    file.remove("to_type.1.bias");
    assert_eq!(
        refusal(&foreign(&file)),
        "model.safetensors: tensor `to_type.1.bias` of shape [8] is missing; this seems to be a Flock entity model \
         with 2 updates, walk length 4 and width 8"
    );

    let mut file = good.clone();
    file.insert("head.2.bias".to_string(), (Dtype::F32, vec![2, 8], vec![0; 64]));
    let error = refusal(&foreign(&file));
    assert!(
        error.contains("tensor `head.2.bias` has shape [2, 8], expected [16]; this seems to be a Flock"),
        "{error}"
    );

    let mut file = good.clone();
    for i in 0..10 {
        file.insert(format!("extra.{i}"), (Dtype::I64, vec![1], vec![0; 8]));
    }
    let bytes = foreign(&file);
    let error = refusal(&bytes);
    assert!(error.contains("tensors a Flock model does not have: `extra.0`, `extra.1`"), "{error}");
    assert!(error.ends_with("`extra.7` and 2 more"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("extra.safetensors");
    fs::write(&path, bytes).unwrap();
    assert!(Checkpoint::read(&path).is_err());
    assert_eq!(Checkpoint::read_lenient(&path).unwrap().weights.to_tensors(), tensors(&meta));

    let mut file = good.clone();
    file.get_mut("from_node.1.weight").unwrap().2[20..24].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let error = refusal(&foreign(&file));
    assert!(error.contains("tensor `from_node.1.weight` has inf at position 5"), "{error}");
}

#[test]
fn foreign_files_are_recognised() {
    let file = |names: &[&str]| {
        let tensor = |name: &&str| (name.to_string(), (Dtype::F32, vec![2, 3], vec![0; 24]));
        foreign(&names.iter().map(tensor).collect())
    };
    for (names, guess) in [
        (vec!["entity_model.layers.0", "relation_model.layers.0"], "an ULTRA or TRIX model"),
        (vec!["model.layers.0.mlp.weight"], "a language model"),
        (vec!["named_walks"], "a record of walks and states, not weights"),
        (vec!["module.from_node.0.weight"], "a Flock model whose names carry a prefix"),
        (vec!["zebra", "apple"], "something else: 2 tensors, first `apple` of shape [2, 3]"),
        (vec![], "an empty file"),
    ] {
        let error = refusal(&file(&names));
        let expected = format!("tensor `node_init` of shape [64] is missing; this seems to be {guess}");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn files_that_are_not_safetensors_are_refused() {
    let bytes = checkpoint(Task::Entity).to_bytes().unwrap();
    let error = refusal(&bytes[..bytes.len() - 1]);
    assert!(error.starts_with("model.safetensors: truncated: tensor `type_logit.1.weight` ends at byte"), "{error}");
    assert!(refusal(&bytes[..100]).contains("not a safetensors file"));
    assert!(refusal(b"").contains("not a safetensors file"));
    assert!(refusal(b"PK\x03\x04 and the rest of an archive").ends_with("which can be imported"));
    assert!(refusal(b"version https://git-lfs.github.com/spec/v1").contains("Git LFS pointer"));

    // Offsets that overflow a sum of 64-bit numbers.
    let end = u64::MAX - 7;
    let eighth = end / 8;
    let entry = |i: u64| {
        format!(r#""{i}":{{"dtype":"U8","shape":[{eighth}],"data_offsets":[{},{}]}}"#, i * eighth, (i + 1) * eighth)
    };
    let header = format!("{{{}}}", (0..8).map(entry).collect::<Vec<_>>().join(","));
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    assert!(refusal(&bytes).contains("truncated: tensor `0` ends at byte"));
}

#[test]
fn metadata_is_checked() {
    let text = |bytes: Vec<u8>, from: &str, to: &str| {
        assert_eq!(from.len(), to.len(), "the header keeps its length");
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("the text is there");
        let mut bytes = bytes;
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let bytes = || without_checksum(checkpoint(Task::Entity).to_bytes().unwrap());
    for (from, to, message) in [
        (
            r#""format_version":"1""#,
            r#""format_version":"2""#,
            "checkpoint format version 2, but this program reads version 1",
        ),
        (
            r#"\"task\":\"entity\""#,
            r#"\"task\":\"entite\""#,
            "metadata `flock-kg` in the header: unknown variant `entite`",
        ),
        (r#"\"width\":8"#, r#"\"width\":0"#, "width is 0; it must be between 1 and 1024"),
        (r#"\"heads\":2"#, r#"\"heads\":3"#, "heads is 3; it must divide the width"),
        (r#"\"updates\":2"#, r#"\"updates\":1"#, "tensors a Flock model does not have: `emb_anon_node.1.weight`"),
        (r#"\"length\":4"#, r#"\"length\":5"#, "tensor `emb_anon_node.0.weight` has shape [4, 8], expected [5, 8]"),
    ] {
        let error = refusal(&text(bytes(), from, to));
        assert!(error.contains(message), "{error}");
    }
}

/// Numbers below a bound, the same on every run (xorshift).
fn random() -> impl FnMut(usize) -> usize {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    move |n| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    }
}

#[test]
fn damaged_files_never_panic() {
    // Without a checksum: everything behind it must stand up to what it would have kept out.
    let good = without_checksum(checkpoint(Task::Entity).to_bytes().unwrap());
    let header = u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    let mut below = random();
    let mut refused = 0;
    for round in 0..5_000 {
        let mut bytes = good.clone();
        if round % 5 == 0 {
            bytes.truncate(below(good.len()));
        }
        for _ in 0..1 + below(4) {
            let at = below(header + 8).min(bytes.len().saturating_sub(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = below(256) as u8;
            }
        }
        refused += usize::from(Checkpoint::from_bytes("damaged", &bytes).is_err());
    }
    // A mutation may fall on a note or a name of a graph and do no harm, but most break the header.
    assert!(refused > 4_000, "{refused}");
}

/// 2,000 files with a bit flipped, a byte replaced, a run of bytes replaced, bytes swapped, or bytes left out or put in, in the
/// header and in the data: each is refused, or is read as what was written.
#[test]
fn damage_is_noticed() {
    let model = checkpoint(Task::Entity);
    let good = model.to_bytes().unwrap();
    let header = 8 + u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    let mut below = random();
    let mut by_checksum = 0;
    for round in 0..2_000 {
        let mut bytes = good.clone();
        // Three in four in the data, where nothing but a checksum can notice.
        let at = if round % 4 == 0 { below(header) } else { header + below(good.len() - header) };
        match below(6) {
            0 | 1 => bytes[at] ^= 1 << below(8),
            2 => bytes[at] = below(256) as u8,
            3 => bytes[at..].iter_mut().take(1 + below(16)).for_each(|b| *b = below(256) as u8),
            4 => bytes.swap(at, below(good.len())),
            _ if below(2) == 0 => drop(bytes.remove(at)),
            _ => bytes.insert(at, below(256) as u8),
        }
        match Checkpoint::from_bytes("damaged", &bytes) {
            Err(e) => by_checksum += usize::from(matches!(e.problem, CheckpointProblem::Checksum)),
            Ok(read) => {
                assert_eq!(read.weights, model.weights, "round {round}, byte {at}")
            }
        }
    }
    assert!(by_checksum > 1_000, "{by_checksum}");

    let mut bytes = good.clone();
    bytes[header + 5] ^= 1;
    assert_eq!(
        refusal(&bytes),
        "model.safetensors: damaged: the checksum in its header is not that of its bytes; hint: copy or download it again \
         (if a program changed the tensors on purpose, have it leave `sha256` out of the metadata)"
    );
    // Nor does damage to the checksum's own name make it an old file.
    let name = good.windows(8).position(|w| w == br#""sha256""#).unwrap();
    bytes[name + 3] ^= 1;
    assert!(refusal(&bytes).contains("damaged: the checksum"));
}

#[test]
fn files_from_before_the_checksum_are_read() {
    let model = checkpoint(Task::Relation);
    let old = Checkpoint::from_bytes("old", &without_checksum(model.to_bytes().unwrap())).unwrap();
    assert_eq!(old.weights, model.weights);
    // Written again it has one.
    assert_eq!(old.to_bytes().unwrap(), model.to_bytes().unwrap());
}

#[test]
fn parity_weights_are_read() {
    for (file, task, length, updates, parameters) in [
        ("entity_L128_T6.weights.safetensors", Task::Entity, 128, 6, 801_969),
        ("entity_L16_T6.weights.safetensors", Task::Entity, 16, 6, 715_953),
        ("entity_L8_T2.weights.safetensors", Task::Entity, 8, 2, 253_329),
        ("relation_L16_T2.weights.safetensors", Task::Relation, 16, 2, 263_697),
    ] {
        let Some(path) = shared(file) else { return };
        let read = Checkpoint::read(&path).unwrap();
        let expected = Metadata { task, length, updates, ..Metadata::published(task) };
        assert_eq!(Metadata { note: None, ..read.meta().clone() }, expected, "{file}");
        assert_eq!(read.weights.values.len(), parameters, "{file}");
    }
}

#[test]
fn parity_values_are_read_exactly() {
    let Some(path) = shared("entity_L8_T2.weights.safetensors") else { return };
    let read = Checkpoint::read(path).unwrap();
    // python: struct.unpack over the header's data_offsets of these tensors, as the bits of the first and last values
    let bits = |name: &str, position: usize| read.tensor(name).unwrap()[position].to_bits();
    assert_eq!((bits("node_init", 0), bits("node_init", 63)), (0x3feb_d177, 0x3fa9_4ee3));
    let gru = "net.1.gru.weight_hh_l0_reverse";
    assert_eq!((bits(gru, 0), bits(gru, 1), bits(gru, 192 * 64 - 1)), (0x3d3f_cd0c, 0x3d98_da7e, 0xbdc3_cae6));
    assert_eq!(bits("head.4.bias", 0), 0x3d39_fe92);
    // sha256sum
    assert_eq!(read.hash, "02d0c4ee36955db1f5007a258ea0dafaafa62f324655bc8aead5d409273d9089");
}

#[test]
fn a_parity_case_is_not_a_model() {
    let Some(path) = shared("entity_L16_T6.petals.safetensors") else { return };
    let error = Checkpoint::read(path).unwrap_err().to_string();
    assert!(error.ends_with("this seems to be a record of walks and states, not weights"), "{error}");
}

#[test]
fn test_values_are_what_they_claim() {
    // "a" = 97: 31·97 = 3007 = 11·257 + 180; 180/64 − 2 = 0.8125, and seven further for each position
    assert_eq!((value("a", 0), value("a", 1)), (0.8125, 0.921875));
}
