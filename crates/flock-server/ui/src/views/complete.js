// The view "Complete": the links that the graph most likely lacks, as they are found.
import { $, button, count, element, percent, plural } from "../dom.js";
import { stream } from "../api.js";
import * as address from "../address.js";
import { line, measure } from "../answers.js";
import { combobox } from "../combobox.js";
import * as evidence from "../evidence.js";
import * as list from "../list.js";
import { show } from "../names.js";
import { problem } from "../problem.js";
import * as rows from "../rows.js";
import { PLACES, state } from "../state.js";

const FIRST = 20, MORE = 20;
const LISTED = 1000, EXPLAINED = 100; // the most that the server lists, and the most with reasons
const USUAL = 100;
const BUDGET = 0.8; // of the server's deadline: then it stops looking
const REMEMBERED = 8;

const boxes = PLACES.map((place) => combobox(`complete-${place}`, place === "relation" ? "relations" : "entities"));
// What is looked for, the last reply, whether more will come, and what one looks at.
const now = { scope: null, reply: null, working: null, chosen: null, rows: FIRST, said: "" };
// Final replies by scope, so that going back shows them at once.
const replies = new Map();

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const places = (scope) => PLACES.map((p) => scope[p]);

// What the controls say. A field that is not used is empty.
function scopeNow() {
  const [head, relation, tail] = boxes.map((box) => box.name());
  return { head, relation, tail, top: Number($("complete-top").value), by: $("complete-by").value, explain: $("complete-explain").checked };
}

// The scope of an address, or null if nothing was started there.
function scopeOf(place) {
  if (!place.top) return null;
  const [head, relation, tail] = PLACES.map((p) => place[p] || "");
  return { head, relation, tail, top: Number(place.top), by: place.by === "score" ? "score" : "specificity", explain: place.reasons === "yes" };
}

function fields() {
  if (!now.scope) return {};
  const { by, explain, ...scope } = now.scope;
  return { ...scope, by: by === "specificity" ? null : by, reasons: explain ? "yes" : null, link: now.chosen && list.keyOf(now.chosen) };
}

function fillIn(scope) {
  boxes.forEach((box, i) => box.set(scope[PLACES[i]]));
  $("complete-top").value = scope.top;
  $("complete-by").value = scope.by;
  $("complete-explain").checked = scope.explain;
}

// Looks for what the controls say. `link` is to be chosen when it is there.
async function find({ link = null, detail = false } = {}) {
  const scope = scopeNow();
  problem(null);
  $("loaded").hidden = true;
  const most = scope.explain ? EXPLAINED : LISTED;
  if (!Number.isInteger(scope.top) || scope.top < 1 || scope.top > most) {
    $("complete-top").focus();
    return problem(new Error(`The number of links is ${$("complete-top").value || "empty"}; it can be 1 to ${most}${scope.explain ? " with a reason each" : ""}.`));
  }
  now.working?.abort();
  const mine = new AbortController();
  Object.assign(now, { scope, reply: null, working: mine, chosen: link, rows: FIRST, said: "" });
  address.write("complete", fields(), { detail });
  evidence.clear("complete");
  $("links-taken").textContent = "";
  const before = replies.get(JSON.stringify(scope));
  if (before) return finish(before);
  $("complete-stop").disabled = false;
  say("looking for links…");
  draw();
  const begin = performance.now();
  try {
    const { by, explain, top } = scope;
    const given = Object.fromEntries(PLACES.filter((p) => scope[p]).map((p) => [p, scope[p]]));
    for await (const { event, data } of stream("complete/stream", { ...given, top, rank_by: by, explain }, mine.signal)) {
      if (event === "problem") throw Object.assign(new Error(data.error), { code: data.code, near: data.near });
      boxes.forEach((box) => box.refresh());
      list.asScores(data, data.links);
      if (event === "done") {
        replies.set(JSON.stringify(scope), data);
        if (replies.size > REMEMBERED) replies.delete(replies.keys().next().value);
        return finish(data);
      }
      now.reply = data;
      tell(data.progress, (performance.now() - begin) / 1000);
      draw();
    }
    throw new Error("the server ended before the list was complete; is it still running?");
  } catch (e) {
    if (now.working !== mine) return; // something else is looked for
    now.working = null;
    if (e.name !== "AbortError") problem(list.broken(e), near(e));
    else if (!mine.signal.reason?.stopped) return;
    const asked = now.reply?.progress.asked;
    say(asked ? `${e.name === "AbortError" ? "Stopped" : "Ended"} after ${plural(asked, "question")}: these are the best ${plural(now.reply.links.length, "link")} so far.` : e.name === "AbortError" ? "Stopped before a link was found." : "");
    settle();
  }
}

