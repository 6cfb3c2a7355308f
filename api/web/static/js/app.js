// What every page does: times in the reader's zone, countdowns, and texts to copy.
import { copyable } from "./copy.js";
import { countDown } from "./countdown.js";
import { localize } from "./times.js";

const switcher = document.querySelector("#project-switch");
if (switcher) {
  switcher.addEventListener("change", () => switcher.form.requestSubmit());
  switcher.form.classList.add("automatic");
}

localize(document);
countDown(document);
copyable(document);
document.addEventListener("htmx:after:swap", () => localize(document));
