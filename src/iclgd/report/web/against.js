"use strict";
/* Run against run: what was asked of each, and the numbers that both have, side by side. */
iclgd.widget("against", (host, data) => {
  const { el, choice, number, interval } = iclgd;
  const mates = (one) => data.runs.filter((other) => other.lab === one.lab).length > 1; // that have a run to be held against come first
  const names = [...data.runs.filter(mates), ...data.runs.filter((one) => !mates(one))].map((one) => one.name), place = el("div"), said = el("p", { class: "away", "aria-live": "polite" });
  const run = (name) => data.runs.find((one) => one.name === name);
  const first = () => run(choice("first", names));
  const others = () => [...names].filter((name) => name !== first().name).sort((a, b) => (run(b).lab === first().lab) - (run(a).lab === first().lab));
  const second = () => run(choice("second", others()));
  const shared = () => Object.keys(first().tables).filter((title) => title in second().tables);

  /* What was asked for differently. */
  function apart() {
    const [one, other] = [first().spec, second().spec], fields = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    const options = ({ name, ...rest }) => [name, ...Object.entries(rest).map(([option, value]) => `${option}=${value}`)].join(":");
    const text = (value) => (value === undefined ? "" : Array.isArray(value) ? value.map(text).join(", ") : value?.name ? options(value) : typeof value === "string" ? value : JSON.stringify(value));
    const rows = fields.filter((name) => text(one[name]) !== text(other[name]));
    if (first().lab !== second().lab) return el("p", { text: `${first().lab} and ${second().lab} are different labs.` });
    if (!rows.length) return el("p", { text: "Both were asked for the same." });
    return table("Asked for", ["field", first().name, second().name], rows.map((name) => [name, text(one[name]), text(other[name])]));
  }

  function table(title, header, rows) {
    const cell = (value) => (value && typeof value === "object" ? el("td", { class: "number", text: interval(value.value, value.low, value.high) }) : el("td", { class: String(value ?? "").length > 60 ? "text" : "", text: value ?? "" }));
    return el("div", {}, el("div", { class: "title", text: title }), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      el("table", {}, el("thead", {}, el("tr", {}, ...header.map((name) => iclgd.head(name)))), el("tbody", {}, ...rows.map((row) => el("tr", {}, el("th", { scope: "row", text: row[0] }), ...row.slice(1).map(cell)))))));
  }

  /* Rows of a table that both have, by their name and column; a name that stands there twice is taken in its order. */
  function paired(title) {
    const found = new Map(), read = (one, side) => {
      const times = new Map();
      for (const [row, column, value] of one.tables[title]) {
        const label = `${row}\n${column}`, count = (times.get(label) ?? 0) + 1, key = `${label}\n${count}`;
        times.set(label, count);
        if (!found.has(key)) found.set(key, { row, column, values: [null, null] });
        found.get(key).values[side] = value;
      }
    };
    read(first(), 0);
    read(second(), 1);
    return [...found.values()];
  }

  function numbers() {
    if (!shared().length) return [el("p", { text: "They have no table in common." })];
    const title = choice("table", shared()), columns = [...new Set(paired(title).map((one) => one.column))], column = choice("column", columns);
    const rows = paired(title).filter((one) => one.column === column), header = ["", first().name, second().name];
    const boxes = el("div", { class: "bar" }, iclgd.selector("table", "table", shared()), ...(columns.length > 1 ? [iclgd.selector("column", "column", columns)] : []));
    return [boxes, dots(rows), table(`${title}: ${column || "numbers"}`, header, rows.map(({ row, values }) => [row, ...values]))];
  }

  function dots(rows) {
    const one = (value, side, name) => ({ label: (what) => ({ name, role: side ? "null" : "own" })[what] ?? "", values: [value?.value ?? NaN], low: [value?.low ?? NaN], high: [value?.high ?? NaN] });
    const drawn = rows.flatMap(({ row, values }) => values.map((value, side) => value && one(value, side, `${row} · ${[first(), second()][side].name}`)).filter(Boolean));
    return drawn.length ? iclgd.dotPanel(drawn, iclgd.extent(drawn), Math.min(760, host.clientWidth || 360), "Both runs", () => "var(--s0)", said) : null;
  }

  function draw() {
    const boxes = el("div", { class: "bar" }, iclgd.selector("first", "run", names), iclgd.selector("second", "against", others()));
    const answers = table("Answers", ["run", "lab", "answer"], [first(), second()].map((one) => [one.name, one.lab, one.answer]));
    place.replaceChildren(...[boxes, answers, apart(), ...numbers()].filter(Boolean));
  }

  host.append(place, said);
  iclgd.heard.push((what) => {
    if (!["", "first", "second", "table", "column"].includes(what)) return;
    const focused = document.activeElement?.name;
    draw();
    if (focused) place.querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
  });
  draw();
});
