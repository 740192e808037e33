"use strict";
/* Claims by paper, verdict and tier; each opens to its evidence and the command that repeats it. */
iclgd.widget("ledger", (host, data) => {
  const { el, choice } = iclgd;
  const ALL = "all", filters = { paper: "paper", stands: "the ledger says", state: "a run", tier: "takes" };
  const list = el("div", { class: "ledger" }), status = el("p", { class: "soft", role: "status" });
  const words = el("input", { type: "search", placeholder: "words", "aria-label": "Words of a claim", oninput: () => draw() });
  const values = (name) => [ALL, ...new Set(data.claims.map((claim) => claim[name]))];

  function entry(claim) {
    const mark = el("span", { class: `mark ${claim.red ? "red" : ""}`, text: claim.mark, title: claim.state });
    const body = el("pre", { tabindex: "0", text: claim.full });
    return el("details", { id: claim.anchor }, el("summary", {}, mark, el("strong", { text: claim.stands }), ` ${claim.says} `, el("span", { class: "soft", text: `${claim.paper} · ${claim.measured}` })), body);
  }

  function draw() {
    const wanted = Object.keys(filters).map((name) => [name, choice(name, values(name))]).filter(([, value]) => value !== ALL);
    const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = data.claims.filter((claim) => wanted.every(([name, value]) => claim[name] === value) && asked.every((word) => claim.full.toLowerCase().includes(word)));
    list.replaceChildren(...found.map(entry));
    status.textContent = `${found.length} of ${data.claims.length} claims`;
  }

  host.append(el("div", { class: "bar" }, ...Object.entries(filters).map(([name, title]) => iclgd.selector(name, title, values(name))), words), status, list);
  iclgd.heard.push(draw);
  draw();
});
