// The answers to texts: a sentence, the classes as bars, and the words that contributed.
// `labels` are the classes of a model, see `metadata` of the API. An answer is a list of pairs of the
// name of a class and its probability, the greatest probability first.

import { bdi, listed, make, percent } from "./elements.js";

const LISTED = 6; // greatest number of words in the table of a text
const SHOWN = 5; // greatest number of classes that an answer or the summary shows
const UNDECIDED = {{ UNDECIDED }}; // see isUndecided
const NOTABLE = 0.05; // smallest effect of a word that is marked

export function isSentiment(labels) {
  return labels.names.join() === "negative,positive";
}

export function plural(labels, count) {
  return count === 1 ? labels.noun : `${labels.noun}s`;
}

// With two classes this is a probability of the answer below UNDECIDED.
export function isUndecided([[, first], [, second]]) {
  return first / (first + second) < UNDECIDED;
}

export function summary(labels, answers) {
  if (answers.length === 1) return verdict(labels, answers[0]);
  const counts = new Map();
  for (const [[name]] of answers) counts.set(name, (counts.get(name) ?? 0) + 1);
  const start = `${answers.length} ${plural(labels, answers.length)}: `;
  if (isSentiment(labels)) {
    return [start, `${counts.get("positive") ?? 0} positive, ${counts.get("negative") ?? 0} negative`];
  }
  const shown = [...counts].sort((one, other) => other[1] - one[1]).slice(0, SHOWN);
  const parts = shown.flatMap(([name, count], n) => [
    `${n ? ", " : ""}${count} in class `,
    ...listed(name),
  ]);
  const others = answers.length - shown.reduce((sum, [, count]) => sum + count, 0);
  return [start, ...parts, others ? `, ${others} in other classes` : ""];
}

function verdict(labels, answer) {
  const [name, probability] = answer[0];
  const shown = isSentiment(labels) ? `${name[0].toUpperCase()}${name.slice(1)}` : bdi(name);
  return [shown, `: probability ${percent(probability)}${isUndecided(answer) ? ", undecided" : ""}`];
}

export function bars(labels, answer) {
  const table = make("table", undefined, "bars");
  const body = table.createTBody();
  const best = answer.slice(0, SHOWN);
  // The column of the names is as wide as the longest one, up to the limit of the style sheet.
  table.style.setProperty("--names", `${2 + Math.max(...best.map(([name]) => name.length))}ch`);
  for (const [name, probability] of best) {
    const row = body.insertRow();
    const cell = make("th");
    cell.scope = "row";
    cell.append(bdi(name));
    const bar = make("div", undefined, isSentiment(labels) ? `bar of-${name}` : "bar");
    bar.style.width = `${100 * probability}%`;
    bar.setAttribute("aria-hidden", "true"); // the cell beside it has the same number
    const track = make("td", undefined, "track");
    track.append(bar);
    row.append(cell, track, make("td", percent(probability), "number"));
  }
  const notes = isUndecided(answer) ? ["undecided"] : [];
  const others = answer.slice(SHOWN);
  if (others.length) {
    const rest = others.reduce((sum, [, probability]) => sum + probability, 0);
    notes.push(`${others.length} other ${others.length === 1 ? "class" : "classes"}: ${percent(rest)}`);
  }
  if (notes.length) table.append(make("caption", notes.join("; ")));
  return table;
}

// Mark the words of the text of an item, and add a table of those that contributed most.
export function showWords(labels, item, explanation) {
  const parts = effectsOnAnswer(labels, explanation);
  const marked = parts.map(({ text, effect }) =>
    effect !== undefined && kind(effect) ? make("span", text, kind(effect)) : text);
  item.querySelector(".review").replaceChildren(...marked);
  const words = parts.filter(({ effect }) => effect !== undefined && kind(effect));
  words.sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  if (!words.length) {
    const trained = `the ${plural(labels, 2)} that trained the model may not contain these words`;
    item.append(make("p", `No word changes the answer much: ${trained}.`, "legend"));
    return;
  }
  const table = make("table", undefined, "words");
  table.append(make("caption", "Words that contributed most"));
  const head = table.createTHead().insertRow();
  for (const title of ["Word", "Effect"]) {
    const cell = make("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const { text, effect } of words.slice(0, LISTED)) {
    const row = body.insertRow();
    const word = make("td", undefined, kind(effect));
    word.append(make("bdi", text));
    row.append(word);
    const number = `${effect > 0 ? "+" : ""}${effect.toFixed(2)}`;
    row.append(make("td", `${direction(labels, effect)} (${number})`, "number"));
  }
  item.append(table);
}

// The effects of /explain are those on the second of two classes, or on the predicted one of more.
function effectsOnAnswer(labels, { parts, label }) {
  const isOnOther = labels.names.length === 2 && !isSentiment(labels) && label === 0;
  return isOnOther ? parts.map(({ text, effect }) => ({ text, effect: effect && -effect })) : parts;
}

function kind(effect) {
  if (Math.abs(effect) < NOTABLE) return "";
  return (effect > 0 ? "positive" : "negative") + (Math.abs(effect) >= 10 * NOTABLE ? " strong" : "");
}

function direction(labels, effect) {
  if (isSentiment(labels)) return effect > 0 ? "more positive" : "more negative";
  return effect > 0 ? "for this class" : "against this class";
}
