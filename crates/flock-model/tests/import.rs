//! PyTorch files: those built here instruction by instruction, one that PyTorch itself wrote, and hostile ones.

mod common;
#[path = "../../../fuzz/targets/pth.rs"]
mod target;

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Write};
use std::sync::{Mutex, MutexGuard};

use common::{checkpoint_of, expected_tensors, small, tensors, value, values};
use flock_model::checkpoint::{Checkpoint, Metadata, Task};
use flock_model::import::{import_pth, import_pth_bytes};
use peak_alloc::PeakAlloc;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process, so the tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Writes pickles as Python does for `torch.save`: protocol 2, every new object put into the memo and fetched from it
/// when it comes again. `modern` writes the instructions of protocol 4 instead.
struct Pickler {
    out: Vec<u8>,
    memo: HashMap<String, u32>,
    next: u32,
    modern: bool,
}

impl Pickler {
    fn new(modern: bool) -> Pickler {
        let out = if modern { b"\x80\x04\x95\0\0\0\0\0\0\0\0".to_vec() } else { b"\x80\x02".to_vec() };
        Pickler { out, memo: HashMap::new(), next: 0, modern }
    }

    fn op(&mut self, bytes: &[u8]) -> &mut Pickler {
        self.out.extend(bytes);
        self
    }

    fn put(&mut self) -> &mut Pickler {
        match (self.modern, u8::try_from(self.next)) {
            (true, _) => self.out.push(0x94),
            (false, Ok(slot)) => self.out.extend([b'q', slot]),
            (false, Err(_)) => {
                self.out.push(b'r');
                self.out.extend(self.next.to_le_bytes());
            }
        }
        self.next += 1;
        self
    }

    /// Fetches what the key stands for; false if it is new.
    fn get(&mut self, key: &str) -> bool {
        let Some(&slot) = self.memo.get(key) else {
            self.memo.insert(key.to_string(), self.next);
            return false;
        };
        match u8::try_from(slot) {
            Ok(slot) => self.out.extend([b'h', slot]),
            Err(_) => {
                self.out.push(b'j');
                self.out.extend(slot.to_le_bytes());
            }
        }
        true
    }

    fn text(&mut self, text: &str) -> &mut Pickler {
        if self.get(&format!("text {text}")) {
            return self;
        }
        if self.modern {
            self.out.extend([0x8c, u8::try_from(text.len()).unwrap()]);
        } else {
            self.out.push(b'X');
            self.out.extend((text.len() as u32).to_le_bytes());
        }
        self.out.extend(text.as_bytes());
        self.put()
    }

    fn global(&mut self, module: &str, name: &str) -> &mut Pickler {
        if self.modern {
            // Python would fetch the global itself; naming it again must do as well.
            return self.text(module).text(name).op(b"\x93").put();
        }
        if self.get(&format!("global {module} {name}")) {
            return self;
        }
        self.op(format!("c{module}\n{name}\n").as_bytes()).put()
    }

    fn int(&mut self, n: usize) -> &mut Pickler {
        match n {
            0..=0xff => self.op(&[b'K', n as u8]),
            0x100..=0xffff => self.op(b"M").op(&(n as u16).to_le_bytes()),
            0x1_0000..=0x7fff_ffff => self.op(b"J").op(&(n as u32).to_le_bytes()),
            _ => {
                let bytes: Vec<u8> = n.to_le_bytes().into_iter().chain([0]).collect();
                // Python drops leading zeros but keeps a sign bit of zero.
                let len = (1..=9).find(|&l| bytes[l..].iter().all(|&b| b == 0) && bytes[l - 1] < 0x80).unwrap();
                self.op(&[0x8a, len as u8]).op(&bytes[..len])
            }
        }
    }

    fn sizes(&mut self, sizes: &[usize]) -> &mut Pickler {
        if sizes.is_empty() {
            return self.op(b")");
        }
        if sizes.len() > 3 {
            self.op(b"(");
        }
        for &n in sizes {
            self.int(n);
        }
        match sizes.len() {
            n @ 1..=3 => self.op(&[0x84 + n as u8]),
            _ => self.op(b"t"),
        }
        .put()
    }

