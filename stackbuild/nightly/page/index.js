"use strict";
// The page is complete without this: it only filters and sorts the rows that are there.
(() => {
  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0], rows = Array.from(body.rows);
  const name = document.getElementById("name"), outcome = document.getElementById("outcome");
  const shown = document.getElementById("shown");
  const show = () => {
    const words = name.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const label = row.cells[0].dataset.key;
      row.hidden = !words.every((word) => label.includes(word)) ||
        (outcome.value !== "" && row.dataset.outcome !== outcome.value);
      count += row.hidden ? 0 : 1;
    }
    const all = `${rows.length} ${rows.length === 1 ? "stack" : "stacks"}`;
    shown.textContent = count === rows.length ? all : `${count} of ${all}`;
  };
  name.addEventListener("input", show);
  outcome.addEventListener("change", show);
  const controls = document.getElementById("controls");
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.hidden = false;
  show();

  table.classList.add("sortable");
  const heads = Array.from(table.tHead.rows[0].cells);
  for (const [column, head] of heads.entries()) {
    if (!head.dataset.sort) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const number = head.dataset.sort === "number";
      const key = (row) => row.cells[column].dataset.key;
      const compare = number ? (one, other) => key(one) - key(other)
        : (one, other) => key(one).localeCompare(key(other));
      rows.sort((one, other) => (down ? -1 : 1) * compare(one, other));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  }
})();
