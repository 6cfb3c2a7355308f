// A slider through the history of a lease: what is above the history is shown as it was, while it moves.
import { localize } from "./times.js";

const PAUSE = 120;
let timer, version = 0;

const formNow = () => document.querySelector("[data-steps]");

async function show(form) {
  const own = version += 1, slider = form.elements.step;
  const step = Number(slider.value), last = Number(slider.max);
  const address = new URL(form.action);
  if (step < last) address.searchParams.set("step", step);
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
    link.hidden = step + by < 1 || step + by > last;
    link.href = `${form.action}?step=${step + by}`;
  }
  history.replaceState(history.state, "", address);
  localize(document);
  slider.setAttribute("aria-valuetext", document.querySelector("#step-now").textContent);
}

/** Hide the button that the slider does not need. The form comes with the first change of a lease. */
function hide() {
  const button = formNow()?.querySelector("button");
  if (button) button.hidden = true;
}

hide();
document.addEventListener("htmx:after:swap", hide);
document.addEventListener("input", (event) => {
  const form = formNow();
  if (!form?.contains(event.target)) return;
  const slider = form.elements.step;
  // The page follows no changes then: one that arrives before the answer would put the slider back.
  document.querySelector("#lease").toggleAttribute("data-past", Number(slider.value) < Number(slider.max));
  clearTimeout(timer);
  timer = setTimeout(() => show(form), PAUSE);
});
