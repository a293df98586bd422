// The answers to a question: new ones first, those that the graph has in a folded group below.
//
// The stream brings the best new answers. All answers, which the known group, a long list and a download need, are asked for once,
// when someone wants them: the same seed gives the same numbers.
import { $, button, count, element, percent, plural } from "./dom.js";
import { post } from "./api.js";
import { show, write } from "./names.js";
import { state } from "./state.js";

export const STREAMED = 100; // answers in each reply of the stream: the most that get reasons
const FIRST = 10, MORE = 20;
const ALL = 100000; // the most that the server lists

// What is shown: the question, its last reply, the chosen answer, all answers once they were asked for, and how many rows are open.
const table = { query: null, reply: null, done: false, chosen: null, all: null, asking: null, rows: FIRST, known: FIRST };
let choose = () => {};
export const whenChosen = (run) => (choose = run);

export const arrows = (steps) => steps.map((s) => (s.forward ? ` —${show(s.relation)}→ ${show(s.to)}` : ` ←${show(s.relation)}— ${show(s.to)}`)).join("");
// Of a long path its first and its last two steps.
export const line = ({ start, steps }) =>
  show(start) + (steps.length > 5 ? `${arrows(steps.slice(0, 2))} … ${steps.length - 4} steps …${arrows(steps.slice(-2))}` : arrows(steps));

// Begins a new question; null for none.
export function begin(query) {
  Object.assign(table, { query, reply: null, done: false, chosen: null, all: null, asking: null, rows: FIRST, known: FIRST });
  $("known").open = false;
  draw();
}

export function take(reply, done) {
  Object.assign(table, { reply, done });
  draw();
}

export function mark(name) {
  table.chosen = name;
  for (const row of document.querySelectorAll("#view-ask tr[data-name]")) {
    row.setAttribute("aria-selected", String(row.dataset.name === name));
  }
}

