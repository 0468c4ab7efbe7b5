// A file that is dropped where nobody takes it would be opened by the browser in the place of the page, with all that it holds.

/** Whoever takes files says so first, by preventing the browser's own way. */
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
