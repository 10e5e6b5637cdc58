// Questions to the server.  Every address is relative to the page, whose own address holds the token.
export async function ask(path) {
  const reply = await fetch(path);
  const type = reply.headers.get("content-type") || "";
  if (!reply.ok) {
    const said = type.includes("json") ? (await reply.json()).error : `the server answered ${reply.status}`;
    throw new Error(said);
  }
  return type.includes("json") ? reply.json() : reply.arrayBuffer();
}

// An element with properties and children: make("button", {textContent: "fit"}, …).
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(element.style, value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function drawing(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export const count = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en"));
export const rgb = (color, alpha = 1) => `rgba(${color.join(",")},${alpha})`;

export function short(value) {
  if (value === null || value === undefined) return "–";
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return Number(value.toFixed(digits)).toLocaleString("en");
}

let quiet;
export function say(text) {
  const says = document.getElementById("says");
  says.textContent = text;
  says.classList.add("shown");
  clearTimeout(quiet);
  quiet = setTimeout(() => says.classList.remove("shown"), 5000);
}

export function save(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/geo+json" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
