// The board of pools: dragging a host to a pool opens the preview of its move, as the form does; and the board follows
// changes unless somebody is choosing hosts.
const form = document.querySelector("#move");
const PAUSE = 400;
let dragged, timer;
let isPressed = false;

function prepare() {
  for (const card of document.querySelectorAll(".board .host-card")) card.draggable = true;
}

document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".host-card");
  if (dragged) event.dataTransfer.setData("text/plain", dragged.dataset.host);
});
document.addEventListener("dragend", () => { dragged = undefined; isPressed = false; mark(); });
document.addEventListener("pointerdown", (event) => { isPressed = Boolean(event.target.closest?.(".board")); });
for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => { isPressed = false; });
document.addEventListener("dragover", (event) => {
  const column = target(event);
  mark(column);
  if (column) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  const column = target(event);
  if (!column) return;
  event.preventDefault();
  const box = dragged.querySelector("input");
  box.checked = true;
  form.elements.to.value = column.dataset.pool;
  form.requestSubmit();
});

function target(event) {
  const column = dragged && event.target.closest?.(".column[data-target]");
  return column && !column.contains(dragged) ? column : undefined;
}

function mark(chosen) {
  for (const column of document.querySelectorAll(".column.drop")) if (column !== chosen) column.classList.remove("drop");
  chosen?.classList.add("drop");
}

document.addEventListener("climate:change", later);

function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, PAUSE);
}

/** Whether somebody chooses hosts, or has begun to drag one: its card must stay where it is. */
function isInUse(board) {
  return dragged || isPressed || board.querySelector("input:checked") || board.contains(document.activeElement);
}

async function refresh() {
  const board = document.querySelector(".board");
  if (isInUse(board)) { later(); return; }
  const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".board");
  if (!fresh) return;
  if (isInUse(board)) { later(); return; }
  board.replaceWith(document.adoptNode(fresh));
  prepare();
  document.dispatchEvent(new CustomEvent("htmx:after:swap"));
}

prepare();
