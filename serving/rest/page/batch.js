// The table of several texts and their answers, which can be sorted by each column and saved as CSV.

import { isUndecided } from "./answers.js";
import { $, bdi, make, percent } from "./elements.js";

const FORMULA = /^[=+\-@\t\r]/; // a spreadsheet would calculate a cell with this beginning

const COLUMNS = [
  { title: "No.", value: ({ number }) => number },
  { title: "Text", value: ({ text }) => text },
  { title: "Answer", value: ({ answer }) => answer[0][0] },
  { title: "Probability", value: ({ answer }) => answer[0][1] },
];

const order = new Intl.Collator(undefined, { numeric: true });
let rows = [];
let sorted = { column: 0, isAscending: true };

// Show the table if there is more than one text.
export function showTable(texts, answers) {
  rows = texts.map((text, n) => ({ number: n + 1, text, answer: answers[n] }));
  $("batch").hidden = rows.length < 2;
  draw();
}

function compare(one, other) {
  const { value } = COLUMNS[sorted.column];
  const [left, right] = [value(one), value(other)];
  const difference = typeof left === "number" ? left - right : order.compare(left, right);
  return (sorted.isAscending ? difference : -difference) || one.number - other.number;
}

function draw() {
  const body = make("tbody");
  for (const { number, text, answer } of rows.toSorted(compare)) {
    const row = body.insertRow();
    const shown = make("td");
    const clipped = make("div", text, "clipped"); // the whole text is in the list below the table
    clipped.dir = "auto";
    shown.append(clipped);
    const label = make("td");
    label.append(bdi(answer[0][0]), isUndecided(answer) ? " (undecided)" : "");
    row.append(make("td", number, "number"), shown, label, make("td", percent(answer[0][1]), "number"));
  }
  $("table").tBodies[0].replaceWith(body);
  [...$("table").tHead.rows[0].cells].forEach((cell, n) => {
    if (n !== sorted.column) cell.removeAttribute("aria-sort");
    else cell.setAttribute("aria-sort", sorted.isAscending ? "ascending" : "descending");
  });
}

function csv() {
  const cell = (value) => {
    const text = FORMULA.test(value) ? `'${value}` : `${value}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = rows.toSorted(compare).map(({ text, answer: [[name, probability]] }) => [text, name, probability]);
  return [["text", "class", "probability"], ...lines].map((line) => line.map(cell).join(",")).join("\r\n");
}

COLUMNS.forEach(({ title }, column) => {
  const button = make("button", title);
  button.type = "button";
  button.addEventListener("click", () => {
    sorted = { column, isAscending: sorted.column !== column || !sorted.isAscending };
    draw();
  });
  const cell = make("th");
  cell.scope = "col";
  cell.append(button);
  $("table").tHead.rows[0].append(cell);
});

$("save").addEventListener("click", () => {
  const link = make("a");
  // Excel reads a CSV file as UTF-8 only if it begins with a byte order mark.
  link.href = URL.createObjectURL(new Blob(["\ufeff", csv(), "\r\n"], { type: "text/csv" }));
  link.download = "answers.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
});
