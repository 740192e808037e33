"use strict";
/* Tables that are wider than the page can be scrolled with the keyboard. */
function reachable() {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) wrap.tabIndex = 0;
}
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
