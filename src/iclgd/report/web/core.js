"use strict";
/* What every part of a page stands on: elements made from text, what was chosen, and widgets by kind.
   Text goes in by textContent alone. What is chosen lives in the page's address: #task=sst2&layer=3. */
const iclgd = (() => {
  const draws = new Map();
  const heard = [];
  const embedded = location.protocol === "about:"; // in a notebook's frame the address is not ours
  const chosen = new Map(location.hash.includes("=") ? new URLSearchParams(location.hash.slice(1)) : []);

  function el(tag, given = {}, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name === "text") made.textContent = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value != null) made.setAttribute(name, value);
    }
    made.append(...inside.filter((one) => one != null));
    return made;
  }

  /* A column's heading; one without words is that of the names. */
  const head = (text) => el("th", { scope: "col" }, text || el("span", { class: "away", text: "name" }));

  /* The choice of a name: what the address says, if that is one of these, else the first. */
  function choice(name, among) {
    const said = chosen.get(name);
    return among.includes(said) ? said : among[0];
  }

  function choose(name, value) {
    if (chosen.get(name) === String(value)) return;
    chosen.set(name, String(value));
    written();
    for (const hear of heard) hear(name);
  }

  function written() {
    if (!embedded) history.replaceState(null, "", "#" + new URLSearchParams([...chosen]));
  }

  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return;
    const said = new URLSearchParams(location.hash.slice(1));
    chosen.clear();
    for (const [name, value] of said) chosen.set(name, value);
    for (const hear of heard) hear("");
    shown();
  });

  /* A link within the page leads there and leaves what was chosen in the address. */
  addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    const place = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!place) return;
    event.preventDefault();
    chosen.set("at", place.id);
    written();
    shown();
  });

  function shown() {
    const place = document.getElementById(chosen.get("at") ?? "");
    if (!place) return;
    for (let outer = place.parentElement; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    for (const inside of place.querySelectorAll("details.long")) inside.open = true;
    place.scrollIntoView();
    place.setAttribute("tabindex", "-1");
    place.focus({ preventScroll: true });
  }

  /* A labelled selector bound to a choice; arrow keys step through it as in any other. */
  function selector(name, title, among, values = among) {
    const box = el("select", { name, onchange: () => choose(name, box.value) });
    for (const [i, value] of values.entries()) box.append(el("option", { value, text: among[i] }));
    const follow = () => (box.value = choice(name, values.map(String)));
    follow();
    heard.push(follow);
    return el("label", {}, el("span", { text: title }), box);
  }

  function widget(kind, draw) {
    draws.set(kind, draw);
  }

  function start() {
    for (const host of document.querySelectorAll(".widget")) {
      const data = JSON.parse(document.getElementById(host.dataset.from).textContent);
      draws.get(host.dataset.kind)(host, data);
    }
    if (matchMedia("(max-width: 79.99rem)").matches) document.getElementById("contents").open = false;
    terms();
    shown();
    document.documentElement.dataset.ready = "yes";
  }

  /* Definitions on hover and focus. */
  const tip = el("div", { class: "tip", role: "tooltip", id: "tip", hidden: true });

  function explain(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(x, room)) + scrollX}px`;
    const below = y + 6 + tip.offsetHeight <= innerHeight; // else above what it is about
    tip.style.top = `${(below ? y + 6 : Math.max(0, y - tip.offsetHeight - 28)) + scrollY}px`;
  }

  function hush() {
    tip.hidden = true;
  }

  addEventListener("beforeprint", () => document.querySelectorAll("details.long").forEach((one) => (one.open = true)));

  function terms() {
    document.body.append(tip);
    for (const term of document.querySelectorAll(".term")) {
      const meaning = document.getElementById(term.getAttribute("href").slice(1))?.querySelector("dd").textContent;
      if (!meaning) continue;
      const show = () => {
        const box = term.getBoundingClientRect();
        term.setAttribute("aria-describedby", "tip");
        explain(meaning, box.left, box.bottom);
      };
      for (const event of ["mouseenter", "focus"]) term.addEventListener(event, show);
      for (const event of ["mouseleave", "blur"]) term.addEventListener(event, hush);
    }
    addEventListener("keydown", (event) => event.key === "Escape" && hush());
  }

  /* A number as the tables write it: .149 */
  function number(value, digits = 3) {
    if (value == null || Number.isNaN(value)) return "n/a";
    const size = Math.abs(value);
    const text = size !== 0 && (size < 0.001 || size >= 10000) ? value.toPrecision(3) : value.toFixed(digits);
    return text.replace(/^(-?)0\./, "$1.").replace("-", "−");
  }

  /* A number on an axis: as few digits as tell it. */
  const brief = (value) => (value >= 0.001 && value < 10000 ? String(Number(value.toPrecision(2))).replace(/^0\./, ".") : value.toExponential(0).replace("e+", "e"));

  function interval(value, low, high, digits = 3) {
    const around = low == null || Number.isNaN(low) ? "" : ` [${number(low, digits)} ${number(high, digits)}]`;
    return number(value, digits) + around;
  }

  return { el, head, choice, choose, chosen, heard, selector, widget, start, explain, hush, number, brief, interval };
})();
