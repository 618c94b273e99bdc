// The page to try the model. Texts and names of classes enter the page as text only, never as markup.
"use strict";

const HOME = new URL(".", document.currentScript.src); // the server's address, below a proxy's prefix too
const CLASSIFY = new URL("v1/models/amazon_reviews:classify", HOME);
const METADATA = new URL("v1/models/amazon_reviews/metadata", HOME);
const EXPLAIN = new URL("explain", HOME);
const PAUSE = 150; // milliseconds between the last key press and a request
const EXPLAINED = 20; // greatest number of texts whose words are shown
const LONGEST = 5000; // greatest number of characters of a text that /explain accepts
const LISTED = 6; // greatest number of words in the table of a text
const SHOWN = 5; // greatest number of classes that an answer or the summary shows
const UNDECIDED = {{ UNDECIDED }}; // see isUndecided
const NOTABLE = 0.05; // smallest effect of a word that is marked

const $ = (id) => document.getElementById(id);
const explanations = new Map(); // "version text" -> answer of /explain
let labels = {{ LABELS }}; // the classes of the model
let labelsVersion = "{{ VERSION }}"; // the version of the model with these classes
let timer = 0;
let running = null;

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

async function post(url, content, signal) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
    signal,
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return [answer, response.headers.get("x-model-version")];
}

// A name in a script from right to left must not reorder the text around it. A name may be one long word.
function bdi(name) {
  const element = make("bdi");
  for (const part of name.split(/(?<=[_./-])/)) element.append(part, make("wbr"));
  return element;
}

function isSentiment() {
  return labels.names.join() === "negative,positive";
}

function plural(count) {
  return count === 1 ? labels.noun : `${labels.noun}s`;
}

function showWording() {
  const nouns = plural(2);
  const titles = { review: "How is this review rated?", text: "Which class is this text in?" };
  $("title").textContent = isSentiment() ? "Is this review positive?" : titles[labels.noun];
  $("label").textContent = `${nouns[0].toUpperCase()}${nouns.slice(1)}, one on each line`;
  $("hint").textContent = `The model classifies the ${nouns} while you type. The page sends them to this server only.`;
  $("example").hidden = labels.noun !== "review"; // the examples are reviews
  for (const element of document.querySelectorAll(".noun")) element.textContent = labels.noun;
  $("more").textContent = isSentiment() ? "make a review more positive" : "speak for the class of the answer";
  $("less").textContent = isSentiment() ? "more negative" : "against it";
}

function lines() {
  // JSON cannot represent half of a surrogate pair.
  return $("reviews").value.toWellFormed().split("\n").filter((line) => line.trim());
}