    fn ordered_dict(&mut self) -> &mut Pickler {
        self.global("collections", "OrderedDict").op(b")R").put()
    }

    fn tensor(&mut self, t: &Saved) -> &mut Pickler {
        if t.parameter {
            self.global("torch._utils", "_rebuild_parameter").op(b"(");
        }
        self.global("torch._utils", "_rebuild_tensor_v2").op(b"((").text("storage").global("torch", t.class);
        self.text(&t.key).text("cpu").int(t.storage_len).op(b"t").put().op(b"Q").int(t.offset);
        self.sizes(&t.shape).sizes(&t.stride).op(b"\x89").ordered_dict();
        if t.seventh {
            self.op(b"}").put().text("neg").op(b"\x88s");
        }
        self.op(b"t").put().op(b"R").put();
        if t.parameter {
            self.op(b"\x88").ordered_dict().op(b"t").put().op(b"R").put();
        }
        self
    }

    fn state_dict(&mut self, model: &[Saved]) -> &mut Pickler {
        self.ordered_dict().op(b"(");
        for t in model {
            self.text(&t.name).tensor(t);
        }
        // The attribute `_metadata` that a module's state_dict has.
        self.op(b"u}").put().text("_metadata").ordered_dict().op(b"(").text("").op(b"}").put();
        self.text("version").op(b"K\x01su").op(b"sb")
    }

    fn end(&mut self) -> Vec<u8> {
        self.out.push(b'.');
        std::mem::take(&mut self.out)
    }
}

/// A tensor as it stands in a file.
#[derive(Clone)]
struct Saved {
    name: String,
    class: &'static str,
    key: String,
    storage_len: usize,
    offset: usize,
    shape: Vec<usize>,
    stride: Vec<usize>,
    parameter: bool,
    seventh: bool,
}

type Storages = BTreeMap<String, Vec<u8>>;

fn contiguous(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

fn f16(x: f32) -> u16 {
    // multiples of 1/64 up to 2: no rounding, no subnormals
    let bits = x.to_bits();
    if x == 0.0 { 0 } else { (bits >> 16 & 0x8000 | ((bits >> 23 & 255) - 112) << 10 | bits >> 13 & 1023) as u16 }
}

fn encode(class: &str, data: &[f32]) -> Vec<u8> {
    match class {
        "FloatStorage" => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        "DoubleStorage" => data.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect(),
        "HalfStorage" => data.iter().flat_map(|&x| f16(x).to_le_bytes()).collect(),
        "BFloat16Storage" => data.iter().flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes()).collect(),
        _ => data.iter().flat_map(|&x| (x as i64).to_le_bytes()).collect(),
    }
}

/// A model with a storage per tensor, as `torch.save` on a CPU writes it.
fn model(meta: &Metadata, class: &'static str) -> (Vec<Saved>, Storages) {
    let mut storages = Storages::new();
    let saved = |(i, (name, shape)): (usize, (String, Vec<usize>))| {
        let data = values(&name, &shape);
        storages.insert(i.to_string(), encode(class, &data));
        Saved {
            class,
            key: i.to_string(),
            storage_len: data.len(),
            offset: 0,
            stride: contiguous(&shape),
            parameter: false,
            seventh: false,
            name,
            shape,
        }
    };
    (expected_tensors(meta).into_iter().enumerate().map(saved).collect(), storages)
}

/// The whole file: `{"model": …, "optimizer": …, "epoch": 3}`. The optimiser's storages are not in it: nobody may ask.
fn published(model: &[Saved]) -> Vec<u8> {
    let mut p = Pickler::new(false);
    p.op(b"}").put().op(b"(").text("model").state_dict(model);
    p.text("optimizer").op(b"}").put().op(b"(").text("state").op(b"}").put().op(b"K\0").op(b"}").put().op(b"(");
    p.text("step").tensor(&Saved {
        key: "900".into(),
        storage_len: 1,
        shape: vec![],
        stride: vec![],
        ..model[0].clone()
    });
    p.text("exp_avg").tensor(&Saved { key: "901".into(), class: "LongStorage", ..model[0].clone() }).op(b"us");
    p.text("param_groups").op(b"]").put().op(b"}").put().op(b"(").text("lr").op(b"G\x3f\x40\x62\x4d\xd2\xf1\xa9\xfc");
    p.text("foreach").op(b"N").text("params").op(b"]").put().op(b"(K\0K\x01K\x02e").op(b"ua").op(b"u");
    p.text("epoch").op(b"K\x03").op(b"u").end()
}

