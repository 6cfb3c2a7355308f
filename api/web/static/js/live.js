// Live updates: one stream of server-sent events per page, which other scripts hear as events of the document.
//
// `climate:change` (detail: topic, kind, ids) follows each change, and so do an event of its topic, such as
// `climate:host`, and one of its lease, `climate:lease-ID`. The macro `live` of parts.html has htmx fetch a part of a
// page after them. The stream begins at the position of the journal at which the page was read, so that nothing is
// fetched twice. A page without a position, which was read while somebody appended, fetches its parts once more. Where
// no stream comes through, the pages are told to look again every few seconds. A hidden page closes its stream, because
// browsers open few connections to one server.

const POLL = 5000, PATIENCE = 4000, FALLBACK_AFTER = 3;
const TOPICS = ["lease", "host", "maintenance", "pool", "limits", "other", "calendar"];
const stream = document.querySelector("meta[name=climate-stream]");
const url = stream?.content;

let source, poller, failures = 0;
let last = stream?.dataset.after;  // everything up to this position of the journal is on the page

function tell(topic, data) {
  const names = ["change", topic, ...(data.lease_id ? [`lease-${data.lease_id}`] : [])];
  for (const name of names) document.dispatchEvent(new CustomEvent(`climate:${name}`, { detail: { topic, ...data } }));
}

function open() {
  if (source || !url || document.hidden) return;
  const target = new URL(url, location.href);
  if (last) target.searchParams.set("after", last);
  source = new EventSource(target);
  const known = (event) => { if (event.lastEventId) last = event.lastEventId; };
  for (const topic of TOPICS) {
    source.addEventListener(topic, (event) => { known(event); tell(topic, JSON.parse(event.data)); });
  }
  source.addEventListener("ready", (event) => {
    if (!last || poller) tell("all", {});  // what is on the page may be older than the stream
    known(event);
    failures = 0;
    clearInterval(poller);
    poller = undefined;
    document.documentElement.dataset.live = "stream";
  });
  source.addEventListener("reset", (event) => { known(event); tell("all", {}); });
  source.addEventListener("error", () => {
    failures += 1;
    if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(open, PATIENCE); }
    if (failures >= FALLBACK_AFTER && !poller) {
      document.documentElement.dataset.live = "polling";
      poller = setInterval(() => { if (!document.hidden) tell("all", {}); }, POLL);
    }
  });
}

function close() {
  source?.close();
  source = undefined;
}

// A part that shows the past stays as it is, also if an answer arrives late, and nobody sees a hidden page.
const partOf = (event) => event.target.closest?.("[data-live]");
document.addEventListener("htmx:before:request", (event) => {
  if (partOf(event) && document.hidden) event.preventDefault();
});
for (const name of ["htmx:before:request", "htmx:before:swap"]) {
  document.addEventListener(name, (event) => { if (partOf(event)?.hasAttribute("data-past")) event.preventDefault(); });
}
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
