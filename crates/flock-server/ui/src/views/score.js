// The view "Score": how likely given triples are, and where they stand among their alternatives.
import { $, button, count, element, percent, plural } from "../dom.js";
import { post } from "../api.js";
import * as address from "../address.js";
import { measure } from "../answers.js";
import { combobox } from "../combobox.js";
import * as evidence from "../evidence.js";
import * as list from "../list.js";
import { show, whole } from "../names.js";
import { problem } from "../problem.js";
import * as rows from "../rows.js";
import { PLACES, state } from "../state.js";
import { namedColumns } from "../table.js";

const FIRST = 50, MORE = 50, FAILED = 10;
const AT_ONCE = 4; // triples in the first request; later ones have as many as take about STEP
const STEP = 1500; // milliseconds
const ADDRESS = 3000; // characters of triples that an address can carry

const boxes = PLACES.map((place) => combobox(`score-${place}`, place === "relation" ? "relations" : "entities"));
// The lines to score, each with its triple, and then its score or what is wrong with it.
const now = { items: [], header: false, text: null, reply: null, working: null, chosen: null, rows: FIRST, failed: FAILED, said: "" };

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// The fields of a line with commas. People write a space after them, before quotes too.
function commas(line) {
  const field = /\s*(?:"((?:[^"]|"")*)"\s*|([^,]*))(,|$)/y;
  const fields = [];
  for (let m; (m = field.exec(line)); ) {
    fields.push(m[1] === undefined ? m[2] : m[1].replaceAll('""', '"'));
    if (!m[3]) break;
  }
  return fields;
}

// The lines of a text. A header with names of columns says where head, relation and tail are.
function read(text) {
  const fieldsOf = (line) => (line.includes("\t") ? line.split("\t") : commas(line)).map((f) => f.trim());
  const lines = text.split(/\r?\n/).map((line, i) => ({ line, number: i + 1 })).filter(({ line }) => line.trim());
  const named = lines.length > 1 ? namedColumns(fieldsOf(lines[0].line)) : null;
  const items = lines.slice(named ? 1 : 0).map(({ line, number }) => {
    const found = fieldsOf(line);
    const triple = named ? named.map((i) => found[i] || "") : found;
    if (triple.length === 3 && triple.every(Boolean)) return { line, triple };
    const wrong = triple.length === 3 ? `the ${PLACES[triple.findIndex((f) => !f)]} is empty` : `found ${plural(found.length, "field")}, expected 3: head, relation and tail; put names with commas into "quotes", or use tabs`;
    return { line, triple: null, failure: { error: `line ${number}: ${wrong}`, near: [] } };
  });
  return { items, header: Boolean(named) };
}

const textOf = (items) => items.map((item) => (item.triple ? item.triple.join("\t") : item.line)).join("\n");

const fields = () => {
  const text = now.text && now.text.length <= ADDRESS ? now.text : null;
  return { triples: text, link: text && now.chosen && list.keyOf(now.chosen) };
};

// Adds the triple of the boxes to the text. Whether there was one to add.
function add() {
  const triple = boxes.map((box) => box.name());
  const empty = triple.findIndex((name) => !name);
  if (empty >= 0) return boxes[empty];
  const text = $("score-text").value.trimEnd();
  // Tabs, for names with commas; names that were picked with their label, for people.
  $("score-text").value = `${text}${text ? "\n" : ""}${triple.map(whole).join("\t")}\n`;
  boxes.forEach((box) => box.set(""));
  return null;
}

async function score({ detail = false, link = null } = {}) {
  add(); // what stands in the boxes counts too
  problem(null);
  $("loaded").hidden = true;
  const { items, header } = read($("score-text").value);
  if (!items.length) {
    problem(new Error("There is nothing to score: pick three names, or paste triples, one on each line."));
    return;
  }
  now.working?.abort();
  Object.assign(now, { items, header, text: textOf(items), reply: null, chosen: link, rows: FIRST, failed: FAILED, said: "" });
  address.write("score", fields(), { detail });
  evidence.clear("score");
  $("scores-taken").textContent = "";
  await work();
}

const waiting = () => now.items.filter((item) => !item.score && !item.failure);