// The words for the number beside an answer: a score, until a calibration makes it a probability.
export function measure(reply) {
  const from = reply?.probability_from || (reply?.calibration ? "graph" : null);
  return {
    score: { word: "Score", why: "How well the answer fits, from 0 to 1. It puts answers in order, but is no probability: the model is not calibrated on this graph." },
    default: { word: "Probability", why: "Calibrated on other graphs than this one: a fair guess at how often such an answer is true." },
    graph: { word: "Probability", why: "Calibrated on held-out triples of this graph: how often an answer with this score is true." },
  }[from] || { word: "Probability", why: "σ of the model's logit." };
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

function row(a) {
  const tr = element("tr", null, { "aria-selected": String(a.name === table.chosen) });
  tr.dataset.name = a.name;
  const pick = write(button(null, () => choose(a.name)), a.name);
  pick.dataset.name = a.name;
  const name = element("td", null, { class: "name" }, pick);
  if (a.reason) name.append(element("small", line(a.reason), { title: line(a.reason) }));
  const bar = element("div", null, { class: "bar", title: `logit ${a.logit.toFixed(3)}${a.spread === null ? "" : ` ± ${a.spread.toFixed(3)} over the passes`}` });
  const fill = element("i");
  fill.style.width = `${100 * a.probability}%`;
  bar.append(fill);
  // Spread is in logits: beside a calibrated number it would have no scale.
  if (a.spread !== null && ["score", null].includes(table.reply.probability_from ?? null) && !table.reply.calibration) {
    const spread = element("u");
    const [low, high] = [sigmoid(a.logit - a.spread), sigmoid(a.logit + a.spread)];
    spread.style.left = `${100 * low}%`;
    spread.style.width = `${Math.max(100 * (high - low), 0.5)}%`;
    bar.append(spread);
  }
  const number = element("td", null, { class: "number" }, element("b", percent(a.probability)), bar);
  tr.append(element("td", count(a.rank)), name, number, element("td", a.visits === null ? "–" : count(a.visits)));
  return tr;
}

// Rows are made anew: who had the focus keeps it.
function fill(body, list) {
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  body.replaceChildren(...list.map(row));
  if (focused !== null) [...body.querySelectorAll("button")].find((b) => b.dataset.name === focused)?.focus();
}

// The new answers there are to show.
const fresh = () => table.all?.fresh || table.reply?.answers || [];
const candidates = () => (table.query?.[1] === "?" ? state.info?.relations : state.info?.entities) ?? 0;
// Known answers are no candidates of the stream, so the difference counts them.
const knownCount = () => (table.all ? table.all.knownCount : table.reply ? Math.max(candidates() - table.reply.candidates, 0) : 0);

export function draw() {
  const { reply, done } = table;
  const list = fresh();
  fill($("answers").tBodies[0], list.slice(0, table.rows));
  const { word, why } = measure(reply);
  for (const th of document.querySelectorAll("#view-ask th.measure")) {
    th.textContent = word;
    th.title = why;
  }
  $("answers").hidden = !list.length;
  $("rest").textContent = "";
  $("take").hidden = !done || !(list.length || knownCount());
  $("more").hidden = !done || table.rows >= most();
  $("more").textContent = `More (next ${Math.min(MORE, most() - table.rows)})`;
  const n = done ? knownCount() : 0;
  $("known").hidden = !n;
  $("known-title").textContent = `${plural(n, "known answer")}: ${n === 1 ? "the graph has it already" : "the graph has them already"}`;
  drawKnown();
  if (!reply) return;
  const u = reply.unreached;
  const words = { score: "Scores are not calibrated: they order answers, but are no probabilities.", default: "Probabilities are calibrated on other graphs." };
  const by = reply.calibration && reply.probability_from !== "default" ? `Probabilities are calibrated on this graph (expected error ${reply.calibration.error_after.toFixed(3)}).` : words[reply.probability_from] || "";
  const rest = u.count ? `${count(u.count)} of ${count(reply.candidates)} candidates were not reached by any walk; they share ${percent(u.probability)} (rank ${count(u.rank)}).` : "";
  const unused = reply.calibration_unused ? `The calibration of this graph was not used: ${reply.calibration_unused}.` : "";
  $("rest").textContent = [rest, by, unused].filter(Boolean).join(" ");
}

// How many new answers can be listed: those that a walk reached.
function most() {
  if (table.all) return table.all.fresh.length;
  const { reply } = table;
  if (!reply) return 0;
  return reply.answers.length < STREAMED ? reply.answers.length : Math.max(reply.candidates - reply.unreached.count, reply.answers.length);
}

function drawKnown() {
  const list = table.all?.known || [];
  fill($("known-answers").tBodies[0], list.slice(0, table.known));
  $("known-answers").hidden = !list.length;
  $("known-more").hidden = table.known >= list.length;
  $("known-more").textContent = `More (next ${Math.min(MORE, list.length - table.known)})`;
  const missing = table.all ? table.all.knownCount - list.length : 0;
  $("known-rest").textContent = table.all ? (missing ? `${plural(missing, "more known answer")} ${missing === 1 ? "was" : "were"} not reached by any walk.` : "") : "asking for them…";
}

// All answers that walks reached, with the rank among new ones beside the rank among all.
export function everything() {
  if (table.asking) return table.asking;
  const asking = (table.asking = (async () => {
    const { query, reply } = table;
    const full = await post("predict", { query, passes: reply.passes, top: ALL });
    const expected = Math.max(candidates() - reply.candidates, 0);
    const reasons = new Map(reply.answers.filter((a) => a.reason).map((a) => [a.name, a.reason]));
    const known = full.answers.filter((a) => a.known);
    const hidden = Math.max(expected - known.length, 0); // known, but not reached by any walk
    let above = 0, next = 0; // known answers with a strictly higher logit
    const all = full.answers.map((a) => {
      while (next < known.length && known[next].logit > a.logit) {
        next++;
        above++;
      }
      const out = above + (full.unreached.logit > a.logit ? hidden : 0);
      const reason = reasons.get(a.name);
      return { ...a, rank: a.rank - out, rank_among_all: a.rank, ...(reason ? { reason } : {}) };
    });
    const found = { reply: full, all, fresh: all.filter((a) => !a.known), known: all.filter((a) => a.known), knownCount: Math.max(expected, known.length) };
    if (table.query === query) table.all = found;
    return found;
  })());
  asking.catch(() => table.asking === asking && (table.asking = null)); // to try again
  return asking;
}

// The rows that one sees.
export const visible = () => [...fresh().slice(0, table.rows), ...($("known").open ? (table.all?.known || []).slice(0, table.known) : [])];
export const question = () => ({ query: table.query, reply: table.reply });

export function listen(failed) {
  const grow = async () => {
    const query = table.query, from = table.rows;
    table.rows += MORE;
    if (table.rows > fresh().length && !table.all) {
      $("more").disabled = true;
      $("more").textContent = "asking for more…";
      try {
        await everything();
      } catch (e) {
        table.rows = from;
        failed(e);
      } finally {
        $("more").disabled = false;
      }
      if (table.query !== query) return;
    }
    draw();
    $("answers").querySelectorAll("tbody button")[from]?.focus();
  };
  $("more").onclick = grow;
  $("known-more").onclick = () => {
    const from = table.known;
    table.known += MORE;
    drawKnown();
    $("known-answers").querySelectorAll("tbody button")[from]?.focus();
  };
  $("known").addEventListener("toggle", async () => {
    if (!$("known").open || table.all || !table.reply) return;
    const query = table.query;
    drawKnown();
    try {
      await everything();
      if (table.query === query) draw();
    } catch (e) {
      $("known-rest").textContent = e.message;
    }
  });
  for (const id of ["answers", "known-answers"]) {
    $(id).addEventListener("keydown", (e) => {
      if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
      const buttons = [...document.querySelectorAll("#view-ask tbody button")].filter((b) => b.offsetParent);
      const next = buttons[buttons.indexOf(document.activeElement) + (e.key === "ArrowDown" ? 1 : -1)];
      if (next) {
        e.preventDefault();
        next.focus();
      }
    });
  }
}

