// Answers to take away: all of them as a file, or those in sight to the clipboard.
import { $ } from "./dom.js";
import { everything, line, measure, question, visible } from "./answers.js";
import { label } from "./names.js";
import * as rows from "./rows.js";
import { state } from "./state.js";

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

const csv = (list, reply) => rows.csv(columns(list, reply), list);

const json = (list, reply) => {
  const answers = list.map((a) => ({ ...a, ...(label(a.name) ? { label: label(a.name) } : {}) }));
  return `${JSON.stringify({ graph: state.info?.name, ...reply, answers }, null, 1)}\n`;
};

async function download(extension, make) {
  const { query } = question();
  $("taken").textContent = "collecting all answers…";
  try {
    const { reply, fresh, known } = await everything();
    const list = [...fresh, ...known];
    rows.save(query.map((t) => (t === "?" ? "what" : t)), extension, make(list, reply));
    $("taken").textContent = `${list.length} answers saved: ${fresh.length} new, then ${known.length} known.`;
  } catch (e) {
    $("taken").textContent = e.message;
  }
}

async function copy() {
  const list = visible();
  const all = columns(list, question().reply).filter(([name]) => name !== "rank_among_all");
  $("taken").textContent = await rows.copy(all, list);
}

export function listen() {
  $("copy").onclick = copy;
  $("csv").onclick = () => download("csv", csv);
  $("json").onclick = () => download("json", json);
}
