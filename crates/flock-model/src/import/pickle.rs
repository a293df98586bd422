//! A pickle reader that executes nothing: it builds containers, strings, integers and views of storages, and that is all.
//!
//! A pickle is a program for a stack machine. Python's runs any function the program names; this one knows the
//! instructions and the few names that `torch.save` needs for a `state_dict` (protocols 2 to 5), and treats each name as
//! a description: `_rebuild_tensor_v2` becomes a [`TensorView`], not a call. Anything else is an error that says what.
//!
//! Values live in one arena and refer to each other by number, so shared and even cyclic objects cost nothing and no
//! step recurses. Contents nobody asks for (lists, floats, bytes, attributes) are dropped as they are read.

use std::collections::HashMap;

use super::ImportProblem;

/// The most values a pickle may build, put on the stack or remember; a published model needs about 15,000.
const MAX_VALUES: usize = 1 << 18;
/// The deepest nesting of containers under construction.
const MAX_DEPTH: usize = 256;
/// The most dimensions of a tensor.
const MAX_DIMENSIONS: usize = 8;

type Result<T> = std::result::Result<T, ImportProblem>;

/// A value's place in the arena.
pub(super) type Id = u32;
/// A dictionary's items, in the order they were set.
pub(super) type Dict = Vec<(Id, Id)>;

/// Element type of a storage.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Element {
    F16,
    BF16,
    F32,
    F64,
    /// One that weights do not have, such as `LongStorage`.
    Other(&'static str),
}

/// Raw values in the archive.
#[derive(Clone, Debug)]
pub(super) struct Storage<'a> {
    pub(super) element: Element,
    pub(super) key: &'a str,
    /// How many elements it has.
    pub(super) len: u64,
}

/// A tensor: a strided view of a storage. Offset and strides count elements.
#[derive(Clone, Debug)]
pub(super) struct TensorView<'a> {
    pub(super) storage: Storage<'a>,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) stride: Vec<usize>,
}

/// The names that may be loaded.
#[derive(Copy, Clone)]
enum Global {
    OrderedDict,
    Size,
    RebuildTensor,
    RebuildParameter,
    Storage(Element),
}

impl Global {
    fn named(module: &str, name: &str) -> Option<Global> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Global::OrderedDict,
            ("torch", "Size") => Global::Size,
            ("torch._utils", "_rebuild_tensor_v2") => Global::RebuildTensor,
            ("torch._utils", "_rebuild_parameter") => Global::RebuildParameter,
            ("torch", "HalfStorage") => Global::Storage(Element::F16),
            ("torch", "BFloat16Storage") => Global::Storage(Element::BF16),
            ("torch", "FloatStorage") => Global::Storage(Element::F32),
            ("torch", "DoubleStorage") => Global::Storage(Element::F64),
            ("torch", "LongStorage") => Global::Storage(Element::Other("int64")),
            ("torch", "IntStorage") => Global::Storage(Element::Other("int32")),
            ("torch", "ShortStorage") => Global::Storage(Element::Other("int16")),
            ("torch", "CharStorage") => Global::Storage(Element::Other("int8")),
            ("torch", "ByteStorage") => Global::Storage(Element::Other("uint8")),
            ("torch", "BoolStorage") => Global::Storage(Element::Other("bool")),
            _ => return None,
        })
    }
}

