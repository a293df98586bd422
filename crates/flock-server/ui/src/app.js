// The page: opens the graph and the view that its address names, and keeps the two in step.
import { $ } from "./dom.js";
import * as address from "./address.js";
import * as graphs from "./graphs.js";
import { problem } from "./problem.js";
import { state } from "./state.js";
import * as theme from "./theme.js";
import * as views from "./views.js";
import { whenEdited } from "./views/edit.js";

// Shows what the address is about.
async function restore() {
  problem(null);
  const place = address.read();
  const graph = place.graph || null;
  try {
    if (graph !== state.graph || !state.info) await graphs.open(graph);
    views.show(place);
  } catch (e) {
    problem(e);
  }
}

// Goes to a graph; with `stay` to the question that is in the address.
async function go(graph, stay = false) {
  const { view = "ask", ...fields } = stay ? address.read() : {};
  address.setView(view);
  address.write(view, { ...fields, graph }, { detail: stay });
  state.info = null;
  await restore();
}

theme.start();
views.start();
graphs.whenOpened(() => views.changed({ graph: true }), go);
graphs.listen();
whenEdited(async () => {
  await graphs.about();
  views.changed({ graph: false });
});
addEventListener("popstate", restore);
// The address belongs to the question, so this link moves the focus only.
$("skip").onclick = (e) => {
  e.preventDefault();
  [$("answers"), $("links"), $("scores"), document.querySelector("[role=tabpanel]:not([hidden])")].find((place) => place.offsetParent)?.focus();
};
restore();
