// A slider through the history of a lease: what is above the history is shown as it was, while it moves.
import { localize } from "./times.js";

const PAUSE = 120;
const form = document.querySelector("[data-steps]");
let timer, version = 0;

async function show(step) {
  const own = version += 1;
  const address = new URL(form.action);
  if (step < Number(form.elements.step.max)) address.searchParams.set("step", step);
  const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" } }).catch(() => undefined);
  if (own !== version) return;
  if (!answer?.ok || answer.redirected) { location.assign(address); return; }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (own !== version) return;
  for (const part of ["#state", "#step-now", ".history"]) {
    const known = fresh.querySelector(part);
    if (known) document.querySelector(part).replaceWith(document.adoptNode(known));
  }
  for (const [rel, by] of [["prev", -1], ["next", 1]]) {
    const link = form.querySelector(`a[rel=${rel}]`);
    if (link) link.hidden = step + by < 1 || step + by > Number(form.elements.step.max);
    if (link) link.href = `${form.action}?step=${step + by}`;
  }
  history.replaceState(history.state, "", address);
  localize(document);
  form.elements.step.setAttribute("aria-valuetext", document.querySelector("#step-now").textContent);
}

if (form) {
  form.querySelector("button").hidden = true;
  form.elements.step.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => show(Number(form.elements.step.value)), PAUSE);
  });
}
