// The views of the page, as tabs. A view is an object with
//   id, title       its tab, its section `view-ID` in index.html, and `view=ID` in the address;
//   available(info) whether this server offers it for the open graph;
//   start(go)       called once, to listen to its controls; `go(view, fields)` opens another view;
//   open(place)     shows what the fields of an address are about;
//   fields()        the fields of its address now;
//   changed({ graph }) another graph is open (true), or this one has been edited (false).
// To add one: a file in views/, a section in index.html, and its name in this list. If the section has an element `ID-columns`, the
// panel with the paths (evidence.js) goes there while the view is open.
import { $, button } from "./dom.js";
import * as address from "./address.js";
import * as evidence from "./evidence.js";
import { PLACES, state } from "./state.js";
import { view as ask } from "./views/ask.js";
import { view as complete } from "./views/complete.js";
import { view as edit } from "./views/edit.js";
import { view as score } from "./views/score.js";

const VIEWS = [ask, complete, score, edit];
let current = ask;

// Shows the view of an address.
export function show(place) {
  current = VIEWS.find((v) => v.id === place.view && v.available(state.info)) || ask;
  draw();
  current.open(place);
}

function draw() {
  address.setView(current.id);
  for (const view of VIEWS) {
    const tab = $(`tab-${view.id}`), here = view === current;
    tab.hidden = !view.available(state.info);
    tab.setAttribute("aria-selected", String(here));
    tab.tabIndex = here ? 0 : -1;
    $(`view-${view.id}`).hidden = !here;
  }
  evidence.moveTo(current.id);
  $("tabs").hidden = VIEWS.filter((v) => v.available(state.info)).length < 2;
}

function select(view) {
  current = view;
  draw();
  address.write(view.id, view.fields());
  if (view !== ask) view.open(view.fields());
}

// Opens a view at a place, as a step that one can go back from.
function go(id, fields) {
  address.setView(id);
  address.write(id, fields);
  show({ view: id, ...fields });
}

export function changed(what) {
  VIEWS.forEach((view) => view.changed(what));
  if (!current.available(state.info)) current = ask;
  draw();
}

export function start() {
  $("tabs").append(
    ...VIEWS.map((view) => {
      const tab = button(view.title, () => select(view), { role: "tab", id: `tab-${view.id}`, "aria-controls": `view-${view.id}` });
      $(`view-${view.id}`).setAttribute("aria-labelledby", tab.id);
      return tab;
    }),
  );
  $("tabs").addEventListener("keydown", (e) => {
    const tabs = [...$("tabs").children].filter((tab) => !tab.hidden);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    const next = step && tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    if (!next) return;
    e.preventDefault();
    next.click();
    next.focus();
  });
  VIEWS.forEach((view) => view.start(go));
  evidence.start((query, answer) => go("ask", { ...Object.fromEntries(PLACES.map((p, i) => [p, query[i]])), answer }));
  draw();
}
