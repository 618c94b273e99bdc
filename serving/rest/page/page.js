// The page to try the model: it sends the texts in the field to the server while a user types.

import { bars, isSentiment, plural, showWords, summary } from "./answers.js";
import { showTable } from "./batch.js";
import { $, listed, make } from "./elements.js";
import { remember, startHistory } from "./history.js";

const HOME = new URL(".", import.meta.url); // the server's address, below a proxy's prefix too
const CLASSIFY = new URL("v1/models/amazon_reviews:classify", HOME);
const METADATA = new URL("v1/models/amazon_reviews/metadata", HOME);
const EXPLAIN = new URL("explain", HOME);
const PAUSE = 150; // milliseconds between the last key press and a request
const SLOW = 2000; // milliseconds after which the answers to an earlier text are removed
const EXPLAINED = 20; // greatest number of texts whose words are shown
const LONGEST = 5000; // greatest number of characters of a text that /explain accepts
const NAMED = 12; // greatest number of classes that the empty page names

const explanations = new Map(); // "version text" -> answer of /explain
let labels = {{ LABELS }}; // the classes of the model
let labelsVersion = "{{ VERSION }}"; // the version of the model with these classes
let timer = 0;
let running = null;

async function post(url, request, signal) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
    redirect: "manual",
    signal,
  });
  return [await content(response), response.headers.get("x-model-version")];
}

// Return the JSON of a response. Another response is an error, such as the page of a proxy to log in,
// or a redirection to it, which the browser could not follow to another host.
async function content(response) {
  if (response.type === "opaqueredirect") {
    throw new Error("another program, such as a proxy, redirects the request; reload the page, which may require a login");
  }
  const text = await response.text();
  let answer = {};
  try {
    answer = JSON.parse(text);
    if (response.ok) return answer;
  } catch {
    // It is not JSON.
  }
  const isOurs = typeof answer?.error === "string";
  throw new Error(isOurs ? answer.error : `another program, such as a proxy, answered with HTTP ${response.status}`);
}

function reason(error) {
  return error instanceof TypeError ? "the server does not respond" : error.message;
}

function showWording() {
  const nouns = plural(labels, 2);
  const titles = { review: "How is this review rated?", text: "Which class is this text in?" };
  $("title").textContent = isSentiment(labels) ? "Is this review positive?" : titles[labels.noun];
  $("label").textContent = `${nouns[0].toUpperCase()}${nouns.slice(1)}, one on each line`;
  $("hint").textContent = `The model classifies the ${nouns} while you type. The page sends them to this server only.`;
  $("example").hidden = labels.noun !== "review"; // the examples are reviews
  for (const element of document.querySelectorAll(".noun")) element.textContent = labels.noun;
  $("more").textContent = isSentiment(labels) ? "make a review more positive" : "make the answer more probable";
  $("less").textContent = isSentiment(labels) ? "more negative" : "make it less probable";
  const names = labels.names.slice(0, NAMED).flatMap((name, n) => [n ? ", " : "", ...listed(name)]);
  const others = labels.names.length - NAMED;
  $("classes").replaceChildren(
    `Type or paste a ${labels.noun} above. The answer is one of ${labels.names.length} classes: `,
    ...names,
    others > 0 ? ` and ${others} more.` : ".",
  );
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
  $("classes").hidden = texts.length > 0;
  if (!texts.length) {
    showNothing("");
    return;
  }
  const waiting = setTimeout(() => showNothing("", "Waiting for the server …"), SLOW);
  try {
    const [{ results }, version] = await post(CLASSIFY, { examples: texts.map((text) => ({ text })) }, signal);
    if (version !== labelsVersion) await readLabels(signal);
    if (version !== labelsVersion) { // a third version answers now
      updateLater();
      return;
    }
    const answers = results.map((pairs) => pairs.toSorted((one, other) => other[1] - one[1]));
    clearTimeout(waiting);
    const items = show(texts, answers);
    $("summary").replaceChildren(...summary(labels, answers));
    $("version").textContent = `Model version ${version}`;
    $("problem").textContent = "";
    for (let n = 0; n < Math.min(texts.length, EXPLAINED); n++) {
      if ([...texts[n]].length > LONGEST) {
        const problem = `The words of a ${labels.noun} with more than ${LONGEST} characters are not shown.`;
        items[n].append(make("p", problem, "legend"));
        continue;
      }
      if (!await showExplanation(items[n], texts[n], version, signal)) {
        updateLater();
        return;
      }
    }
  } catch (error) {
    // The answers on the page belong to an earlier text.
    if (!signal.aborted) showNothing(`No answer: ${reason(error)}`);
  } finally {
    clearTimeout(waiting);
  }
}

// Return false if another version answers now. An error here does not make the answer wrong.
async function showExplanation(item, text, version, signal) {
  try {
    const explanation = await explain(text, version, signal);
    if (explanation === null) return false;
    showWords(labels, item, explanation);
  } catch (error) {
    if (signal.aborted) throw error;
    item.append(make("p", `The words are not shown: ${reason(error)}.`, "legend"));
  }
  return true;
}

async function readLabels(signal) {
  const response = await fetch(METADATA, { redirect: "manual", signal });
  const { metadata, model_spec } = await content(response);
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

function show(texts, answers) {
  const items = texts.map((text, n) => {
    const item = make("li");
    const review = make("p", text, "review");
    review.dir = "auto";
    item.append(review, bars(labels, answers[n]));
    return item;
  });
  $("answers").replaceChildren(...items);
  $("answers-section").hidden = !items.length;
  showTable(texts, answers);
  return items;
}

function showNothing(problem, notice = "") {
  show([], []);
  $("summary").textContent = notice;
  $("problem").textContent = problem;
}

function updateLater() {
  clearTimeout(timer);
  timer = setTimeout(update, PAUSE);
}

function replaceText(text) {
  remember($("reviews").value);
  $("reviews").value = text;
  update();
}

$("reviews").addEventListener("input", updateLater);
$("reviews").addEventListener("change", () => remember($("reviews").value)); // the user leaves the field
window.addEventListener("pagehide", () => remember($("reviews").value));
$("example").addEventListener("click", () => {
  replaceText("Great sound and easy to set up, I love it\nIt broke after two days, a waste of money");
});
$("clear").addEventListener("click", () => {
  replaceText("");
  $("reviews").focus();
});
showWording();
startHistory((entry) => {
  replaceText(entry);
  $("reviews").focus();
});
$("loading").remove();
if ($("reviews").value) update(); // the browser keeps the text when the page is reloaded
