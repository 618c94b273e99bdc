// The texts that a user typed earlier. They are in the storage of the browser and are sent nowhere.

import { $, make } from "./elements.js";

const KEY = `amazon-reviews ${new URL(".", import.meta.url).pathname}`; // other pages of the host have other keys
const KEPT = 20; // greatest number of entries
const LONGEST = 5000; // greatest number of characters of an entry

// A browser may forbid the storage. Then there is no history.
function read() {
  try {
    const entries = JSON.parse(localStorage.getItem(KEY)) ?? [];
    return Array.isArray(entries) ? entries.filter((entry) => typeof entry === "string") : [];
  } catch {
    return [];
  }
}

function write(entries) {
  try {
    if (entries.length) localStorage.setItem(KEY, JSON.stringify(entries));
    else localStorage.removeItem(KEY);
  } catch {
    // The page works without a history.
  }
}

let choose = () => {};

// Keep a text as the newest entry.
export function remember(text) {
  if (!text.trim() || text.length > LONGEST) return;
  write([text, ...read().filter((entry) => entry !== text)].slice(0, KEPT));
  showHistory();
}

// Show the entries; `chosen` is called with the text of the one that the user selects.
export function startHistory(chosen) {
  choose = chosen;
  showHistory();
}

function showHistory() {
  const entries = read();
  $("history").hidden = !entries.length;
  $("history-count").textContent = entries.length;
  const items = entries.map((entry) => {
    const button = make("button", entry, "entry");
    button.type = "button";
    button.dir = "auto";
    button.addEventListener("click", () => choose(entry));
    const item = make("li");
    item.append(button);
    return item;
  });
  $("entries").replaceChildren(...items);
}

$("forget").addEventListener("click", () => {
  write([]);
  showHistory();
  $("reviews").focus();
});
