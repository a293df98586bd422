// Answers to take away: all of them as a file, or those in sight to the clipboard.
import { $ } from "./dom.js";
import { everything, line, measure, question, visible } from "./answers.js";
import { label } from "./names.js";
import { state } from "./state.js";
import { quoted } from "./table.js";

// One line for an answer. A column of labels only where there are some.
function columns(list, reply) {
  const word = measure(reply).word.toLowerCase();
  return [
    ["rank", (a) => a.rank],
    ["rank_among_all", (a) => a.rank_among_all],
    ["answer", (a) => a.name],
    ...(list.some((a) => label(a.name)) ? [["label", (a) => label(a.name)]] : []),
    [word, (a) => a.probability],
    ["logit", (a) => a.logit],
    ["spread", (a) => a.spread],
    ["visits", (a) => a.visits],
    ["state", (a) => (a.known ? "known" : "new")],
    ["reason", (a) => (a.reason ? line(a.reason) : null)],
  ];
}

const text = (value) => (value === null || value === undefined ? "" : String(value));

function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A name for the file: the question, as far as file systems like it.
function fileName(query, extension) {
  const parts = query.map((t) => (t === "?" ? "what" : label(t) || t.split(/[/#]/).pop()));
  return `${parts.join("-").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "answers"}.${extension}`;
}

const csv = (list, reply) => {
  const all = columns(list, reply);
  const rows = [all.map(([name]) => name), ...list.map((a) => all.map(([, of]) => quoted(text(of(a)))))];
  return rows.map((r) => `${r.join(",")}\r\n`).join("");
};

const json = (list, reply) => {
  const answers = list.map((a) => ({ ...a, ...(label(a.name) ? { label: label(a.name) } : {}) }));
  return `${JSON.stringify({ graph: state.info?.name, ...reply, answers }, null, 1)}\n`;
};

async function download(extension, type, make) {
  const { query } = question();
  $("taken").textContent = "collecting all answers…";
  try {
    const { reply, fresh, known } = await everything();
    const list = [...fresh, ...known];
    save(fileName(query, extension), type, make(list, reply));
    $("taken").textContent = `${list.length} answers saved: ${fresh.length} new, then ${known.length} known.`;
  } catch (e) {
    $("taken").textContent = e.message;
  }
}

async function copy() {
  const list = visible();
  const all = columns(list, question().reply).filter(([name]) => name !== "rank_among_all");
  const plain = (value) => text(value).replace(/[\t\r\n]+/g, " ");
  const rows = [all.map(([name]) => name), ...list.map((a) => all.map(([, of]) => plain(of(a))))];
  const content = rows.map((r) => `${r.join("\t")}\n`).join("");
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // Browsers give the clipboard to secure pages only; the old way works elsewhere.
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return void ($("taken").textContent = "The browser does not let this page copy; download the answers instead.");
  }
  $("taken").textContent = `${list.length} rows copied: those in sight.`;
}

export function listen() {
  $("copy").onclick = copy;
  $("csv").onclick = () => download("csv", "text/csv", csv);
  $("json").onclick = () => download("json", "application/json", json);
}
