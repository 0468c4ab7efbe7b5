// The icon of the tab: the agent's logo if it has one, with a dot while an answer is needed.
import dotted from "./icon-dot.svg";
import icon from "./icon.svg";

const SIZE_PX = 64;
const DOT = { x: 49, y: 15, radius: 13, line: 4 };

let shown = 0;

export function showTabIcon(logo: string | undefined, isDotted: boolean): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const number = (shown += 1);
  const show = (href: string): void => {
    if (number === shown && link !== null && link.getAttribute("href") !== href) {
      // the browser detects the image type of a logo
      logo === undefined ? link.setAttribute("type", "image/svg+xml") : link.removeAttribute("type");
      link.setAttribute("href", href);
    }
  };
  show(logo ?? (isDotted ? dotted : icon));
  if (logo !== undefined && isDotted) {
    // an image from another site cannot be read from a canvas: then only the title shows the count
    void withDot(logo).then(show, () => undefined);
  }
}

async function withDot(logo: string): Promise<string> {
  const image = new Image();
  image.src = logo;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIZE_PX;
  const brush = canvas.getContext("2d");
  const share = SIZE_PX / Math.max(image.naturalWidth, image.naturalHeight, 1);
  const [width, height] = [image.naturalWidth * share, image.naturalHeight * share];
  brush?.drawImage(image, (SIZE_PX - width) / 2, (SIZE_PX - height) / 2, width, height);
  if (brush != null) {
    brush.arc(DOT.x, DOT.y, DOT.radius, 0, 2 * Math.PI);
    Object.assign(brush, { fillStyle: "#e0a23c", strokeStyle: "#fff", lineWidth: DOT.line });
    brush.fill();
    brush.stroke();
  }
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob === null ? failed(new Error("no image")) : done(URL.createObjectURL(blob)))));
}
