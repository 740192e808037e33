"use strict";
/* An automaton drawn, and words typed in as paths through it. */
iclgd.automaton = {
  /* The states that a word goes through; null where a letter is not in the alphabet. */
  path({ alphabet, table }, word) {
    const states = [0];
    for (const letter of word) {
      const symbol = alphabet.indexOf(letter);
      if (symbol < 0) return null;
      states.push(table[states.at(-1)][symbol]);
    }
    return states;
  },
};

iclgd.widget("automaton", (host, data) => {
  const { el } = iclgd, { path } = iclgd.automaton;
  const count = data.table.length, size = Math.min(640, Math.max(300, 150 + 60 * count)), radius = 17, ring = size / 2 - 62;
  const lost = (state) => !data.accepting[state] && data.table[state].every((next) => next === state); // no way out
  const angle = (state) => Math.PI + (2 * Math.PI * state) / count;
  const place = (state) => (count === 1 ? [size / 2, size / 2] : [size / 2 + ring * Math.cos(angle(state)), size / 2 + ring * Math.sin(angle(state))]);
  const box = el("input", { type: "text", size: 30, "aria-label": "Words, separated by spaces", spellcheck: "false" });
  const drawn = el("div"), list = el("div"), said = el("p", { role: "status" });
  box.value = data.words.join(" ");

  /* Letters that lead from one state to another share an arrow. */
  function arrows() {
    const found = new Map();
    data.table.forEach((row, from) => row.forEach((to, symbol) => {
      const key = `${from} ${to}`;
      found.set(key, { from, to, letters: [...(found.get(key)?.letters ?? []), data.alphabet[symbol]] });
    }));
    return [...found.values()];
  }

  function shape({ from, to }) {
    const [x, y] = place(from), [u, v] = place(to);
    if (from === to) {
      const [dx, dy] = count === 1 ? [0, -1] : [Math.cos(angle(from)), Math.sin(angle(from))], [px, py] = [-dy, dx];
      const at = (along, aside) => `${x + along * dx + aside * px},${y + along * dy + aside * py}`;
      return { d: `M${at(13, 11)} C${at(52, 26)} ${at(52, -26)} ${at(14, -12)}`, label: [x + 52 * dx, y + 52 * dy] };
    }
    const far = Math.hypot(u - x, v - y), [dx, dy] = [(u - x) / far, (v - y) / far], bend = 0.16 * far;
    const middle = [(x + u) / 2 - dy * bend, (y + v) / 2 + dx * bend];
    const out = (cx, cy) => { const long = Math.hypot(middle[0] - cx, middle[1] - cy); return [cx + (radius * (middle[0] - cx)) / long, cy + (radius * (middle[1] - cy)) / long]; };
    const [start, end] = [out(x, y), out(u, v)];
    return { d: `M${start} Q${middle} ${end}`, label: [(x + u) / 2 - dy * bend * 0.72, (y + v) / 2 + dx * bend * 0.72] };
  }

  function draw(states) {
    const used = new Set((states ?? []).slice(1).map((to, i) => `${states[i]} ${to}`)), last = states?.at(-1);
    const svg = d3.create("svg").attr("class", "plot").attr("viewBox", `0 0 ${size} ${size}`).attr("width", size).attr("height", size).attr("role", "img")
      .attr("aria-label", `Automaton with ${count} states; accepting: ${data.accepting.flatMap((is, i) => (is ? [i] : [])).join(", ")}`);
    for (const [name, colour] of [["tip-plain", "var(--soft)"], ["tip-used", "var(--s0)"]]) {
      svg.append("marker").attr("id", name).attr("viewBox", "0 0 8 8").attr("refX", 7).attr("refY", 4).attr("markerUnits", "userSpaceOnUse").attr("markerWidth", 9).attr("markerHeight", 9).attr("orient", "auto").append("path").attr("d", "M0,0L8,4L0,8z").attr("fill", colour);
    }
    for (const arrow of arrows()) {
      const on = used.has(`${arrow.from} ${arrow.to}`), { d, label } = shape(arrow);
      svg.append("path").attr("d", d).attr("fill", "none").attr("stroke", on ? "var(--s0)" : "var(--soft)").attr("stroke-width", on ? 2.4 : 1.1).attr("stroke-opacity", lost(arrow.to) && !on ? 0.35 : 1).attr("marker-end", `url(#${on ? "tip-used" : "tip-plain"})`);
      svg.append("text").attr("x", label[0]).attr("y", label[1]).attr("dy", "0.32em").attr("text-anchor", "middle").attr("fill", "var(--ink)").attr("stroke", "var(--paper)").attr("stroke-width", 4).attr("paint-order", "stroke").text(arrow.letters.join(" "));
    }
    data.table.forEach((_, state) => {
      const [x, y] = place(state), group = svg.append("g").attr("transform", `translate(${x},${y})`);
      group.append("circle").attr("r", radius).attr("fill", state === last ? "var(--s0)" : "var(--paper)").attr("stroke", "var(--ink)").attr("stroke-opacity", lost(state) ? 0.4 : 1).attr("stroke-width", 1.4);
      if (data.accepting[state]) group.append("circle").attr("r", radius - 4).attr("fill", "none").attr("stroke", state === last ? "var(--paper)" : "var(--ink)");
      group.append("text").attr("text-anchor", "middle").attr("dy", "0.35em").attr("fill", state === last ? "var(--paper)" : "var(--ink)").text(state);
    });
    const [x, y] = place(0);
    svg.append("line").attr("x1", x - 38).attr("x2", x - 13).attr("y1", y - 38).attr("y2", y - 13).attr("stroke", "var(--ink)").attr("marker-end", "url(#tip-plain)");
    drawn.replaceChildren(svg.node());
  }

  function update() {
    const words = box.value.split(/\s+/).filter(Boolean), paths = words.map((word) => path(data, word));
    const rows = words.map((word, i) => el("tr", {}, el("th", { scope: "row", text: word }),
      el("td", { text: paths[i] === null ? `has a letter that is not in ${data.alphabet}` : data.accepting[paths[i].at(-1)] ? "✓ member" : "✗ no member" }),
      el("td", { class: "path", text: paths[i]?.join(" → ") ?? "" })));
    list.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...["word", "", "states"].map((name) => iclgd.head(name)))), el("tbody", {}, ...rows)));
    const last = paths.at(-1);
    said.textContent = words.length ? `Drawn: the path of ${words.at(-1)}.` : "Type a word to see its path.";
    draw(last ?? null);
  }

  box.addEventListener("input", update);
  host.append(el("div", { class: "bar" }, el("label", {}, el("span", { text: "words" }), box)), said, el("div", { class: "explored" }, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Automaton" }, drawn), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Paths of the words" }, list)));
  update();
});
