// The page to try the model. Reviews enter the page as text only, never as markup.
"use strict";

const HOME = new URL(".", document.currentScript.src); // the server's address, below a proxy's prefix too
const MODEL = new URL("v1/models/amazon_reviews:predict", HOME);
const EXPLAIN = new URL("explain", HOME);
const PAUSE = 150; // milliseconds between the last key press and a request
const EXPLAINED = 20; // greatest number of reviews whose words are shown
const LONGEST = 5000; // greatest number of characters of a review that /explain accepts
const LISTED = 6; // greatest number of words in the table of a review
const UNDECIDED = {{ UNDECIDED }}; // the model is undecided if the probability of its answer is smaller
const NOTABLE = 0.05; // smallest effect of a word that is marked

const $ = (id) => document.getElementById(id);
const explanations = new Map(); // "version review" -> answer of /explain
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

function lines() {
  // JSON cannot represent half of a surrogate pair.
  return $("reviews").value.toWellFormed().split("\n").filter((line) => line.trim());
}

async function update() {
  if (running) running.abort();
  running = new AbortController();
  const { signal } = running;
  const reviews = lines();
  if (!reviews.length) {
    show([], []);
    $("summary").textContent = "";
    $("problem").textContent = "";
    return;
  }
  try {
    const request = { signature_name: "predict_text", instances: reviews };
    const [{ predictions }, version] = await post(MODEL, request, signal);
    const items = show(reviews, predictions);
    const positive = predictions.filter(({ label }) => label === 1).length;
    $("summary").textContent = reviews.length === 1
      ? verdict(predictions[0])
      : `${reviews.length} reviews: ${positive} positive, ${reviews.length - positive} negative`;
    $("version").textContent = `Model version ${version}`;
    $("problem").textContent = "";
    for (let n = 0; n < Math.min(reviews.length, EXPLAINED); n++) {
      if ([...reviews[n]].length > LONGEST) {
        items[n].append(make("p", `The words of a review with more than ${LONGEST} characters are not shown.`, "legend"));
      } else {
        showWords(items[n], await explain(reviews[n], version, signal));
      }
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

async function explain(review, version, signal) {
  const key = `${version} ${review}`;
  if (!explanations.has(key)) {
    const [answer] = await post(EXPLAIN, { text: review }, signal);
    if (explanations.size > 200) explanations.clear();
    explanations.set(key, answer);
  }
  return explanations.get(key);
}

function answerProbability({ label, probability }) {
  return label === 1 ? probability : 1 - probability;
}

function isUndecided(prediction) {
  return answerProbability(prediction) < UNDECIDED;
}

function verdict(prediction) {
  const shown = `probability ${(100 * answerProbability(prediction)).toFixed(1)} %`;
  const undecided = isUndecided(prediction) ? ", undecided" : "";
  return `${prediction.label === 1 ? "Positive" : "Negative"}: ${shown}${undecided}`;
}

function show(reviews, predictions) {
  const items = reviews.map((review, n) => {
    const item = make("li");
    item.append(make("p", review, "review"));
    const answer = make("p", undefined, "verdict");
    const meter = make("meter");
    meter.value = answerProbability(predictions[n]);
    meter.setAttribute("aria-hidden", "true"); // the text beside it has the same number
    // The browser shows a value far from the optimum in red, and a value less far from it in yellow.
    if (isUndecided(predictions[n])) [meter.optimum, meter.low, meter.high] = [0, 0.01, 1];
    else if (predictions[n].label === 0) [meter.optimum, meter.low, meter.high] = [0, 0.01, 0.02];
    // The summary of a single review is its verdict.
    if (reviews.length > 1) answer.append(verdict(predictions[n]), " ");
    answer.append(meter);
    item.append(answer);
    return item;
  });
  $("answers").replaceChildren(...items);
  $("answers-section").hidden = !items.length;
  return items;
}

function kind(effect) {
  if (Math.abs(effect) < NOTABLE) return "";
  return (effect > 0 ? "positive" : "negative") + (Math.abs(effect) >= 10 * NOTABLE ? " strong" : "");
}

function showWords(item, { parts }) {
  const marked = parts.map(({ text, effect }) =>
    effect !== undefined && kind(effect) ? make("span", text, kind(effect)) : text);
  item.querySelector(".review").replaceChildren(...marked);
  const words = parts.filter(({ effect }) => effect !== undefined && kind(effect));
  words.sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
  if (!words.length) {
    const problem = "No word changes the answer much: the reviews that trained the model may not contain these words.";
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
    const direction = effect > 0 ? "more positive" : "more negative";
    row.append(make("td", `${direction} (${effect > 0 ? "+" : ""}${effect.toFixed(2)})`, "number"));
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
$("loading").remove();
if ($("reviews").value) update(); // the browser keeps the text when the page is reloaded