fn bare(model: &[Saved]) -> Vec<u8> {
    Pickler::new(false).state_dict(model).end()
}

/// The archive around a pickle and its storages.
fn archive(entries: &[(&str, &[u8])], storages: &Storages, method: CompressionMethod) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(method);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, bytes: &[u8]| {
        zip.start_file(format!("flock/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    };
    for (name, bytes) in entries {
        add(name, bytes);
    }
    for (key, bytes) in storages {
        add(&format!("data/{key}"), bytes);
    }
    zip.finish().unwrap().into_inner()
}

fn pth(pickle: &[u8], storages: &Storages) -> Vec<u8> {
    archive(&[("data.pkl", pickle), ("byteorder", b"little"), ("version", b"3\n")], storages, CompressionMethod::Stored)
}

fn import(bytes: &[u8]) -> Checkpoint {
    import_pth_bytes("flock.pth", bytes).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    let message = import_pth_bytes("flock.pth", bytes).unwrap_err().to_string();
    message.strip_prefix("flock.pth: ").expect("the file is named").to_string()
}

/// The refusal of a pickle that stands in an archive of no storages.
fn pickle_refusal(pickle: &[u8]) -> String {
    refusal(&pth(pickle, &Storages::new()))
}

#[test]
fn the_published_layout_is_imported() {
    let _turn = turn();
    for (task, parameters) in [(Task::Entity, 801_969), (Task::Relation, 810_289)] {
        let meta = Metadata::published(task);
        let (model, storages) = model(&meta, "FloatStorage");
        let bytes = pth(&published(&model), &storages);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("best.pth");
        std::fs::write(&path, &bytes).unwrap();

        let read = import_pth(&path).unwrap();
        assert_eq!(read.weights.to_tensors(), tensors(&meta));
        assert_eq!(read.weights.values.len(), parameters);
        assert!(read.meta().note.as_ref().unwrap().starts_with("imported from best.pth, SHA-256 "));
        assert_eq!(Metadata { note: None, ..read.meta().clone() }, meta);
        assert_eq!((meta.n_train, meta.mean_nodes), (128, 24178.0));
        assert_eq!(meta.graphs, ["FB15k237", "WN18RR", "CoDExMedium"]);

        let converted = directory.path().join("best.safetensors");
        assert_eq!(read.write(&converted).unwrap(), read.hash);
        assert_eq!(Checkpoint::read(&converted).unwrap(), read);
    }
}

#[test]
fn every_layout_gives_the_same_weights() {
    let _turn = turn();
    let meta = small(Task::Entity);
    let expected = tensors(&meta);
    let (plain, storages) = model(&meta, "FloatStorage");
    let check = |what: &str, bytes: &[u8]| assert_eq!(import(bytes).weights.to_tensors(), expected, "{what}");

    check("bare state_dict", &pth(&bare(&plain), &storages));
    let deflated = archive(&[("data.pkl", &bare(&plain))], &storages, CompressionMethod::Deflated);
    check("deflated, no byteorder", &deflated);
    let mut modern = Pickler::new(true);
    let modern = modern.state_dict(&plain).end();
    check("protocol 4", &pth(&modern, &storages));

    let prefixed: Vec<Saved> =
        plain.iter().map(|t| Saved { name: format!("module.{}", t.name), ..t.clone() }).collect();
    check("module. prefix", &pth(&published(&prefixed), &storages));
    let parameters: Vec<Saved> = plain.iter().map(|t| Saved { parameter: true, ..t.clone() }).collect();
    check("parameters", &pth(&published(&parameters), &storages));

    for class in ["HalfStorage", "BFloat16Storage", "DoubleStorage"] {
        let (model, storages) = model(&meta, class);
        check(class, &pth(&published(&model), &storages));
    }
}

#[test]
fn strides_and_offsets_are_followed() {
    let _turn = turn();
    let meta = small(Task::Relation);
    let (mut saved, mut storages) = model(&meta, "FloatStorage");
    let find = |saved: &mut Vec<Saved>, name: &str| saved.iter().position(|t| t.name == name).unwrap();

    // A transposed matrix: element (row, column) of 16 × 8 at column · 16 + row.
    let name = "head.0.weight";
    let at = find(&mut saved, name);
    let transposed: Vec<f32> = (0..128).map(|i| value(name, i % 16 * 8 + i / 16)).collect();
    storages.insert(saved[at].key.clone(), encode("FloatStorage", &transposed));
    saved[at].stride = vec![1, 16];

    // Every second value of a storage, from the third on.
    let name = "node_init";
    let at = find(&mut saved, name);
    let spread: Vec<f32> = (0..19).map(|i| if i < 3 { f32::NAN } else { value(name, (i - 3) / 2) }).collect();
    storages.insert(saved[at].key.clone(), encode("FloatStorage", &spread));
    (saved[at].offset, saved[at].stride, saved[at].storage_len) = (3, vec![2], 19);

    // A GRU whose weights share one storage, as on a GPU.
    let mut shared = Vec::new();
    let members: Vec<usize> = (0..saved.len()).filter(|&i| saved[i].name.starts_with("net.1.gru.")).collect();
    for &i in &members {
        saved[i].offset = shared.len();
        shared.extend(values(&saved[i].name, &saved[i].shape));
    }
    for &i in &members {
        storages.remove(&saved[i].key);
        (saved[i].key, saved[i].storage_len) = ("shared".to_string(), shared.len());
    }
    storages.insert("shared".to_string(), encode("FloatStorage", &shared));

    // The stride of a dimension of one may be any number.
    let at = find(&mut saved, "head.4.weight");
    saved[at].stride = vec![i64::MAX as usize, 1];

    assert_eq!(members.len(), 8);
    assert_eq!(import(&pth(&published(&saved), &storages)).weights.to_tensors(), tensors(&meta));
}

#[test]
fn nothing_is_executed() {
    let _turn = turn();
    let call = |module: &str, name: &str| format!("\u{80}\u{2}c{module}\n{name}\n(X\u{5}\0\0\0touchtR.");
    let latin1 = |text: String| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    for (module, name) in [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("collections", "defaultdict"),
        ("numpy.core.multiarray", "_reconstruct"),
    ] {
        let expected = format!(
            "refuses to load `{module}.{name}`: only tensors and plain containers are read, and nothing is executed"
        );
        assert_eq!(pickle_refusal(&latin1(call(module, name))), expected);
    }
    // the same by protocol 4's instruction
    let modern = Pickler::new(true).global("os", "system").op(b")R").end();
    assert!(pickle_refusal(&modern).starts_with("refuses to load `os.system`"));
    // hidden in a part that is not used
    let mut hidden = Pickler::new(false);
    hidden.op(b"}").put().op(b"(").text("model").ordered_dict().text("args").global("argparse", "Namespace");
    assert!(pickle_refusal(&hidden.op(b")Ru").end()).starts_with("refuses to load `argparse.Namespace`"));
    // a name made to deceive a terminal
    assert!(pickle_refusal(b"\x80\x02cos\x1b[2K\nsystem\n)R.").starts_with(r"refuses to load `os\u{1b}[2K.system`"));
}

#[test]
fn unknown_instructions_are_refused() {
    let _turn = turn();
    // INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT1, PERSID, STRING, REDUCE of a dictionary, BYTEARRAY8
    for opcode in [b'i', b'o', 0x81, 0x92, 0x82, b'P', b'S', 0x96] {
        let expected = format!("data.pkl: instruction {opcode:#04x} at byte 3 is not one that describes tensors");
        assert_eq!(pickle_refusal(&[0x80, 2, b'}', opcode, b'.']), expected);
    }
    for (pickle, reason) in [
        (&b"\x80\x01."[..], "a protocol other than 2 to 5"),
        (b"\x80\x02", "the pickle ends early"),
        (b"\x80\x02X\xff\xff\xff\xff.", "the pickle ends early"),
        (b"\x80\x02.", "an empty stack"),
        (b"\x80\x02N(0.", "instruction 0x30"),
        (b"\x80\x02N(\x85.", "an empty stack"),
        (b"\x80\x02t.", "a container without a start"),
        (b"\x80\x02h\x05.", "a value that was never stored"),
        (b"\x80\x02}(Nu.", "items for something that is not a dictionary"),
        (b"\x80\x02}Na.", "items for something that is not a list"),
        (b"\x80\x02}}R.", "a call of something that is not a known function"),
        (b"\x80\x02NNb.", "attributes of something that is not a dictionary"),
        (b"\x80\x02NQ.", "a reference to something that is not a storage"),
        (b"\x80\x02ccollections\nOrderedDict\n(NtR.", "a call with arguments that are not understood"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "a call with arguments that are not understood"),
        (b"\x80\x02X\x01\0\0\0\xff.", "text that is not UTF-8"),
        (b"\x80\x02N.", "the saved object is not a dictionary"),
    ] {
        let error = pickle_refusal(pickle);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn limits_hold() {
    let _turn = turn();
    let nones = |n: usize| [&b"\x80\x02("[..], &vec![b'N'; n], b"t."].concat();
    assert!(pickle_refusal(&nones(1 << 18)).contains("values in data.pkl: more than 262144"));
    assert!(pickle_refusal(&nones(1000)).contains("not a dictionary"));
    let recalled = [&b"\x80\x02Nq\0("[..], &b"h\0".repeat(1 << 18), b"t."].concat();
    assert!(pickle_refusal(&recalled).contains("values in data.pkl: more than 262144"));
    let marks = [&b"\x80\x02"[..], &[b'('; 300], b"."].concat();
    assert!(pickle_refusal(&marks).contains("nested containers: more than 256"));
    // A list that contains itself, and deep nesting by tuples of one: no recursion anywhere.
    assert!(pickle_refusal(b"\x80\x02]q\0h\0a.").contains("not a dictionary"));
    let nested = [&b"\x80\x02)"[..], &[0x85; 100_000], b"."].concat();
    assert!(pickle_refusal(&nested).contains("not a dictionary"));
    let long = vec![b'N'; (8 << 20) + 1];
    assert!(pickle_refusal(&long).contains("bytes of data.pkl: more than 8388608"));
}

#[test]
fn a_bomb_stays_packed() {
    let _turn = turn();
    // 64 MB of zeros in 64 kB: a model of that width, all its storages the same.
    let meta = Metadata { width: 64, heads: 2, updates: 1, length: 16_384, ..Metadata::published(Task::Entity) };
    let (saved, _) = model(&meta, "FloatStorage");
    let storages = saved.iter().map(|t| (t.key.clone(), vec![0; 4 * t.storage_len])).collect();
    let bomb = archive(&[("data.pkl", &bare(&saved))], &storages, CompressionMethod::Deflated);
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let error = refusal(&bomb);
    assert!(error.contains("unpacked size, in multiples of the file: more than 32"), "{error}");
    let used = MEMORY.peak_usage() - before;
    assert!(used < 40 * bomb.len() + (2 << 20), "{used} bytes for a file of {}", bomb.len());
}

#[test]
fn other_files_are_recognised() {
    let _turn = turn();
    let legacy = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";
    let safetensors = checkpoint_of(small(Task::Entity), &tensors(&small(Task::Entity))).unwrap().to_bytes().unwrap();
    let empty_archive = archive(&[("other", b"")], &Storages::new(), CompressionMethod::Stored);
    for (bytes, message) in [
        (&b""[..], "an empty file"),
        (legacy, "a file in the format of PyTorch before 1.6; hint: load and save it again with a newer PyTorch"),
        (b"\x80\x04}.", "a bare pickle; hint: save the weights with torch.save"),
        (&safetensors, "a safetensors file, which needs no import"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer; hint: download the file itself"),
        (b"<!DOCTYPE html>", "a web page; hint: download the file itself"),
        (b"\x7fELF\x02\x01", "a file of unknown format"),
        (&empty_archive, "a zip archive without a data.pkl"),
    ] {
        assert_eq!(refusal(bytes), format!("not a PyTorch zip file but {message}"));
    }
    let missing = import_pth("no/such/file.pth").unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.pth: "), "{missing}");
}

#[test]
fn unfit_archives_are_refused() {
    let _turn = turn();
    let meta = small(Task::Entity);
    let (saved, storages) = model(&meta, "FloatStorage");
    let pickle = published(&saved);

    let big = archive(&[("data.pkl", &pickle), ("byteorder", b"big")], &storages, CompressionMethod::Stored);
    assert!(refusal(&big).starts_with("byte order is `big`; only `little` is read"));

    let whole = pth(&pickle, &storages);
    let error = refusal(&whole[..whole.len() / 2]);
    assert!(error.starts_with("the zip archive is damaged or truncated"), "{error}");
    // One value changed, the checksum not.
    let mut flipped = whole.clone();
    let node_init = encode("FloatStorage", &values("node_init", &[8]));
    let at = whole.windows(32).position(|w| w == node_init).unwrap();
    flipped[at] ^= 1;
    let error = refusal(&flipped);
    assert!(error.starts_with("the zip archive is damaged or truncated: data/0"), "{error}");

    let mut fewer = storages.clone();
    fewer.remove("0");
    let expected = "tensor `node_init`: its storage data/0 is missing or does not have 32 bytes";
    assert_eq!(refusal(&pth(&pickle, &fewer)), expected);
    for len in [28, 36] {
        let mut other = storages.clone();
        other.insert("0".to_string(), vec![0; len]);
        assert_eq!(refusal(&pth(&pickle, &other)), expected);
    }
}

#[test]
fn unfit_tensors_are_refused() {
    let _turn = turn();
    let meta = small(Task::Entity);
    let (good, storages) = model(&meta, "FloatStorage");
    let refused = |change: &dyn Fn(&mut Vec<Saved>)| {
        let mut saved = good.clone();
        change(&mut saved);
        refusal(&pth(&published(&saved), &storages))
    };
    let huge = usize::MAX >> 1;
    for (error, expected) in [
        (refused(&|m| m[0].offset = 1), "`node_init`: shape [8] with strides [1] at 1 does not fit its storage of 8"),
        (refused(&|m| m[0].stride = vec![2]), "shape [8] with strides [2] at 0 does not fit its storage of 8 elements"),
        (refused(&|m| m[0].stride = vec![huge]), "does not fit its storage of 8 elements"),
        (refused(&|m| m[0].offset = huge), "does not fit its storage of 8 elements"),
        (refused(&|m| (m[0].stride, m[0].storage_len) = (vec![0], 1)), "does not fit its storage of 1 elements"),
        (refused(&|m| m[0].storage_len = huge), "is larger than any model"),
        (refused(&|m| m[0].storage_len = 9), "its storage data/0 is missing or does not have 36 bytes"),
        (
            refused(&|m| m[0].class = "LongStorage"),
            "tensor `node_init`: element type is int64; expected a floating-point",
        ),
        (refused(&|m| m[0].class = "ComplexFloatStorage"), "refuses to load `torch.ComplexFloatStorage`"),
        (refused(&|m| m[0].seventh = true), "a call with arguments that are not understood"),
        (refused(&|m| m[0].stride = vec![]), "a tensor with more dimensions than strides, or fewer"),
        (refused(&|m| m[0].shape = vec![1; 9]), "a tensor whose offset, shape or strides are not whole numbers"),
        (refused(&|m| m[1].name = "module.node_init".into()), "tensor `node_init`: named twice"),
        (
            refused(&|m| m[1].name = "extra".into()),
            "tensor `type_init` of shape [8] is missing; this seems to be a Flock",
        ),
        (refused(&|m| drop(m.pop())), "tensor `head.4.bias` of shape [1] is missing"),
        (refused(&|m| m.push(Saved { name: "extra".into(), ..m[0].clone() })), "model does not have: `extra`"),
        (
            refused(&|m| (m[1].shape, m[1].stride) = (vec![4, 2], vec![2, 1])),
            "`type_init` has shape [4, 2], expected [8]",
        ),
        (refused(&|m| (m[0].shape, m[0].stride) = (vec![huge], vec![1])), "; it must be between 1 and 1024"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
    // Two tensors that declare one storage differently.
    let twice = refused(&|m| (m[1].key, m[1].class) = ("0".into(), "DoubleStorage"));
    assert!(twice.contains("its storage data/0 is declared twice, differently"), "{twice}");

    let mut nan = storages.clone();
    nan.insert("1".to_string(), encode("FloatStorage", &[0.0, 1.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0]));
    assert!(refusal(&pth(&published(&good), &nan)).contains("tensor `type_init` has NaN at position 2"));

    let other = Pickler::new(false).op(b"}").put().op(b"(").text("epoch").op(b"K\x01").text("lr").op(b"K\x02u").end();
    assert_eq!(
        pickle_refusal(&other),
        "the saved object is a dictionary of 2 items, not all of them tensors, with keys [\"epoch\", \"lr\"]; \
         expected a `state_dict`, or a dictionary that has one under `model`"
    );
}

#[test]
fn a_file_that_pytorch_wrote() {
    let _turn = turn();
    // PyTorch 2.15.0, with value() and the names of FLOCK.md written out in Python (width 8, 2 heads, 1 update, L = 4):
    //   module.load_state_dict({name: torch.tensor([value(name, k) …]).view(shape)})
    //   module.net[0].gru.weight_ih_l0 stored transposed: weight.data = weight.data.t().contiguous().t()
    //   adamw = torch.optim.AdamW([module.node_init]), after one step
    //   torch.save({"model": module.state_dict(), "optimizer": adamw.state_dict(), "epoch": 3}, "pytorch-2.15.pth")
    let bytes = include_bytes!("data/pytorch-2.15.pth");
    let meta = Metadata { updates: 1, ..small(Task::Entity) };
    let read = import(bytes);
    assert_eq!(Metadata { note: None, ..read.meta().clone() }, meta);
    assert_eq!(read.weights.to_tensors(), tensors(&meta));
}

/// Fixed seed, xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        if self.below(8) == 0 {
            bytes.truncate(self.below(bytes.len()));
        }
        for _ in 0..1 + self.below(6) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.below(256) as u8,
                2 => bytes[at] = 0xff,
                _ => {
                    // a whole number of four bytes: lengths and offsets are the interesting places
                    let end = bytes.len().min(at + 4);
                    bytes[at..end].fill([0, 0x7f, 0xff][self.below(3)]);
                }
            }
        }
    }
}

#[test]
fn twenty_thousand_damaged_files() {
    let _turn = turn();
    let meta = Metadata { updates: 1, ..small(Task::Entity) };
    let (saved, storages) = model(&meta, "FloatStorage");
    let pickle = published(&saved);
    let stored = pth(&pickle, &storages);
    let deflated = archive(&[("data.pkl", &pickle)], &storages, CompressionMethod::Deflated);
    let central = stored.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let bound = 1 << 20;

    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut refused, mut largest) = (0, 0);
    for round in 0..20_000 {
        let bytes = match round % 4 {
            // anywhere in the file
            0 => {
                let mut bytes = stored.clone();
                random.damage(&mut bytes);
                bytes
            }
            1 => {
                let mut bytes = deflated.clone();
                random.damage(&mut bytes);
                bytes
            }
            // in the archive's directory
            2 => {
                let mut directory = stored[central..].to_vec();
                random.damage(&mut directory);
                [&stored[..central], &directory].concat()
            }
            // in the pickle, with a checksum that agrees
            _ => {
                let mut pickle = pickle.clone();
                random.damage(&mut pickle);
                pth(&pickle, &storages)
            }
        };
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        refused += usize::from(import_pth_bytes("damaged", &bytes).is_err());
        largest = largest.max(MEMORY.peak_usage().saturating_sub(before));
    }
    eprintln!("{refused} of 20000 refused; the most memory for one was {largest} bytes");
    assert!(refused > 15_000, "{refused}");
    assert!(largest < bound, "{largest} bytes for a file of {}", stored.len());
}

/// The seeds of the fuzz target, run without a fuzzer: whole and cut short.
#[test]
fn seeds_of_the_fuzz_target() {
    let _turn = turn();
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/pth");
    let mut count = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(entry.unwrap().path()).unwrap();
        (0..=seed.len()).for_each(|len| target::run(&seed[..len]));
        count += 1;
    }
    assert!(count >= 3, "{seeds} has {count} seeds");
}
