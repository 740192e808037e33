"use strict";
/* Tables that can be sorted, filtered and taken away. The order they came in is the third click. */
(() => {
  const { el, save } = iclgd;
  const LONG = 6; // rows from which a filter is worth its place

  const text = (cell) => cell.textContent.trim();
  const value = (cell) => (cell?.dataset.value === undefined ? NaN : Number(cell.dataset.value));
  const known = (given) => (given === undefined || given === "nan" ? null : Number(given)); // nan: as Python writes it

  function read(table) {
    const header = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.title);
    const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden && !row.matches(".rule"));
    return [header, rows.map((row) => [...row.cells].map((cell) => ({ text: text(cell), value: known(cell.dataset.value), low: known(cell.dataset.low), high: known(cell.dataset.high) })))];
  }

  function compare(column, down) {
    return (one, two) => {
      const [a, b] = [one.cells[column], two.cells[column]];
      const [x, y] = [value(a), value(b)];
      if (!Number.isNaN(x) && !Number.isNaN(y)) return down ? y - x : x - y;
      if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1; // what has no number stands last
      const order = (a ? text(a) : "").localeCompare(b ? text(b) : "", undefined, { numeric: true });
      return down ? -order : order;
    };
  }

  function sortable(table) {
    const body = table.tBodies[0], came = [...body.rows], heads = [...table.tHead.rows[0].cells];
    table.tHead.hidden = heads.every((head) => head.querySelector(".away")); // columns that have no names
    for (const [column, head] of heads.entries()) {
      head.dataset.title = text(head);
      if (table.tHead.hidden) continue;
      const button = el("button", { type: "button", class: "sort", text: "↕", "aria-label": `Sort by ${text(head) || "name"}` });
      button.addEventListener("click", () => {
        const next = { none: "descending", descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort") ?? "none"];
        for (const other of heads) {
          other.removeAttribute("aria-sort");
          other.querySelector(".sort").textContent = "↕";
        }
        if (next !== "none") head.setAttribute("aria-sort", next);
        button.textContent = { none: "↕", descending: "↓", ascending: "↑" }[next];
        const rows = next === "none" ? came : came.filter((row) => !row.matches(".rule")).sort(compare(column, next === "descending"));
        body.replaceChildren(...rows);
      });
      head.append(button);
    }
  }

  function filtered(table, name) {
    const rows = [...table.tBodies[0].rows], status = el("span", { class: "soft", role: "status" });
    const box = el("input", { type: "search", placeholder: "filter", "aria-label": `Filter ${name}` });
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = words.length > 0 && (row.matches(".rule") || !words.every((word) => row.textContent.toLowerCase().includes(word)));
      status.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
    });
    return [box, status];
  }

  for (const host of document.querySelectorAll(".table")) {
    const table = host.querySelector("table"), name = host.firstElementChild.getAttribute("aria-label");
    sortable(table);
    const found = table.tBodies[0].rows.length >= LONG ? filtered(table, name) : [];
    host.prepend(el("div", { class: "bar" }, ...found, save.tableBar(name, () => read(table))));
  }
  for (const image of document.querySelectorAll("img.figure")) {
    const bar = image.closest("figure").querySelector(".save");
    const give = () => save.png(image.dataset.name, image.src, image.naturalWidth, image.naturalHeight);
    bar.prepend(el("a", { download: `${image.dataset.name}.svg`, href: image.src, text: "SVG" }));
    bar.append(el("button", { type: "button", text: "PNG", "aria-label": `PNG: ${image.dataset.name}`, onclick: give }));
  }
  const sources = document.querySelector(".bibtex");
  if (sources) sources.before(el("div", { class: "bar" }, el("span", { class: "save" },
    el("button", { type: "button", text: "BibTeX", onclick: () => save.hand("sources.bib", sources.textContent + "\n", "application/x-bibtex") }))));
})();
