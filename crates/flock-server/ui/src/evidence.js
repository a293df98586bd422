// The panel with the paths to what is chosen, in words and as a picture. There is one panel, and the view that is open has it. A view
// behind it may work on: what it wants shown is kept until its turn.
import { $, button, element } from "./dom.js";
import { whole, show } from "./names.js";
import * as picture from "./picture.js";
import * as reasons from "./reasons.js";
import { PLACES } from "./state.js";

// By view: { query, chosen, body, explanation, text, link }.
const panels = new Map();
const nothing = { query: null, chosen: null, body: null, explanation: null, text: "", link: null };
const panel = () => panels.get(owner) || nothing;
let owner = "ask";

// What views do when someone asks about an entity of the panel, and how a link becomes a question.
const askers = new Map();
export const whenAsked = (view, run) => askers.set(view, run);
let ask = () => {};

// Gives the panel to a view, if that has a place for it: `VIEW-columns`.
export function moveTo(view) {
  const place = $(`${view}-columns`);
  if (!place || view === owner) return;
  owner = view;
  place.append($("evidence"));
  draw();
}

function draw() {
  const now = panel();
  words(now);
  picture.draw(now);
}

function words({ chosen, body, explanation, text, link }) {
  reasons.draw(chosen, body, explanation, text);
  $("link").hidden = !link;
  if (!link) return $("link").replaceChildren();
  const [head, relation, tail] = link;
  const question = (query, answer) => button(`Ask ${query.map((t) => (t === "?" ? "?" : show(t))).join(" · ")}`, () => ask(query, answer), { title: query.map((t) => (t === "?" ? "?" : whole(t))).join(" · ") });
  $("link").replaceChildren(element("p", null, {}, ...triple(link)), question([head, relation, "?"], tail), question(["?", relation, tail], head));
}

// A triple as text that can be cut: head —relation→ tail.
export const triple = ([head, relation, tail]) => [
  element("span", show(head), { class: "cut" }),
  " ",
  element("em", null, {}, "—", element("span", show(relation), { class: "cut" }), "→ "),
  element("span", show(tail), { class: "cut" }),
];

// Shows nothing, or a question whose answers are not there yet.
export function clear(view, query = null) {
  panels.set(view, { ...nothing, query });
  if (owner === view) draw();
}

// Explains an answer to a question with one `?`. A link is a triple that stands for itself: the panel names it and offers to ask for
// either end.
export async function explain(view, query, chosen, { link = false } = {}) {
  const place = query.indexOf("?");
  const full = query.map((t, i) => (i === place ? chosen : t));
  const body = { triple: full, blank: PLACES[place] };
  const mine = { query, chosen, body, explanation: null, text: "looking for reasons…", link: link ? full : null };
  panels.set(view, mine);
  if (owner === view) words(mine);
  // The paths of another link would stand under this one's name; those of another answer belong to the same question.
  if (owner === view && link) picture.draw(mine);
  try {
    mine.explanation = await reasons.fetchReasons(body);
    mine.text = "";
  } catch (e) {
    mine.body = null;
    mine.text = e.message;
  }
  if (panels.get(view) !== mine || owner !== view) return;
  words(mine);
  if (mine.explanation) await picture.draw(mine);
}

// On narrow screens the panel is below the list: goes there.
export function reveal() {
  const { top } = $("evidence").getBoundingClientRect();
  if (top > innerHeight * 0.8) $("evidence").scrollIntoView({ block: "start" });
}

// `askLink` asks a question in the view "Ask".
export function start(askLink) {
  ask = askLink;
  const about = (name) => askers.get(owner)?.(name);
  reasons.listen(about);
  picture.listen(about);
}