// How far the work is, and how long it will take: until all is asked, or until the server's time is up.
function tell({ asked, left, lacking }, seconds) {
  const all = asked + left + lacking;
  const needed = (seconds * (left + lacking)) / Math.max(asked, 1);
  const allowed = BUDGET * (state.info?.limits.deadline_seconds ?? Infinity) - seconds;
  const words = needed <= allowed || allowed <= 0
    ? `${count(asked)} of ${plural(all, "question")} asked, ${list.about(needed)} left`
    : `${count(asked)} of ${plural(all, "question")} asked, the most promising first; the server stops in ${list.about(allowed)}`;
  list.progress("complete-progress", asked, needed <= allowed ? all : asked * (1 + Math.max(allowed, 0) / seconds), words);
}

const say = (text) => ($("complete-status").textContent = text);

// Names that may have been meant, each a way to look again.
const near = (error) =>
  (error.near || []).map((name) =>
    button(show(name), () => {
      boxes.find((box) => error.message.includes(JSON.stringify(box.name())))?.set(name);
      find();
    }, { title: name }),
  );

function finish(reply) {
  Object.assign(now, { reply, working: null });
  const { asked, left, lacking } = reply.progress;
  const found = reply.links.length ? plural(reply.links.length, "missing link") : "No missing link was found";
  say(
    left + lacking
      ? `${found} after ${plural(asked, "question")}. The server's time was up: it asked the most promising ones first and left ${count(left + lacking)} out. Narrow the search, or run flock-kg complete, which has no such limit.`
      : `${found} after ${plural(asked, "question")}.`,
  );
  settle();
}

// Nothing more will come.
function settle() {
  list.progress("complete-progress", 0, 0);
  $("complete-stop").disabled = true;
  draw();
  const links = now.reply?.links || [];
  const wanted = now.chosen || (links.length ? list.tripleOf(links.find((l) => l.reason) || links[0]) : null);
  if (wanted) choose(wanted);
}

function choose(link) {
  now.chosen = link;
  list.mark($("links").tBodies[0], link);
  address.write("complete", fields(), { detail: true });
  const [head, relation, tail] = link;
  evidence.explain("complete", [head, relation, "?"], tail, { link: true });
}

const rankText = (rank) => (rank === null ? "–" : count(rank));

function row(l) {
  const link = list.tripleOf(l);
  const tr = element("tr", null, { "aria-selected": String(same(link, now.chosen)) });
  tr.dataset.name = list.keyOf(link);
  const pick = () => {
    choose(link);
    evidence.reveal();
  };
  const notes = [element("small", `specificity ${percent(l.specificity)} · tail rank ${rankText(l.tail_rank)} · head rank ${rankText(l.head_rank)}`, { class: "narrow" })];
  if (l.reason) notes.unshift(element("small", line(l.reason), { title: line(l.reason) }));
  const sides = { both: "asked from both ends", tail: "asked as a tail only", head: "asked as a head only" }[l.sides];
  const extra = (text) => element("td", text, { class: "extra", ...(text === "–" ? { title: sides } : {}) });
  tr.append(
    element("td", count(l.rank)),
    list.tripleCell(link, pick, notes),
    list.numberCell(l.probability, `logit ${l.logit.toFixed(3)}, ${sides}`),
    extra(percent(l.specificity)),
    extra(rankText(l.tail_rank)),
    extra(rankText(l.head_rank)),
  );
  return tr;
}

function draw() {
  const { reply, working } = now;
  const links = reply?.links || [];
  const table = $("links");
  list.fill(table.tBodies[0], links.slice(0, now.rows).map(row));
  table.hidden = !links.length;
  const { word, why } = measure(reply);
  const head = table.querySelector("th.measure");
  head.textContent = word;
  head.title = `${why} A link is asked for from both ends; this is made of the mean of their logits.`;
  $("complete-by").querySelector("[value=score]").textContent = reply ? word.toLowerCase() : "score";
  $("links-take").hidden = Boolean(working) || !links.length;
  $("links-more").hidden = now.rows >= links.length;
  $("links-more").textContent = `More (next ${Math.min(MORE, links.length - now.rows)})`;
  const words = [];
  if (reply && !working) {
    if (links.length === now.scope.top && now.scope.top < LISTED) words.push(`The list has the ${plural(links.length, "best link")}; there may be more: ask for a larger number of links.`);
    if (reply.probability_from === "score" && links.length) words.push("Scores are not calibrated: they order links, but are no probabilities.");
    if (reply.calibration_unused) words.push(`The calibration of this graph was not used: ${reply.calibration_unused}.`);
    if (now.said) words.push(now.said);
  }
  $("links-rest").textContent = words.join(" ");
}

