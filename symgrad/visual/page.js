"use strict";
const { pages, levels, caption } = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("canvas"), sheet = canvas.firstElementChild, details = document.getElementById("details");
const FIELDS = [["kind", "kind"], ["operation", "op"], ["module", "scope"], ["type", "type"], ["value", "value"], ["in terms of its operands", "expression"],
                ["in terms of symbols", "formula"], ["gradient", "gradient"], ["gradient of", "gradient_of"], ["grad_fn", "node"], ["nodes", "folded"]];
let current = -1, x = 0, y = 0, zoom = 1;

function element(name, text, parent) {
  const made = document.createElement(name);
  made.textContent = text;
  parent.append(made);
  return made;
}

function button(text, parent, action) {
  const made = element("button", text, parent);
  made.addEventListener("click", action);
  return made;
}

function move() { sheet.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`; }

function fit() {
  const svg = sheet.firstElementChild, width = svg.width.baseVal.value, height = svg.height.baseVal.value;
  zoom = Math.min(1.4, canvas.clientWidth / width, canvas.clientHeight / height);
  zoom = Math.max(zoom, Math.min(0.45, canvas.clientWidth / width));
  x = Math.max(0, (canvas.clientWidth - width * zoom) / 2);
  y = Math.min(24, Math.max(0, (canvas.clientHeight - height * zoom) / 2));
  move();
}

function scale(factor, px, py) {
  const next = Math.min(8, Math.max(0.02, zoom * factor));
  x = px - (px - x) * next / zoom;
  y = py - (py - y) * next / zoom;
  zoom = next;
  move();
}

function open(number) {
  current = number;
  sheet.innerHTML = pages[number].svg;  // written by symgrad, with all text escaped
  fit();
  const path = document.getElementById("path");
  path.textContent = "";
  const trail = [];
  for (let i = number; i >= 0; i = pages[i].parent) trail.unshift(i);
  trail.forEach((i, k) => {
    if (k) path.append(" › ");
    if (i === number) element("strong", pages[i].title, path); else button(pages[i].title, path, () => open(i));
  });
  for (const made of document.querySelectorAll("#levels button")) made.setAttribute("aria-pressed", String(Number(made.dataset.page) === number));
  details.textContent = "";
  element("p", "A click on a box shows what is known of it; a double click on one with a double frame, which is a group, opens it. Drag to move, turn the wheel to enlarge.", details);
}

function show(number) {
  const box = pages[current].boxes[number];
  for (const old of sheet.querySelectorAll(".chosen, .joined")) old.classList.remove("chosen", "joined");
  sheet.querySelector(`[data-box="${number}"]`).classList.add("chosen");
  for (const edge of sheet.querySelectorAll("[data-edge]")) {
    if (edge.dataset.edge.split(" ").includes(String(number))) edge.classList.add("joined");
  }
  details.textContent = "";
  element("h2", box.name, details);
  if (box.open !== undefined) button("open the group", details, () => open(box.open));
  else if (box.folded) element("p", "This group is too large for the page: draw a part of the graph.", details);
  const list = element("dl", "", details);
  for (const [label, key] of FIELDS) if (box[key]) { element("dt", label, list); element("dd", box[key] === "fold" ? "group" : String(box[key]), list); }
  const uses = pages[current].boxes.flatMap((other, i) => other.operands.includes(number) ? [i] : []);
  for (const [label, others] of [["operands", box.operands], ["used by", uses]]) {
    if (!others.length) continue;
    element("dt", label, list);
    const row = element("dd", "", list);
    for (const i of others) button(pages[current].boxes[i].name, row, () => show(i));
  }
}

let start = null, moved = false;
canvas.addEventListener("pointerdown", (event) => { start = [event.clientX - x, event.clientY - y]; moved = false; });
canvas.addEventListener("pointermove", (event) => {
  if (!start || !event.buttons) return;
  const [px, py] = [event.clientX - start[0], event.clientY - start[1]];
  if (!moved && Math.hypot(px - x, py - y) < 4) return;
  moved = true;
  [x, y] = [px, py];
  move();
});
window.addEventListener("pointerup", () => { start = null; });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const area = canvas.getBoundingClientRect();
  scale(Math.exp(-event.deltaY / 500), event.clientX - area.left, event.clientY - area.top);
}, { passive: false });
canvas.addEventListener("click", (event) => {
  const box = event.target.closest("[data-box]");
  if (box && !moved) show(Number(box.dataset.box));
});
canvas.addEventListener("dblclick", (event) => {
  const box = event.target.closest("[data-box]"), found = box && pages[current].boxes[Number(box.dataset.box)];
  if (found && found.open !== undefined) open(found.open);
});
document.getElementById("in").addEventListener("click", () => scale(1.25, canvas.clientWidth / 2, canvas.clientHeight / 2));
document.getElementById("out").addEventListener("click", () => scale(0.8, canvas.clientWidth / 2, canvas.clientHeight / 2));
document.getElementById("fit").addEventListener("click", fit);
window.addEventListener("resize", fit);
document.getElementById("caption").textContent = caption;
if (levels.length > 1) {
  const bar = document.getElementById("levels");
  bar.append("unfolded to depth ");
  for (const [depth, page] of levels) {
    const made = button(depth, bar, () => open(page));
    made.dataset.page = page;
    bar.append(" ");
  }
}
open(0);
