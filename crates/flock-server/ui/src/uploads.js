// The uploads that this browser remembers: id, name and how the file was read, and a copy of the file, so that a graph which the server
// has forgotten can be loaded again at once. Where the browser keeps nothing (private windows, a full disk), the page asks for the file.

const MOST = 8;

// [{ id, name, reading }], the latest first.
export function remembered() {
  try {
    return JSON.parse(localStorage.getItem("uploads")) || [];
  } catch {
    return [];
  }
}

const keepList = (list) => {
  try {
    localStorage.setItem("uploads", JSON.stringify(list));
  } catch {
    // The list is a convenience.
  }
};

export const find = (id) => remembered().find((u) => u.id === id) || null;

export async function remember(upload, file) {
  const before = remembered().filter((u) => u.id !== upload.id);
  const list = [upload, ...before].slice(0, MOST);
  keepList(list);
  await files("readwrite", (store) => {
    store.put(file, upload.id);
    for (const old of before.slice(MOST - 1)) store.delete(old.id);
  });
}

export async function drop(id) {
  keepList(remembered().filter((u) => u.id !== id));
  await files("readwrite", (store) => store.delete(id));
}

// The copy of an upload's file, or null.
export async function copyOf(id) {
  const found = await files("readonly", (store) => store.get(id));
  return found instanceof Blob ? found : null;
}

// Runs `work` on the store of files; null if the browser does not let us.
function files(mode, work) {
  return new Promise((resolve) => {
    let opening;
    try {
      opening = indexedDB.open("flock-kg", 1);
    } catch {
      return resolve(null);
    }
    opening.onupgradeneeded = () => opening.result.createObjectStore("files");
    opening.onerror = () => resolve(null);
    opening.onsuccess = () => {
      const db = opening.result;
      const end = (value) => {
        db.close();
        resolve(value);
      };
      try {
        const transaction = db.transaction("files", mode);
        const request = work(transaction.objectStore("files"));
        transaction.oncomplete = () => end(request?.result ?? null);
        transaction.onerror = transaction.onabort = () => end(null);
      } catch {
        end(null);
      }
    };
  });
}
