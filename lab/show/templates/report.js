"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const told = document.getElementById("told");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme || (system.matches ? "dark" : "light");
  // A page opened from disk may be refused storage; the theme then lasts while it is open.
  const remembered = (theme) => {
    try {
      if (theme) localStorage.setItem("theme", theme);
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const label = () => {
    button.textContent = current() === "dark" ? "Light theme" : "Dark theme";
  };
  const before = remembered();
  if (before === "dark" || before === "light") root.dataset.theme = before;
  button.hidden = false;
  label();
  system.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });

  const order = new Intl.Collator("en", { numeric: true });
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
    const text = cell.textContent.trim();
    return text === "n/a" || text === "–" ? null : text;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return order.compare(String(a), String(b));
  };
  const sort = (table, heading, column) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => {
      // What is missing stays last, whichever way the rest is sorted.
      if (a === null || b === null) return (a === null) - (b === null);
      return down ? compare(b, a) : compare(a, b);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    told.textContent = `Sorted by ${heading.textContent.trim()}, ${down ? "descending" : "ascending"}`;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const control = document.createElement("button");
      control.type = "button";
      control.textContent = heading.textContent.trim();
      heading.replaceChildren(control);
      control.addEventListener("click", () => sort(table, heading, column));
    });
  }
})();
