// Writes each <time datetime> in the reader's time zone, with UTC beside it.
// A zone that the reader chose in the settings is already in the page, as data-zone.

const UTC = "UTC";

function zoneOf(element) {
  return element.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || UTC;
}

function written(moment, zone) {
  const options = {
    timeZone: zone, weekday: "short", day: "2-digit", month: "short", year: "numeric",
    hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  };
  const parts = Object.fromEntries(
    new Intl.DateTimeFormat("en-GB", options).formatToParts(moment).map((part) => [part.type, part.value]));
  return {
    day: `${parts.weekday} ${parts.day} ${parts.month} ${parts.year}`,
    weekday: parts.weekday,
    clock: `${parts.hour}:${parts.minute}`,
  };
}

export function localize(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-done])")) {
    const moment = new Date(element.dateTime);
    const zone = zoneOf(element);
    element.dataset.done = zone;
    if (zone === UTC || Number.isNaN(moment.getTime())) continue;
    const own = written(moment, zone);
    const utc = written(moment, UTC);
    const beside = document.createElement("small");
    beside.className = "utc";
    beside.textContent = own.day === utc.day ? `(${utc.clock} UTC)` : `(${utc.weekday} ${utc.clock} UTC)`;
    element.replaceChildren(`${own.day} ${own.clock} `, beside);
  }
  const note = document.querySelector("[data-zone-note]");
  const shown = document.querySelector("time[data-done]");
  if (note && shown && shown.dataset.done !== UTC && !shown.dataset.zone) {
    note.textContent = ` and in ${shown.dataset.done}, the zone of this browser`;
    note.hidden = false;
  }
}
