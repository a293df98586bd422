// The address of the page says what one sees: the graph, the view and what it is about, as `#graph=…&view=…&head=…`. So a reload, the
// browser's back and forward, and an address that was sent to someone all lead to the same.
import { state } from "./state.js";

export const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

// The view that is open. A view behind it may work on, but does not change the address.
let current = "ask";
export const setView = (view) => (current = view);

// Sets the fields of a view's address. A new place is a step that one can go back from; a detail of the same place is not.
export function write(view, fields, { detail = false } = {}) {
  if (view !== current) return;
  const all = { graph: state.graph, view: view === "ask" ? null : view, ...fields };
  const given = Object.entries(all).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const hash = given.length ? `#${new URLSearchParams(given)}` : "";
  if (hash === location.hash) return;
  history[detail ? "replaceState" : "pushState"](null, "", hash || location.pathname);
}
