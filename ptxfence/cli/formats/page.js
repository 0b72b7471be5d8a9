"use strict";
const levels = [...document.querySelectorAll(".filters input[type=checkbox]")];
const search = document.querySelector(".filters input[type=search]");
const words = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);
function filter() {
  const shown = new Set(levels.filter(box => box.checked).map(box => box.value));
  const wanted = words();
  for (const kernel of document.querySelectorAll(".kernel-section")) {
    let hits = 0;
    for (const finding of kernel.querySelectorAll(".finding")) {
      const text = (kernel.dataset.name + " " + finding.textContent).toLowerCase();
      const visible = shown.has(finding.dataset.level) && wanted.every(word => text.includes(word));
      finding.hidden = !visible;
      hits += visible;
    }
    const named = wanted.every(word => kernel.dataset.name.toLowerCase().includes(word));
    kernel.hidden = !hits && !(shown.has(kernel.dataset.verdict) && named);
  }
  for (const file of document.querySelectorAll(".file"))
    file.hidden = !file.querySelector(".kernel-section:not([hidden]), .broken");
}
function mark(id, on) {
  for (const element of document.querySelectorAll(`[data-finding="${id}"]`)) element.classList.toggle("on", on);
}
for (const finding of document.querySelectorAll(".finding")) {
  finding.addEventListener("mouseenter", () => mark(finding.id.slice(2), true));
  finding.addEventListener("mouseleave", () => mark(finding.id.slice(2), false));
}
for (const input of [...levels, search]) input.addEventListener("input", filter);
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
filter();