// Scores what has not been scored, a few triples at a time, so that the table fills and one can stop.
async function work() {
  const mine = (now.working = new AbortController());
  const begin = performance.now();
  const most = state.info?.limits.batch ?? AT_ONCE;
  let done = 0, size = AT_ONCE;
  $("score-stop").disabled = false;
  say("scoring…");
  draw();
  try {
    for (let rest; (rest = waiting()).length; ) {
      const some = rest.slice(0, Math.min(size, most));
      const time = done ? `, ${list.about(((performance.now() - begin) / 1000 / done) * rest.length)} left` : "";
      list.progress("score-progress", done, done + rest.length, `${count(done)} of ${plural(done + rest.length, "triple")} scored${time}`);
      const from = performance.now();
      const { scores, failed, ...reply } = await post("score", { triples: some.map((item) => item.triple) }, mine.signal);
      if (now.working !== mine) return;
      list.asScores(reply, scores);
      size = Math.max(2, Math.min(4 * size, Math.round((some.length * STEP) / (performance.now() - from))));
      let next = 0;
      for (const item of some) {
        item.failure = failed.find((f) => same(f.triple, item.triple)) || null;
        if (!item.failure) item.score = scores[next++];
      }
      now.reply = reply;
      done += some.length;
      draw();
    }
  } catch (e) {
    if (now.working !== mine) return; // other triples are scored
    if (e.name === "AbortError" && !mine.signal.reason?.stopped) return;
    if (e.name !== "AbortError") problem(list.broken(e));
  }
  if (now.working !== mine) return;
  now.working = null;
  settle();
}

const say = (text) => ($("score-status").textContent = text);

function settle() {
  list.progress("score-progress", 0, 0);
  $("score-stop").disabled = true;
  const scored = now.items.filter((item) => item.score).length, left = waiting().length;
  const failed = now.items.length - scored - left;
  const parts = [`${plural(scored, "triple")} scored`, ...(failed ? [`${count(failed)} not: see why below`] : []), ...(left ? [`${count(left)} left out, as it was stopped`] : [])];
  say(`${parts.join("; ")}.`);
  draw();
  const first = ordered()[0];
  const wanted = now.chosen || (first ? list.tripleOf(first.score) : null);
  if (wanted) choose(wanted);
}

// The triples that were scored, in the order that was chosen.
function ordered() {
  const scored = now.items.filter((item) => item.score);
  const step = { given: 0, best: -1, worst: 1 }[$("score-order").value];
  return step ? [...scored].sort((a, b) => step * (a.score.logit - b.score.logit)) : scored;
}

function choose(link) {
  now.chosen = link;
  list.mark($("scores").tBodies[0], link);
  address.write("score", fields(), { detail: true });
  const [head, relation, tail] = link;
  evidence.explain("score", [head, relation, "?"], tail, { link: true });
}

const standing = ({ rank, candidates }) => `${count(rank)} of ${count(candidates)}`;
// Rounded down: only the best is above all others.
const down = (p) => (p < 99.9 ? Math.floor(10 * p) / 10 : Math.floor(100 * p) / 100);
const above = ({ percentile, reached }) => `above ${down(percentile)} %${reached ? "" : ", not reached"}`;

function row({ score: s }) {
  const link = list.tripleOf(s);
  const tr = element("tr", null, { "aria-selected": String(same(link, now.chosen)) });
  tr.dataset.name = list.keyOf(link);
  const pick = () => {
    choose(link);
    evidence.reveal();
  };
  const side = (place) => element("td", standing(place), { class: "extra", title: `logit ${place.logit.toFixed(3)}${place.reached ? "" : "; no walk reached it, and all such have the same logit"}` }, element("small", above(place)));
  const notes = [["tail", s.as_tail], ["head", s.as_head]].map(([name, place]) => element("small", `as ${name} ${standing(place)}, ${above(place)}`, { class: "narrow" }));
  tr.append(
    list.tripleCell(link, pick, notes),
    list.numberCell(s.probability, `logit ${s.logit.toFixed(3)}`),
    side(s.as_tail),
    side(s.as_head),
    element("td", s.known ? "known" : "new", { class: s.known ? "" : "new", title: s.known ? "The graph has it. It was hidden while it was asked for." : "The graph does not have it." }),
  );
  return tr;
}

// Why a line was not scored, with names that may have been meant.
function failure(item) {
  const { error, near } = item.failure;
  const li = element("li", null, {}, ...(item.triple ? [element("b", item.triple.map(show).join(" · "), { title: item.triple.join(" · ") })] : []), error);
  if (near.length) {
    const ways = near.map((name) => {
      return button(show(name), () => {
        // The part that the message is about.
        const wrong = item.triple.findIndex((part) => error.includes(JSON.stringify(part)));
        if (wrong < 0) return;
        item.triple = item.triple.map((part, i) => (i === wrong ? name : part));
        item.failure = null;
        $("score-text").value = `${textOf(now.items)}\n`;
        now.text = textOf(now.items);
        address.write("score", fields(), { detail: true });
        if (now.working) return; // it is scored after the others
        now.chosen = null;
        work();
      }, { title: `Score with ${name} instead` });
    });
    li.append(element("div", null, { class: "tools" }, ...ways));
  }
  return li;
}

