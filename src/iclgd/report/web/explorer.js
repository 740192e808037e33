"use strict";
/* Pick a query: its demonstrations and itself as tokens, layer by layer and head by head; answers before and after. */
iclgd.widget("explorer", (host, data) => {
  const { el, choice, choose, number } = iclgd;
  const MEAN = "mean of all";
  iclgd.learned(data.slots);
  const said = el("p", { class: "away", "aria-live": "polite" }), text = iclgd.tokens(said);
  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;

  /* Shares [query, layer, head, key], decoded when they are first looked at. */
  function shares(block) {
    const bytes = atob(block.bytes), [, layers, heads, keys] = block.shape;
    const row = (query, layer, head) => {
      const start = ((query * layers + layer) * heads + head) * keys, found = new Float32Array(keys);
      for (let key = 0; key < keys; key++) found[key] = (bytes.charCodeAt(start + key) / 255) ** 2;
      return found;
    };
    const mean = (query, layer) => {
      const sum = new Float32Array(keys);
      for (let head = 0; head < heads; head++) row(query, layer, head).forEach((share, key) => (sum[key] += share / heads));
      return sum;
    };
    return { layers, heads, keys, at: (query, layer, head) => (head === MEAN ? mean(query, layer) : row(query, layer, Number(head))) };
  }

  const decoded = new Map();
  function of(block) {
    if (!decoded.has(block)) decoded.set(block, shares(block));
    return decoded.get(block);
  }

  const titles = data.episodes.map((one) => one.title);
  const episode = () => data.episodes[titles.indexOf(choice("task", titles))];
  const counted = (count) => [...Array(count).keys()].map(String);
  const query = () => Number(choice("query", counted(episode().queries.length)));
  const size = () => of(episode().own.icl);
  const layer = () => Number(choice("layer", counted(size().layers)));
  const head = () => choice("head", [MEAN, ...counted(size().heads)]);

  function modes() {
    const one = episode(), found = [];
    if (one.attention) found.push("attention");
    if (one.contribution) found.push("contribution");
    return [...found, ...Object.keys(one.own).filter((who) => who !== "icl").map((who) => `reading − ${who}`)];
  }

  /* The prompt as lines of tokens. */
  function lines() {
    const one = episode(), found = one.start.length ? [{ title: "start", kind: "start", tokens: one.start.map((text) => ({ text })) }] : [];
    one.demos.forEach((tokens, i) => {
      const own = tokens.map((text, j) => ({ text, label: j >= tokens.length - one.label_tokens[i] }));
      found.push({ title: `demonstration ${i + 1}`, kind: "demo", tokens: [...own, ...one.separator.map((text) => ({ text }))] });
    });
    return [...found, { title: "query", kind: "query", tokens: one.queries[query()].map((text) => ({ text })) }];
  }

  function values() {
    const one = episode(), mode = choice("colour", modes()), before = context(), own = one.queries[query()].length;
    if (mode in one) return [...of(one[mode]).at(query(), layer(), head())].slice(0, before + own);
    const other = mode.replace("reading − ", ""), [read, rest] = ["icl", other].map((who) => of(one.own[who]).at(query(), layer(), head()));
    return [...Array(before).fill(NaN), ...[...read].slice(0, own).map((share, i) => share - rest[i])];
  }

  const context = () => lines().slice(0, -1).reduce((sum, line) => sum + line.tokens.length, 0);

  /* What a label's probability is among the labels, for every learner. */
  function probabilities(who) {
    const scores = episode().scores[who][query()], top = Math.max(...scores), all = scores.map((score) => Math.exp(score - top));
    const sum = all.reduce((a, b) => a + b);
    return all.map((one) => one / sum);
  }

  function answers() {
    const one = episode(), right = one.answers[query()];
    const bar = (p, label) => {
      const fill = el("span", { class: label === right ? "fill right" : "fill" });
      fill.style.width = percent(p);
      return el("td", {}, el("span", { class: "meter" }, fill), ` ${number(p, 2)}`);
    };
    const rows = Object.keys(one.scores).map((who) => {
      const all = probabilities(who), said = all.indexOf(Math.max(...all));
      return el("tr", {}, el("th", { scope: "row", text: who }), ...all.map(bar), el("td", { text: `${one.labels[said]} ${said === right ? "✓" : "✗"}` }));
    });
    const header = ["", ...one.labels.map((word, i) => `p(${word})${i === right ? ", right" : ""}`), "answer"];
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Label probabilities" },
      el("table", {}, el("thead", {}, el("tr", {}, ...header.map((name) => iclgd.head(name)))), el("tbody", {}, ...rows)));
  }

  /* What changed the answer, and where this head looks. */
  function sentence() {
    const one = episode(), right = one.answers[query()];
    const answer = (who) => { const all = probabilities(who); return all.indexOf(Math.max(...all)); };
    const [before, after] = [answer("zero-shot"), answer("icl")], judged = (label) => (label === right ? "right" : "wrong");
    const changed = before === after ? `Reading leaves the answer ${one.labels[after]}, which is ${judged(after)}` : `Reading changes the answer from ${one.labels[before]} (${judged(before)}) to ${one.labels[after]} (${judged(after)})`;
    const others = Object.keys(one.scores).filter((who) => !["zero-shot", "icl"].includes(who));
    const same = others.filter((who) => answer(who) === after);
    const rest = others.length ? `; ${same.length ? same.join(", ") : "no learner"} ${same.length > 1 ? "answer" : "answers"} the same` : "";
    return `${changed}${rest}.${attended()}`;
  }

  function attended() {
    const one = episode();
    if (!one.attention) return "";
    const all = of(one.attention).at(query(), layer(), head()), tokens = lines().flatMap((line) => line.tokens.map((token) => ({ ...token, line })));
    const sum = (is) => tokens.reduce((total, token, i) => total + (is(token) ? all[i] : 0), 0);
    const inside = (token) => token.line.kind === "demo";
    const most = tokens.map((token, i) => i).filter((i) => inside(tokens[i])).sort((a, b) => all[b] - all[a])[0];
    const which = head() === MEAN ? `layer ${layer()}, mean of its heads` : `layer ${layer()}, head ${head()}`;
    const where = most === undefined ? "" : `; of their tokens most on “${tokens[most].text.trim() || "⏎"}” in ${tokens[most].line.title} (${percent(all[most])})`;
    return ` In ${which}, ${percent(sum(inside))} of attention lies on demonstrations, ${percent(sum((token) => token.label))} on their label words${where}.`;
  }

  /* Every head's attention on the demonstrations, to choose one from. */
  function map() {
    const one = episode();
    if (!one.attention) return null;
    const block = of(one.attention), from = one.start.length, to = context(), cells = [];
    for (let l = 0; l < block.layers; l++) for (let h = 0; h < block.heads; h++) {
      cells.push({ l, h, share: block.at(query(), l, h).subarray(from, to).reduce((a, b) => a + b, 0) });
    }
    const width = Math.min(420, 60 + 14 * block.layers), height = 46 + 13 * block.heads;
    const svg = iclgd.plot({
      width, height, marginLeft: 34, marginBottom: 34, marginTop: 4, padding: 0.06,
      x: { label: "layer", labelArrow: "none", tickFormat: (l) => (l % 5 ? "" : String(l)), tickSize: 0 }, y: { label: null, tickFormat: (h) => (h % 4 ? "" : `${h}`), tickSize: 0 },
      ariaLabel: "Share of each head's attention that lies on the demonstrations, by layer and head",
      marks: [Plot.cell(cells, { x: "l", y: "h", fill: "var(--s0)", fillOpacity: (cell) => 0.06 + 0.94 * cell.share }),
        Plot.cell(cells.filter((cell) => cell.l === layer() && (head() === MEAN || String(cell.h) === head())), { x: "l", y: "h", stroke: "var(--ink)", strokeWidth: 1.6 })],
      opacity: { type: "identity" },
    });
    const [x, y] = ["x", "y"].map((name) => svg.scale(name)), middle = (scale, v) => scale.apply(v) + scale.bandwidth / 2;
    const points = Array.from({ length: block.heads }, (_, h) => cells.filter((cell) => cell.h === h).map((cell) => ({ x: middle(x, cell.l), y: middle(y, cell.h), text: `layer ${cell.l}, head ${cell.h}\n${percent(cell.share)} on demonstrations` })));
    iclgd.pointed(svg, points, said);
    svg.addEventListener("click", (event) => {
      const at = svg.getBoundingClientRect(), nearest = (scale, value) => scale.domain.reduce((best, v) => (Math.abs(middle(scale, v) - value) < Math.abs(middle(scale, best) - value) ? v : best));
      choose("layer", nearest(x, ((event.clientX - at.left) / at.width) * width));
      choose("head", nearest(y, ((event.clientY - at.top) / at.height) * height));
    });
    return el("div", {}, el("div", { class: "title", text: "Attention on demonstrations, by layer and head" }), svg);
  }

  function alike(room) {
    const rows = Object.entries(episode().alike).map(([who, all]) => {
      const values = all[query()].map((value) => value ?? NaN), none = values.map(() => NaN);
      return { label: (name) => ({ name: who, role: "own" })[name], values, low: none, high: none };
    });
    if (!rows.length) return null;
    const shape = { points: rows[0].values.map((_, i) => i), x: "layer", own: "role", name: "name", colour: "name" };
    return el("div", {}, el("div", { class: "title", text: "Likeness of updates with reading's, this query" }), iclgd.legend(rows, shape), iclgd.linePanel(rows, shape, [-1, 1], Math.min(440, room), "Likeness by layer", said));
  }

  // in its place

  const bar = el("div", { class: "bar" }), words = el("p"), side = el("div", { class: "side" }), key = el("p", { class: "soft key" });
  host.append(bar, words, el("div", { class: "explored" }, el("div", {}, key, text.box), side), said);

  function step(by) {
    const count = episode().queries.length;
    choose("query", (query() + by + count) % count);
  }

  function controls() {
    const one = episode(), short = one.queries.map((tokens, i) => `${i + 1}: ${tokens.join("").replace(/\s+/g, " ").trim().slice(0, 60)}`);
    const slider = el("input", { type: "range", min: 0, max: size().layers - 1, step: 1, "aria-label": "layer", oninput: () => choose("layer", slider.value) });
    slider.value = layer();
    const told = el("output", { text: String(layer()) });
    controls.follow = () => { slider.value = layer(); told.textContent = String(layer()); };
    bar.replaceChildren(...[
      titles.length > 1 ? iclgd.selector("task", "task", titles) : null,
      el("button", { type: "button", text: "‹", "aria-label": "Previous query", onclick: () => step(-1) }),
      iclgd.selector("query", "query", short, counted(one.queries.length)),
      el("button", { type: "button", text: "›", "aria-label": "Next query", onclick: () => step(1) }),
      iclgd.selector("colour", "colour", modes()),
      el("label", {}, el("span", { text: "layer" }), slider, told),
      iclgd.selector("head", "head", [MEAN, ...counted(size().heads)]),
    ].filter(Boolean));
  }

  function paint() {
    const all = values(), signed = !(choice("colour", modes()) in episode()), from = episode().start.length;
    const largest = Math.max(...all.slice(from).filter((value) => !Number.isNaN(value)).map(Math.abs), 1e-9);
    text.paint(all, largest, (value) => `${signed && value > 0 ? "+" : ""}${number(value, 4)} ${signed ? "of the attention among the query's tokens" : `of ${choice("colour", modes())}`}`);
    key.textContent = signed ? `Blue: reading attends more, orange: less; strongest ${number(largest, 3)}.` : `Strongest: ${number(largest, 3)} of ${choice("colour", modes())}. Label words are underlined.`;
    words.textContent = sentence();
  }

  function draw(what) {
    if (["", "task"].includes(what)) controls();
    controls.follow();
    if (["", "task", "query"].includes(what)) text.lay(lines());
    paint();
    if (!["colour"].includes(what)) side.replaceChildren(...[answers(), map(), alike(side.clientWidth || 400)].filter(Boolean));
  }

  draw("");
  iclgd.heard.push((what) => ["", "task", "query", "layer", "head", "colour"].includes(what) && draw(what));
});
