// Rows to take away: as a file, or with tabs on the clipboard. `columns` are pairs of a name and what a row has there.
import { label } from "./names.js";
import { quoted } from "./table.js";

const text = (value) => (value === null || value === undefined ? "" : String(value));

export const csv = (columns, list) => {
  const rows = [columns.map(([name]) => name), ...list.map((row) => columns.map(([, of]) => quoted(text(of(row)))))];
  return rows.map((r) => `${r.join(",")}\r\n`).join("");
};

const tabs = (columns, list) => {
  const plain = (value) => text(value).replace(/[\t\r\n]+/g, " ");
  const rows = [columns.map(([name]) => name), ...list.map((row) => columns.map(([, of]) => plain(of(row))))];
  return rows.map((r) => `${r.join("\t")}\n`).join("");
};

// Head, relation and tail of a row; labels have columns of their own where there are some.
export function tripleColumns(list) {
  const places = ["head", "relation", "tail"];
  const labelled = places.filter((p) => list.some((row) => label(row[p])));
  return [...places.map((p) => [p, (row) => row[p]]), ...labelled.map((p) => [`${p}_label`, (row) => label(row[p])])];
}

const KINDS = { csv: "text/csv", json: "application/json" };

// Saves a file. Its name is made of `parts`, as far as file systems like them.
export function save(parts, extension, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: KINDS[extension] }));
  const words = parts.map((t) => label(t) || t.split(/[/#]/).pop());
  link.download = `${words.join("-").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "answers"}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Copies rows, and gives the sentence that says so.
export async function copy(columns, list) {
  const content = tabs(columns, list);
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // Browsers give the clipboard to secure pages only; the old way works elsewhere.
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return "The browser does not let this page copy; download the rows instead.";
  }
  return `${list.length} rows copied: those in sight.`;
}
