// Counts the seconds down to the time in data-until; at the end the page is loaded again and says what became of it.

function words(seconds) {
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
}

export function countDown(root) {
  for (const element of root.querySelectorAll("[data-until]")) {
    const until = new Date(element.dataset.until).getTime();
    const timer = setInterval(() => {
      const left = Math.max(0, Math.round((until - Date.now()) / 1000));
      element.textContent = left ? words(left) : "over";
      if (!left) {
        clearInterval(timer);
        setTimeout(() => location.reload(), 2000);
      }
    }, 1000);
  }
}
