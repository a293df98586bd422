// The views of the page, as tabs. A view is an object with
//   id, title       its tab, its section `view-ID` in index.html, and `view=ID` in the address;
//   available(info) whether this server offers it for the open graph;
//   start()         called once, to listen to its controls;
//   open(place)     shows what the fields of an address are about;
//   fields()        the fields of its address now;
//   changed({ graph }) another graph is open (true), or this one has been edited (false).
// To add one: a file in views/, a section in index.html, and its name in this list.
import { $, button } from "./dom.js";
import * as address from "./address.js";
import { state } from "./state.js";
import { view as ask } from "./views/ask.js";
import { view as edit } from "./views/edit.js";

const VIEWS = [ask, edit];
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
  $("tabs").hidden = VIEWS.filter((v) => v.available(state.info)).length < 2;
}

function select(view) {
  current = view;
  draw();
  address.write(view.id, view.fields());
  if (view !== ask) view.open(view.fields());
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
  VIEWS.forEach((view) => view.start());
  draw();
}