enum Value<'a> {
    /// None, a truth value, a float, bytes: something nobody asks for.
    Atom,
    Int(i64),
    Str(&'a str),
    Tuple(Vec<Id>),
    /// Its items are dropped.
    List,
    Dict(Dict),
    Global(Global),
    Storage(Storage<'a>),
    Tensor(TensorView<'a>),
}

/// What a pickle described.
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: Id,
}

impl<'a> Pickle<'a> {
    /// Returns the object that was saved.
    pub(super) fn root(&self) -> Id {
        self.root
    }

    pub(super) fn dict(&self, id: Id) -> Option<&Dict> {
        match self.values.get(id as usize)? {
            Value::Dict(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn str(&self, id: Id) -> Option<&'a str> {
        match self.values.get(id as usize)? {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn tensor(&self, id: Id) -> Option<&TensorView<'a>> {
        match self.values.get(id as usize)? {
            Value::Tensor(view) => Some(view),
            _ => None,
        }
    }

    /// Returns the value of a key; the last one set, as in Python.
    pub(super) fn get(&self, dict: &Dict, key: &str) -> Option<Id> {
        dict.iter().rev().find(|&&(k, _)| self.str(k) == Some(key)).map(|&(_, value)| value)
    }
}

/// Reads a pickle up to its STOP.
pub(super) fn read(bytes: &[u8]) -> Result<Pickle<'_>> {
    let mut reader =
        Reader { bytes, at: 0, values: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    loop {
        if let Some(root) = reader.step()? {
            return Ok(Pickle { values: reader.values, root });
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack at the open MARKs.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Reader<'a> {
    /// One instruction; the saved object once it is STOP.
    fn step(&mut self) -> Result<Option<Id>> {
        let offset = self.at;
        let opcode = self.byte()?;
        match opcode {
            0x80 => match self.byte()? {
                2..=5 => {}
                _ => return Err(self.error("a protocol other than 2 to 5")),
            },
            0x95 => drop(self.take(8)?), // FRAME: a length that only helps buffering
            b'.' => return self.pop().map(Some),

            b'N' | 0x88 | 0x89 => self.push(Value::Atom)?,
            b'K' => {
                let n = self.byte()?;
                self.push(Value::Int(n.into()))?;
            }
            b'M' => {
                let n = u16::from_le_bytes(self.array()?);
                self.push(Value::Int(n.into()))?;
            }
            b'J' => {
                let n = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(n.into()))?;
            }
            0x8a => {
                let n = self.byte()?.into();
                let value = long(self.take(n)?);
                self.push(value)?;
            }
            b'G' => {
                self.take(8)?;
                self.push(Value::Atom)?;
            }
            0x8c => {
                let n = self.byte()?.into();
                self.text(n)?;
            }
            b'X' => {
                let n = u32::from_le_bytes(self.array()?).into();
                self.text(n)?;
            }
            0x8d => {
                let n = u64::from_le_bytes(self.array()?);
                self.text(n)?;
            }
            b'C' => {
                let n = self.byte()?.into();
                self.skip(n)?;
            }
            b'B' => {
                let n = u32::from_le_bytes(self.array()?).into();
                self.skip(n)?;
            }

            b'(' => {
                if self.marks.len() == MAX_DEPTH {
                    return Err(ImportProblem::Limit { what: "nested containers", limit: MAX_DEPTH as u64 });
                }
                self.marks.push(self.stack.len());
            }
            b')' => self.push(Value::Tuple(Vec::new()))?,
            0x85..=0x87 => {
                let items = self.pop_n(usize::from(opcode - 0x84))?;
                self.push(Value::Tuple(items))?;
            }
            b't' => {
                let items = self.pop_mark()?;
                self.push(Value::Tuple(items))?;
            }
            b']' => self.push(Value::List)?,
            b'a' => {
                self.pop()?;
                self.list()?;
            }
            b'e' => {
                self.pop_mark()?;
                self.list()?;
            }
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b's' => {
                let pair = self.pop_n(2)?;
                self.set_items(&pair)?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }

            b'q' => {
                let slot = self.byte()?.into();
                self.remember(slot)?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.remember(slot)?;
            }
            // The memo never holds more than MAX_VALUES entries: its length is a u32.
            0x94 => self.remember(self.memo.len() as u32)?,
            b'h' => {
                let slot = self.byte()?.into();
                self.recall(slot)?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.recall(slot)?;
            }

            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            0x93 => {
                let pair = self.pop_n(2)?;
                let (Some(module), Some(name)) = (self.str(pair[0]), self.str(pair[1])) else {
                    return Err(self.error("a global whose name is not text"));
                };
                self.global(module, name)?;
            }
            b'Q' => {
                let id = self.pop()?;
                let storage = self.storage(id)?;
                self.push(Value::Storage(storage))?;
            }
            b'R' => {
                let arguments = self.pop()?;
                let callable = self.pop()?;
                self.reduce(callable, arguments)?;
            }
            b'b' => {
                // Attributes: of a state_dict, the versions of its modules. Not needed.
                self.pop()?;
                if !matches!(self.top()?, Value::Dict(_)) {
                    return Err(self.error("attributes of something that is not a dictionary"));
                }
            }
            _ => return Err(ImportProblem::Opcode { opcode, offset }),
        }
        Ok(None)
    }

    /// What calling a global would have made.
    fn reduce(&mut self, callable: Id, arguments: Id) -> Result<()> {
        let (Value::Global(global), Value::Tuple(arguments)) =
            (&self.values[callable as usize], &self.values[arguments as usize])
        else {
            return Err(self.error("a call of something that is not a known function"));
        };
        match (global, arguments.as_slice()) {
            (Global::OrderedDict, []) => self.push(Value::Dict(Vec::new())),
            (Global::Size, &[sizes]) => self.push_id(sizes),
            (Global::RebuildParameter, &[tensor, _, _]) => self.push_id(tensor),
            (Global::RebuildTensor, &[storage, offset, shape, stride, _, _]) => {
                let view = self.view(storage, offset, shape, stride)?;
                self.push(Value::Tensor(view))
            }
            // A seventh argument carries flags such as "negated", which change the values.
            _ => Err(self.error("a call with arguments that are not understood")),
        }
    }

    fn view(&self, storage: Id, offset: Id, shape: Id, stride: Id) -> Result<TensorView<'a>> {
        let Value::Storage(storage) = &self.values[storage as usize] else {
            return Err(self.error("a tensor without a storage"));
        };
        let bad = || self.error("a tensor whose offset, shape or strides are not whole numbers");
        let (shape, stride) = (self.sizes(shape).ok_or_else(bad)?, self.sizes(stride).ok_or_else(bad)?);
        if shape.len() != stride.len() {
            return Err(self.error("a tensor with more dimensions than strides, or fewer"));
        }
        Ok(TensorView { storage: storage.clone(), offset: self.size(offset).ok_or_else(bad)?, shape, stride })
    }

    /// ('storage', torch.FloatStorage, '0', 'cpu', 4096)
    fn storage(&self, id: Id) -> Result<Storage<'a>> {
        if let Value::Tuple(parts) = &self.values[id as usize]
            && let &[tag, class, key, _location, len] = parts.as_slice()
            && self.str(tag) == Some("storage")
            && let Value::Global(Global::Storage(element)) = self.values[class as usize]
            && let (Some(key), Some(len)) = (self.str(key), self.size(len))
        {
            return Ok(Storage { element, key, len: len as u64 });
        }
        Err(self.error("a reference to something that is not a storage"))
    }

    fn global(&mut self, module: &str, name: &str) -> Result<()> {
        match Global::named(module, name) {
            Some(global) => self.push(Value::Global(global)),
            None => {
                let name: String = format!("{module}.{name}").escape_debug().take(120).collect();
                Err(ImportProblem::Global(name))
            }
        }
    }

    fn str(&self, id: Id) -> Option<&'a str> {
        match self.values[id as usize] {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    fn size(&self, id: Id) -> Option<usize> {
        match self.values[id as usize] {
            Value::Int(n) => usize::try_from(n).ok(),
            _ => None,
        }
    }

    fn sizes(&self, id: Id) -> Option<Vec<usize>> {
        match &self.values[id as usize] {
            Value::Tuple(items) if items.len() <= MAX_DIMENSIONS => items.iter().map(|&i| self.size(i)).collect(),
            _ => None,
        }
    }

    fn push(&mut self, value: Value<'a>) -> Result<()> {
        // The limit keeps every place in the arena a u32.
        let id = self.values.len() as Id;
        if self.values.len() == MAX_VALUES {
            return Err(self.too_many());
        }
        self.values.push(value);
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<()> {
        if self.stack.len() == MAX_VALUES {
            return Err(self.too_many());
        }
        self.stack.push(id);
        Ok(())
    }

    /// The part of the stack above the last MARK starts here; nothing below may be popped.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id> {
        if self.stack.len() <= self.floor() {
            return Err(self.error("an empty stack"));
        }
        self.stack.pop().ok_or_else(|| self.error("an empty stack"))
    }

    fn pop_n(&mut self, n: usize) -> Result<Vec<Id>> {
        if self.stack.len() < self.floor() + n {
            return Err(self.error("an empty stack"));
        }
        Ok(self.stack.split_off(self.stack.len() - n))
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop().ok_or_else(|| self.error("a container without a start"))?;
        Ok(self.stack.split_off(mark))
    }

    fn top(&mut self) -> Result<&mut Value<'a>> {
        let id = self.pop()?;
        self.stack.push(id);
        Ok(&mut self.values[id as usize])
    }

    fn list(&mut self) -> Result<()> {
        match self.top()? {
            Value::List => Ok(()),
            _ => Err(self.error("items for something that is not a list")),
        }
    }

    fn set_items(&mut self, items: &[Id]) -> Result<()> {
        let (pairs, rest) = items.as_chunks::<2>();
        match self.top()? {
            Value::Dict(dict) if rest.is_empty() => {
                dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
                Ok(())
            }
            _ => Err(self.error("items for something that is not a dictionary")),
        }
    }

    fn remember(&mut self, slot: u32) -> Result<()> {
        let id = self.pop()?;
        self.stack.push(id);
        if self.memo.len() == MAX_VALUES {
            return Err(self.too_many());
        }
        self.memo.insert(slot, id);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<()> {
        let id = self.memo.get(&slot).copied().ok_or_else(|| self.error("a value that was never stored"))?;
        self.push_id(id)
    }

    fn text(&mut self, len: u64) -> Result<()> {
        let bytes = self.take(len)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.error("text that is not UTF-8"))?;
        self.push(Value::Str(text))
    }

    fn skip(&mut self, len: u64) -> Result<()> {
        self.take(len)?;
        self.push(Value::Atom)
    }

    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&b| b == b'\n').ok_or_else(|| self.error("a name without an end"))?;
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).map_err(|_| self.error("a name that is not UTF-8"))
    }

    fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, _) =
            self.bytes[self.at..].split_first_chunk().ok_or_else(|| self.error("the pickle ends early"))?;
        self.at += N;
        Ok(*array)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or_else(|| self.error("the pickle ends early"))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn error(&self, reason: &'static str) -> ImportProblem {
        ImportProblem::Pickle { reason, offset: self.at }
    }

    fn too_many(&self) -> ImportProblem {
        ImportProblem::Limit { what: "values in data.pkl", limit: MAX_VALUES as u64 }
    }
}

/// A little-endian two's complement number; one that fits no `i64` is of no interest.
fn long<'a>(bytes: &[u8]) -> Value<'a> {
    if bytes.len() > 8 {
        return Value::Atom;
    }
    let fill = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
    let mut all = [fill; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(all))
}
