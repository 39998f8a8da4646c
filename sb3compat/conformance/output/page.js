"use strict";
for (const button of document.querySelectorAll("button[data-label]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    for (const row of document.querySelectorAll(`tr.${button.dataset.label}`)) {
      row.classList.toggle("hidden", !shown);
    }
    for (const table of document.querySelectorAll("table.checks")) {
      table.classList.toggle("hidden", !table.querySelector("tbody tr:not(.hidden)"));
    }
  });
}
// What is wrong is in the last step, mostly.
for (const box of document.querySelectorAll(".scroll")) {
  box.scrollLeft = box.scrollWidth;
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const script = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(script.textContent);
      button.textContent = "Copied";
    } catch {
      // A page from a file may not write to the clipboard: select the text instead.
      getSelection().selectAllChildren(script);
      button.textContent = "Selected";
    }
  });
}
