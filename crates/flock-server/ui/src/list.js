// What the lists of links and of triples share: rows with a triple, a number with its bar, keys to move among them, and work that
// goes on for a while.
import { $, button, element, percent } from "./dom.js";
import { triple } from "./evidence.js";
import { whole } from "./names.js";

export const keyOf = (link) => JSON.stringify(link);
export const tripleOf = ({ head, relation, tail }) => [head, relation, tail];

// The cell with a triple, which chooses it. `notes` stand below, small.
export function tripleCell(link, choose, notes = []) {
  const pick = button(null, choose, { title: link.map(whole).join(" · ") });
  pick.append(...triple(link));
  pick.dataset.name = keyOf(link);
  return element("td", null, { class: "name" }, pick, ...notes);
}

// The default calibration of a model is made for single questions, and says too little of links that were picked from many: lists have
// scores instead.
export function asScores(reply, rows) {
  if (reply.probability_from !== "default") return;
  for (const row of rows) row.probability = 1 / (1 + Math.exp(-row.logit));
  reply.probability_from = "score";
}

// The cell with a score or probability.
export function numberCell(p, title) {
  const bar = element("div", null, { class: "bar", title }, element("i"));
  bar.firstElementChild.style.width = `${100 * p}%`;
  return element("td", null, { class: "number" }, element("b", percent(p)), bar);
}

// Fills a table with rows. They are made anew: who had the focus keeps it.
export function fill(body, rows) {
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  body.replaceChildren(...rows);
  if (focused) [...body.querySelectorAll("button")].find((b) => b.dataset.name === focused)?.focus();
}

// Marks the row of the chosen triple.
export function mark(body, link) {
  for (const row of body.rows) row.setAttribute("aria-selected", String(row.dataset.name === (link && keyOf(link))));
}

// Up and down go from row to row.
export function listenToArrows(table) {
  table.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    const buttons = [...table.querySelectorAll("tbody td.name > button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    e.preventDefault();
    next.focus();
  });
}

// Shows how far some work is: `done` of `all`, with the same in words; nothing without `all`.
export function progress(id, done, all, words = "") {
  const bar = $(id);
  bar.hidden = !all;
  bar.setAttribute("aria-valuemax", all);
  bar.setAttribute("aria-valuenow", done);
  bar.setAttribute("aria-valuetext", words);
  bar.firstElementChild.style.width = `${all ? (100 * done) / all : 0}%`;
  $(`${id}-words`).textContent = words;
}

// A time that is left, as one would say it.
export function about(seconds) {
  if (seconds < 1.5) return "about a second";
  if (seconds < 90) return `about ${Math.round(seconds)} seconds`;
  return seconds < 5400 ? `about ${Math.round(seconds / 60)} minutes` : `about ${Math.round(seconds / 3600)} hours`;
}

// What is wrong with a stream that ended before its time.
export const broken = (error) => (error instanceof TypeError ? new Error("the connection to the server broke; is it still running?") : error);