// One line for a link.
function columns(links, reply) {
  return [
    ["rank", (l) => l.rank],
    ...rows.tripleColumns(links),
    [measure(reply).word.toLowerCase(), (l) => l.probability],
    ...["specificity", "tail_rank", "head_rank", "logit", "tail_logit", "head_logit", "sides"].map((name) => [name, (l) => l[name]]),
    ...(links.some((l) => l.reason) ? [["reason", (l) => (l.reason ? line(l.reason) : null)]] : []),
  ];
}

function download(extension) {
  const { scope, reply } = now;
  const { links, ...rest } = reply;
  const asked = Object.fromEntries(Object.entries(scope).filter(([, value]) => value !== ""));
  const content = extension === "csv" ? rows.csv(columns(links, reply), links) : `${JSON.stringify({ graph: state.info?.name, scope: asked, ...rest, links }, null, 1)}\n`;
  rows.save(["links", ...places(scope).filter(Boolean)], extension, content);
  $("links-taken").textContent = `${plural(links.length, "link")} saved.`;
}

// Without anything to look for.
function clear() {
  now.working?.abort();
  Object.assign(now, { scope: null, reply: null, working: null, chosen: null, rows: FIRST, said: "" });
  evidence.clear("complete");
  list.progress("complete-progress", 0, 0);
  $("complete-stop").disabled = true;
  $("links-taken").textContent = "";
  say("");
  draw();
}

function examples() {
  const relations = [...new Set((state.info?.examples || []).map(([, relation]) => relation).filter((r) => r !== "?"))];
  const start = (relation) => () => {
    fillIn({ head: "", relation, tail: "", top: USUAL, by: "specificity", explain: false });
    find();
  };
  $("complete-examples").replaceChildren(...relations.map((r) => button(null, start(r), { title: `Missing links of ${show(r)}` })), button("the whole graph", start("")));
  [...$("complete-examples").children].slice(0, -1).forEach((e, i) => e.append(element("bdi", show(relations[i]))));
}

export const view = {
  id: "complete",
  title: "Complete",
  // Links are found by the model that answers with entities.
  available: (info) => Boolean(info?.models.some((m) => m.task === "entity")),
  fields,
  open(place) {
    const scope = scopeOf(place);
    if (!scope) return void (now.scope && clear());
    let link = null;
    try {
      link = place.link ? JSON.parse(place.link) : null;
    } catch {
      // An address that someone cut: the list is still right.
    }
    if (!Array.isArray(link) || link.length !== 3) link = null;
    if (same(scope, now.scope)) {
      if (link && !same(link, now.chosen)) choose(link);
      return;
    }
    fillIn(scope);
    find({ link, detail: true });
  },
  changed({ graph }) {
    replies.clear();
    if (graph) {
      clear();
      fillIn({ head: "", relation: "", tail: "", top: USUAL, by: "specificity", explain: false });
    } else if (now.reply) {
      now.said = "The graph has been edited since: look again to see what that changes.";
      draw();
    }
    examples();
  },
  start(go) {
    $("complete").addEventListener("submit", (e) => {
      e.preventDefault();
      find();
    });
    $("complete-stop").onclick = () => now.working?.abort(Object.assign(new DOMException("stopped", "AbortError"), { stopped: true }));
    $("links-more").onclick = () => {
      const from = now.rows;
      now.rows += MORE;
      draw();
      $("links").querySelectorAll("tbody td.name > button")[from]?.focus();
    };
    $("links-copy").onclick = async () => {
      const links = now.reply.links.slice(0, now.rows);
      $("links-taken").textContent = await rows.copy(columns(links, now.reply), links);
    };
    $("links-csv").onclick = () => download("csv");
    $("links-json").onclick = () => download("json");
    list.listenToArrows($("links"));
    evidence.whenAsked("complete", (name) => go("ask", { head: name, relation: now.chosen[1], tail: "?" }));
    clear();
  },
};
