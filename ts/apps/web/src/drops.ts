// By default, a browser opens a dropped file and so leaves the page. Prevents this wherever nothing accepts the file.

/** An element that accepts files has prevented the default before this listener runs, or sets `dropEffect` itself. */
export function refuseDrops(): void {
  for (const kind of ["dragover", "drop"] as const) {
    addEventListener(kind, (event) => {
      if (!event.defaultPrevented && event.dataTransfer?.types.includes("Files") === true) {
        event.preventDefault();
        event.dataTransfer.dropEffect = "none";
      }
    });
  }
}
