// Requests to the server, the token that it may ask for, and its streams.
import { $ } from "./dom.js";
import { learn } from "./names.js";
import { state } from "./state.js";

// A request that the server refused, with what it said.
export class Refused extends Error {
  constructor(status, body) {
    super(`${body.error || `the server answered ${status}`}${body.remedy && !body.near?.length ? ` (${body.remedy})` : ""}`);
    this.code = body.code;
    this.said = body.error;
    learn({ near: body.near });
    this.near = (body.near || []).map((near) => near.name ?? near);
  }
}

export async function call(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Error("the server cannot be reached; is it still running?");
  }
  // Until the token is right, or the reader gives up.
  if (response.status === 401 && (await askToken(token))) return call(path, options);
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
  return response;
}

export async function get(path, query = {}) {
  const given = Object.entries({ graph: state.graph, ...query }).filter(([, v]) => v !== null && v !== undefined);
  return learn(await (await call(`/api/v1/${path}?${new URLSearchParams(given)}`)).json());
}

const send = (path, body, signal) =>
  call(`/api/v1/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ graph: state.graph, ...body }),
    signal,
  });

export const post = async (path, body, signal) => learn(await (await send(path, body, signal)).json());

// Server-sent events of a request, as {event, data}.
export async function* stream(path, body, signal) {
  const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split("\n");
      const field = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2));
      const data = field("data").join("\n");
      if (data) yield { event: field("event")[0] || "message", data: learn(JSON.parse(data)) };
    }
  }
}

// Asks for the token; `tried` is the one that was refused, if any. Requests that are refused together share one dialog.
let asking = null;
function askToken(tried) {
  const now = sessionStorage.getItem("token");
  if (now !== tried) return Promise.resolve(now !== null); // another request has asked meanwhile
  asking ||= new Promise((resolve) => {
    const dialog = $("token"), text = $("token-text");
    $("token-wrong").hidden = tried === null;
    sessionStorage.removeItem("token");
    text.value = "";
    dialog.returnValue = "";
    dialog.onclose = () => {
      asking = null;
      const given = dialog.returnValue === "ok" && text.value.trim();
      if (given) sessionStorage.setItem("token", given);
      resolve(Boolean(given));
    };
    dialog.showModal();
    text.focus();
  });
  return asking;
}
