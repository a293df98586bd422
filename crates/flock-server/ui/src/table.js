// The beginning of a file as a table, read in the browser: what the column picker shows. The server decides what a file is; this only
// helps to choose columns where it cannot.

const PEEK = 256 << 10; // bytes
const ROWS = 200;

const SEPARATORS = { "\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars" };

// The separator and the first rows, or null if the file is no table of text.
export async function peek(file) {
  const text = await beginning(file);
  if (text === null) return null;
  const separator = separatorOf(text);
  if (!separator) return null;
  const rows = parse(text, separator, ROWS);
  // The last row may have been cut off in the middle.
  if (text.length >= PEEK / 4 && rows.length < ROWS && rows.length > 1) rows.pop();
  return rows.length ? { separator, rows } : null;
}

async function beginning(file) {
  const packed = await isPacked(file);
  const bytes = packed ? await unpack(file) : new Uint8Array(await file.slice(0, PEEK).arrayBuffer());
  if (!bytes?.length || bytes.includes(0)) return null; // binary, or packed in a way that browsers do not know
  const text = new TextDecoder().decode(bytes).replace(/^\uFEFF/, "");
  // RDF, XML and JSON have no columns.
  return /^\s*(<|@prefix|@base|prefix\s|base\s|[[{]\s*["[{])/i.test(text) && !/^[^\n]*\t[^\n]*\t/.test(text) ? null : text;
}

async function isPacked(file) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return first === 0x1f && second === 0x8b; // gzip
}

// All the text of a file.
export async function textOf(file) {
  const bytes = (await isPacked(file)) ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file;
  return (await new Response(bytes).text()).replace(/^\uFEFF/, "");
}

// The first bytes of a gzip file.
async function unpack(file) {
  const parts = [];
  let length = 0;
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  try {
    while (length < PEEK) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
    }
  } catch {
    return null;
  } finally {
    reader.cancel().catch(() => {});
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function separatorOf(text) {
  const first = text.split("\n").find((line) => line.trim()) || "";
  const times = (c) => first.split(c).length - 1;
  if (times("\t") >= 2) return "\t";
  const best = [",", ";", "|"].sort((a, b) => times(b) - times(a))[0];
  if (times(best) >= 2) return best;
  return null;
}

export const separatorName = (separator) => SEPARATORS[separator];

// Rows of fields. Tabs know no quotes; the others are read as RFC 4180 has it.
export function parse(text, separator, most = Infinity) {
  const rows = [];
  if (separator === "\t") {
    for (const line of text.split(/\r?\n/)) {
      if (line.trim()) rows.push(line.split("\t"));
      if (rows.length >= most) break;
    }
    return rows;
  }
  let row = [], field = "", quoted = false;
  const end = () => {
    row.push(field);
    if (row.length > 1 || field.trim()) rows.push(row);
    row = [];
    field = "";
  };
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[i++];
      else quoted = false;
    } else if (c === '"' && field === "") quoted = true;
    else if (c === separator) {
      row.push(field);
      field = "";
    } else if (c === "\n") end();
    else if (c !== "\r" || text[i + 1] !== "\n") field += c;
  }
  if (rows.length < most && (row.length || field)) end();
  return rows;
}

// A field of CSV, quoted where it must be.
export const quoted = (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field);

// Words that headers use for head, relation and tail.
const WORDS = [
  /^(head|subject|source|from|start|node1|s|h|x)(_?(id|name))?$|:START_ID/i,
  /^(relation|predicate|property|type|label|edge|rel|display_relation|p|r)(_?(id|name|label|type))?$|:TYPE/i,
  /^(tail|object|target|to|end|node2|o|t|y)(_?(id|name))?$|:END_ID/i,
];

// The columns of head, relation and tail if a row has names for all three, else null.
export function namedColumns(row) {
  const named = WORDS.map((word) => [...row.keys()].find((i) => word.test(row[i].trim())));
  return named.every((i) => i !== undefined) && new Set(named).size === 3 ? named : null;
}

// A guess at the header and the columns of head, relation and tail, to begin the choice with.
export function guess(rows) {
  const width = Math.max(...rows.map((r) => r.length));
  const all = [...Array(width).keys()];
  const named = namedColumns(rows[0]);
  if (named) return { header: true, columns: named };
  // A first row whose fields come nowhere again looks like names of columns.
  const later = new Set(rows.slice(1).flat());
  const header = rows.length > 3 && rows[0].every((f) => f.trim() && !/^[-+.\d]+$/.test(f)) && !rows[0].some((f) => later.has(f));
  // Relations repeat more than entities do. Numbers and empty fields are neither.
  const body = rows.slice(header ? 1 : 0);
  const values = all.map((i) => body.map((r) => r[i] || "").filter(Boolean));
  const likely = all.filter((i) => values[i].length > body.length / 2 && !values[i].every((v) => /^[-+.\deE]+$/.test(v)));
  const from = likely.length >= 3 ? likely : all;
  const distinct = (i) => new Set(values[i]).size;
  const fewest = Math.min(...from.map(distinct));
  const middle = from[1];
  const relation = body.length < 3 || distinct(middle) === fewest ? middle : from.find((i) => distinct(i) === fewest);
  const ends = from.filter((i) => i !== relation);
  return { header, columns: [ends[0], relation, ends[1]] };
}
