// Adds a button to each text in data-copy that copies it, and says so to screen readers.

export function copyable(root) {
  for (const text of root.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        document.querySelector("#live").textContent = "Copied";
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
      }
    });
    text.after(button);
  }
}