function draw() {
  const scored = ordered(), { reply, working } = now;
  const table = $("scores");
  list.fill(table.tBodies[0], scored.slice(0, now.rows).map(row));
  table.hidden = !scored.length;
  const { word, why } = measure(reply);
  const head = table.querySelector("th.measure");
  head.textContent = word;
  head.title = `${why} A triple is asked for from both ends; this is made of the mean of their logits.`;
  $("scores-take").hidden = Boolean(working) || !scored.length;
  $("scores-more").hidden = now.rows >= scored.length;
  $("scores-more").textContent = `More (next ${Math.min(MORE, scored.length - now.rows)})`;
  const failed = now.items.filter((item) => item.failure);
  $("failed").hidden = !failed.length;
  $("failed-title").textContent = `${plural(failed.length, "line")} not scored`;
  $("failed-list").replaceChildren(...failed.slice(0, now.failed).map(failure));
  $("failed-more").hidden = now.failed >= failed.length;
  $("failed-more").textContent = `Show all ${count(failed.length)}`;
  const words = [];
  if (reply && !working && scored.length) {
    if (reply.probability_from === "score") words.push("Scores are not calibrated: they order triples, but are no probabilities.");
    if (reply.calibration_unused) words.push(`The calibration of this graph was not used: ${reply.calibration_unused}.`);
    if (now.header) words.push("The first line was read as the names of columns.");
    if (now.text.length > ADDRESS) words.push("The list is too long for the address of the page: keep the file.");
    if (now.said) words.push(now.said);
  }
  $("scores-rest").textContent = words.join(" ");
}

// One line for a triple.
function columns(scores, reply) {
  const side = (name) => ["rank", "candidates", "percentile"].map((what) => [`${name}_${what}`, (s) => s[`as_${name}`][what]]);
  return [
    ...rows.tripleColumns(scores),
    [measure(reply).word.toLowerCase(), (s) => s.probability],
    ...side("tail"),
    ...side("head"),
    ["state", (s) => (s.known ? "known" : "new")],
    ["logit", (s) => s.logit],
    ["tail_logit", (s) => s.as_tail.logit],
    ["head_logit", (s) => s.as_head.logit],
  ];
}

function download(extension) {
  const scores = ordered().map((item) => item.score);
  const failed = now.items.filter((item) => item.failure).map(({ line, failure: { error, near } }) => ({ line, error, near }));
  const content = extension === "csv" ? rows.csv(columns(scores, now.reply), scores) : `${JSON.stringify({ graph: state.info?.name, ...now.reply, scores, failed }, null, 1)}\n`;
  rows.save(["scores"], extension, content);
  $("scores-taken").textContent = `${plural(scores.length, "triple")} saved.`;
}

// Without anything to score.
function clear() {
  now.working?.abort();
  Object.assign(now, { items: [], text: null, reply: null, working: null, chosen: null, rows: FIRST, failed: FAILED, said: "" });
  evidence.clear("score");
  list.progress("score-progress", 0, 0);
  $("score-stop").disabled = true;
  $("scores-taken").textContent = "";
  say("");
  draw();
}

export const view = {
  id: "score",
  title: "Score",
  // Triples are scored by the model that answers with entities.
  available: (info) => Boolean(info?.models.some((m) => m.task === "entity")),
  fields,
  open(place) {
    if (!place.triples) {
      // An address cannot carry a long list: what is here stays.
      if (now.text && now.text.length <= ADDRESS) clear();
      return;
    }
    let link = null;
    try {
      link = place.link ? JSON.parse(place.link) : null;
    } catch {
      // An address that someone cut: the list is still right.
    }
    if (!Array.isArray(link) || link.length !== 3) link = null;
    if (place.triples === now.text) {
      if (link && !same(link, now.chosen)) choose(link);
      return;
    }
    $("score-text").value = `${place.triples}\n`;
    boxes.forEach((box) => box.set(""));
    score({ link, detail: true });
  },
  changed({ graph }) {
    if (graph) {
      clear();
      $("score-text").value = "";
      boxes.forEach((box) => box.set(""));
    } else if (now.reply) {
      now.said = "The graph has been edited since: score again to see what that changes.";
      draw();
    }
  },
  start(go) {
    $("score").addEventListener("submit", (e) => {
      e.preventDefault();
      score();
    });
    $("score-text").addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
      e.preventDefault();
      score();
    });
    $("score-add").onclick = () => (add() || boxes[0]).input.focus();
    $("score-stop").onclick = () => now.working?.abort(Object.assign(new DOMException("stopped", "AbortError"), { stopped: true }));
    $("score-order").onchange = draw;
    $("scores-more").onclick = () => {
      const from = now.rows;
      now.rows += MORE;
      draw();
      $("scores").querySelectorAll("tbody td.name > button")[from]?.focus();
    };
    $("failed-more").onclick = () => {
      now.failed = Infinity;
      draw();
    };
    $("scores-copy").onclick = async () => {
      const scores = ordered().slice(0, now.rows).map((item) => item.score);
      $("scores-taken").textContent = await rows.copy(columns(scores, now.reply), scores);
    };
    $("scores-csv").onclick = () => download("csv");
    $("scores-json").onclick = () => download("json");
    list.listenToArrows($("scores"));
    evidence.whenAsked("score", (name) => go("ask", { head: name, relation: now.chosen[1], tail: "?" }));
    clear();
  },
};
