// Elements of the page. Texts and names of classes enter them as text only, never as markup.

export const $ = (id) => document.getElementById(id);

export function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// A name in a script from right to left must not reorder the text around it. A name may be one long word.
export function bdi(name) {
  const element = make("bdi");
  for (const part of name.split(/(?<=[_./-])/)) element.append(part, make("wbr"));
  return element;
}

// A comma in a name must not look like the end of the name in a list.
export function listed(name) {
  return name.includes(",") ? ["“", bdi(name), "”"] : [bdi(name)];
}

export function percent(probability) {
  return `${(100 * probability).toFixed(1)} %`;
}
