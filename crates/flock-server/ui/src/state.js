// What all parts of the page share: the graph that is open, and what the server says about it.

export const PLACES = ["head", "relation", "tail"];

// `graph` is the id of an uploaded graph, or null for the server's own.
export const state = { graph: null, info: null };