async function update() {
  if (running) running.abort();
  running = new AbortController();
  const { signal } = running;
  const texts = lines();
  if (!texts.length) {
    show([], []);
    $("summary").textContent = "";
    $("problem").textContent = "";
    return;
  }
  try {
    const [{ results }, version] = await post(CLASSIFY, { examples: texts.map((text) => ({ text })) }, signal);
    if (version !== labelsVersion) await readLabels(signal);
    if (version !== labelsVersion) { // a third version answers now
      updateLater();
      return;
    }
    const answers = results.map((pairs) => pairs.toSorted((one, other) => other[1] - one[1]));
    const items = show(texts, answers);
    $("summary").replaceChildren(...summary(answers));
    $("version").textContent = `Model version ${version}`;
    $("problem").textContent = "";
    for (let n = 0; n < Math.min(texts.length, EXPLAINED); n++) {
      if ([...texts[n]].length > LONGEST) {
        const problem = `The words of a ${labels.noun} with more than ${LONGEST} characters are not shown.`;
        items[n].append(make("p", problem, "legend"));
        continue;
      }
      const explanation = await explain(texts[n], version, signal);
      if (explanation === null) { // another version answers now
        updateLater();
        return;
      }
      showWords(items[n], explanation);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    // The answers on the page belong to an earlier text.
    show([], []);
    $("summary").textContent = "";
    // A SyntaxError is caused by a response that is not JSON, such as that of a proxy.
    const isSilent = error instanceof TypeError || error instanceof SyntaxError;
    const reason = isSilent ? "the server does not respond" : error.message;
    $("problem").textContent = `No answer: ${reason}`;
  }
}

async function readLabels(signal) {
  const response = await fetch(METADATA, { signal });
  const { metadata, model_spec } = await response.json();
  [labels, labelsVersion] = [metadata.labels, model_spec.version];
  showWording();
}

async function explain(text, version, signal) {
  const key = `${version} ${text}`;
  if (!explanations.has(key)) {
    const [answer, answered] = await post(EXPLAIN, { text }, signal);
    if (answered !== version) return null;
    if (explanations.size > 200) explanations.clear();
    explanations.set(key, answer);
  }
  return explanations.get(key);
}

// With two classes this is a probability of the answer below UNDECIDED.
function isUndecided([[, first], [, second]]) {
  return first / (first + second) < UNDECIDED;
}

function percent(probability) {
  return `${(100 * probability).toFixed(1)} %`;
}

function verdict(answer) {
  const [name, probability] = answer[0];
  const shown = isSentiment() ? `${name[0].toUpperCase()}${name.slice(1)}` : bdi(name);
  return [shown, `: probability ${percent(probability)}${isUndecided(answer) ? ", undecided" : ""}`];
}

function summary(answers) {
  if (answers.length === 1) return verdict(answers[0]);
  const counts = new Map();
  for (const [[name]] of answers) counts.set(name, (counts.get(name) ?? 0) + 1);
  const start = `${answers.length} ${plural(answers.length)}: `;
  if (isSentiment()) return [start, `${counts.get("positive") ?? 0} positive, ${counts.get("negative") ?? 0} negative`];
  const shown = [...counts].sort((one, other) => other[1] - one[1]).slice(0, SHOWN);
  const parts = shown.flatMap(([name, count], n) => [`${n ? ", " : ""}${count} in class `, bdi(name)]);
  const others = answers.length - shown.reduce((sum, [, count]) => sum + count, 0);
  return [start, ...parts, others ? `, ${others} in other classes` : ""];
}

function show(texts, answers) {
  const items = texts.map((text, n) => {
    const item = make("li");
    item.append(make("p", text, "review"));
    if (labels.names.length > 2) {
      item.append(bars(answers[n]));
      return item;
    }
    const answer = make("p", undefined, "verdict");
    // The summary of a single text is its verdict.
    if (texts.length > 1) answer.append(...verdict(answers[n]), " ");
    answer.append(meter(answers[n]));
    item.append(answer);
    return item;
  });
  $("answers").replaceChildren(...items);
  $("answers-section").hidden = !items.length;
  return items;
}

function meter(answer) {
  const meter = make("meter");
  meter.value = answer[0][1];
  meter.setAttribute("aria-hidden", "true"); // the text beside it has the same number
  // The browser shows a value far from the optimum in red, and a value less far from it in yellow.
  if (isUndecided(answer)) [meter.optimum, meter.low, meter.high] = [0, 0.01, 1];
  else if (isSentiment() && answer[0][0] === "negative") [meter.optimum, meter.low, meter.high] = [0, 0.01, 0.02];
  return meter;
}

function bars(answer) {
  const table = make("table", undefined, "bars");
  const body = table.createTBody();
  for (const [name, probability] of answer.slice(0, SHOWN)) {
    const row = body.insertRow();
    const cell = make("th");
    cell.scope = "row";
    cell.append(bdi(name));
    const bar = make("div", undefined, "bar");
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

function kind(effect) {
  if (Math.abs(effect) < NOTABLE) return "";
  return (effect > 0 ? "positive" : "negative") + (Math.abs(effect) >= 10 * NOTABLE ? " strong" : "");
}

// The effects of /explain are those on the second of two classes, or on the predicted one of more.
function effectsOnAnswer({ parts, label }) {
  const isOnOther = labels.names.length === 2 && !isSentiment() && label === 0;
  return isOnOther ? parts.map(({ text, effect }) => ({ text, effect: effect && -effect })) : parts;
}

function direction(effect) {
  if (isSentiment()) return effect > 0 ? "more positive" : "more negative";
  return effect > 0 ? "for this class" : "against this class";
}

function showWords(item, explanation) {
  const parts = effectsOnAnswer(explanation);
  const marked = parts.map(({ text, effect }) =>
    effect !== undefined && kind(effect) ? make("span", text, kind(effect)) : text);
  item.querySelector(".review").replaceChildren(...marked);
  const words = parts.filter(({ effect }) => effect !== undefined && kind(effect));
  words.sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  if (!words.length) {
    const problem = `No word changes the answer much: the ${plural(2)} that trained the model may not contain these words.`;
    item.append(make("p", problem, "legend"));
    return;
  }
  const table = make("table");
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
    row.append(make("td", text, kind(effect)));
    row.append(make("td", `${direction(effect)} (${effect > 0 ? "+" : ""}${effect.toFixed(2)})`, "number"));
  }
  item.append(table);
}

function updateLater() {
  clearTimeout(timer);
  timer = setTimeout(update, PAUSE);
}

$("reviews").addEventListener("input", updateLater);
$("example").addEventListener("click", () => {
  $("reviews").value = "Great sound and easy to set up, I love it\nIt broke after two days, a waste of money";
  update();
});
$("clear").addEventListener("click", () => {
  $("reviews").value = "";
  update();
  $("reviews").focus();
});
showWording();
$("loading").remove();
if ($("reviews").value) update(); // the browser keeps the text when the page is reloaded
