// A file card says what the server takes, and sends nothing that it would not.
import { type Call, type Http, httpOf } from "@farhand/client";
import { cleanup, configure, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { type CardHost, CardHostProvider, ToolCard, upload } from "../src/index.ts";
import { limitWords } from "../src/sentences.ts";

// as long as any other wait: the machine may be busy
configure({ asyncUtilTimeout: 20_000 });
afterEach(cleanup);
afterEach(() => sessionStorage.clear());

const nothing = (): void => undefined;
const call: Call = { id: "call_1", tool: "pick_file", phase: "ready", input: {} };

function show(http: Http, kind: "file" | "photo" = "file"): void {
  const host: CardHost = {
    http, cards: [], connection: { state: "open" },
    answer: nothing, approve: nothing, retry: nothing, discard: nothing, retryNow: nothing, say: nothing,
  };
  const view = { call, kind, state: { name: "open", deadline: undefined }, executor: "frontend" } as const;
  render(<CardHostProvider host={host}><ToolCard view={view} /></CardHostProvider>);
}

function serverOf(about: () => Response): { http: Http; asked: string[] } {
  const asked: string[] = [];
  const fetch = (input: unknown): Promise<Response> => {
    asked.push(String(input));
    return Promise.resolve(about());
  };
  return { http: httpOf({ url: "http://127.0.0.1:9", fetch: fetch as typeof globalThis.fetch }), asked };
}

it("the limit of the server is shown and kept, and asked for once", async () => {
  const { http, asked } = serverOf(() => Response.json({ model: "scripted", largestFile: 2 * 1_048_576 }));
  show(http);
  await screen.findByText("One file, up to 2 MB");
  const film = new File([new Uint8Array(2 * 1_048_576 + 1)], "film.zip");
  fireEvent.change(screen.getByLabelText("File"), { target: { files: [film] } });
  expect((await screen.findByRole("alert")).textContent?.trim()).toBe("film.zip is larger than 2 MB. too_large");
  expect(asked.filter((path) => path.endsWith("/api/about"))).toEqual(["http://127.0.0.1:9/api/about"]);
});

it("a server that does not say its limit leaves the card without one", async () => {
  show(serverOf(() => new Response("", { status: 403 })).http);
  await screen.findByText("One file");
});

it.each([
  [500, "500 bytes"],
  [1_024, "1 KB"],
  [300_000, "292.9 KB"],
  [10 * 1_048_576, "10 MB"],
  [1_600_000, "1.5 MB"],
])("a limit of %i bytes is told as %s", (bytes, words) => {
  expect(limitWords(bytes)).toBe(words);
});

it.each([
  ["NotAllowedError", "The camera is blocked", "Allow the camera for this site in the address bar, then try again."],
  ["NotFoundError", "No camera was found", "Choose a file instead."],
  ["NotReadableError", "The camera is in use elsewhere", "Choose a file instead."],
])("a camera that does not start with %s says why, and what to do", async (name, title, advice) => {
  const getUserMedia = (): Promise<MediaStream> => Promise.reject(new DOMException("Requested device not found", name));
  Object.defineProperty(navigator, "mediaDevices", { value: { getUserMedia }, configurable: true });
  show(serverOf(() => new Response("", { status: 403 })).http, "photo");
  fireEvent.click(screen.getByRole("button", { name: "Take photo" }));
  expect((await screen.findByRole("alert")).textContent?.trim()).toBe(advice);
  expect(screen.getByRole("group", { name: title })).toBeDefined();
  expect(screen.queryByText("The browser refused") !== null).toBe(name === "NotAllowedError");
  expect(screen.getByRole("button", { name: "Choose a file" })).toBeDefined();
});

it("a camera that is allowed after its card is gone is switched off again", async () => {
  let allow: (live: MediaStream) => void = nothing;
  const getUserMedia = (): Promise<MediaStream> => new Promise((resolve) => (allow = resolve));
  Object.defineProperty(navigator, "mediaDevices", { value: { getUserMedia }, configurable: true });
  show(serverOf(() => new Response("", { status: 403 })).http, "photo");
  fireEvent.click(screen.getByRole("button", { name: "Take photo" }));
  cleanup();
  const stop = vi.fn();
  allow({ getTracks: () => [{ stop }] } as unknown as MediaStream);
  await vi.waitFor(() => expect(stop).toHaveBeenCalledOnce(), 20_000);
});

/** An upload that never gets through. */
function hangingUploads(): { sent: number; aborted: number } {
  const seen = { sent: 0, aborted: 0 };
  class HangingRequest extends EventTarget {
    readonly upload = new EventTarget();
    readonly open = nothing;
    readonly setRequestHeader = nothing;
    readonly send = (): void => void (seen.sent += 1);
    readonly abort = (): void => void (seen.aborted += 1);
  }
  vi.stubGlobal("XMLHttpRequest", HangingRequest);
  return seen;
}

it.each(["file", "photo"] as const)("an upload of a %s card that hangs can be cancelled, and the card can be answered again", async (kind) => {
  const seen = hangingUploads();
  show(serverOf(() => new Response("", { status: 403 })).http, kind);
  fireEvent.change(screen.getByLabelText("File"), { target: { files: [new File(["x"], "notes.png")] } });
  await vi.waitFor(() => expect(seen.sent).toBe(1), 20_000);
  expect(screen.queryByRole("button", { name: "Skip" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(seen.aborted).toBe(1);
  expect(screen.queryByRole("progressbar")).toBeNull();
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Choose a file" }).disabled).toBe(false);
  expect(screen.getByRole("button", { name: "Skip" })).toBeDefined();
  vi.unstubAllGlobals();
});

/** A server that answers each upload so. */
function answering(status: number, responseText: string): void {
  class AnsweredRequest {
    readonly upload = {};
    readonly open = nothing;
    readonly setRequestHeader = nothing;
    readonly status = status;
    readonly responseText = responseText;
    onload = nothing;
    readonly send = (): void => void setTimeout(() => this.onload());
  }
  vi.stubGlobal("XMLHttpRequest", AnsweredRequest);
}

const UNFIT = { error: { code: "wrong_type", message: "Files of type 'text/x-sh' are not accepted. Accepted types: image/*." } };
const SIGNED_OUT = { error: { code: "unauthenticated", message: "No valid credential was sent. Send Authorization: Bearer." } };

it.each([
  [415, JSON.stringify(UNFIT), UNFIT.error.message, "wrong_type"],
  // a proxy has no codes
  [413, "<h1>413 Request Entity Too Large</h1>", "The file is larger than the server accepts.", undefined],
  [502, "", "The server did not accept the file (502).", undefined],
  // the banner above the cards says what to do
  [401, JSON.stringify(SIGNED_OUT), "You were signed out.", undefined],
])("an upload that is refused with %i says why, and its code links to the explanation", async (status, body, words, code) => {
  answering(status, body);
  const { http } = serverOf(() => Response.json({}));
  show(http);
  fireEvent.change(screen.getByLabelText("File"), { target: { files: [new File(["x"], "run.sh")] } });
  expect((await screen.findByRole("alert")).textContent?.trim()).toBe([words, code].filter((each) => each !== undefined).join(" "));
  expect(screen.queryByRole("link")?.getAttribute("href")).toBe(code && `${http.url}/errors/${code}`);
  vi.unstubAllGlobals();
});

it("a file that was taken back before the server said its limit is not sent", async () => {
  const seen = hangingUploads();
  let tell: (response: Response) => void = nothing;
  const http = httpOf({ url: "http://127.0.0.1:9", fetch: (() => new Promise((told) => (tell = told))) as typeof globalThis.fetch });
  const gone = new AbortController();
  void upload(http, new File(["x"], "notes.txt"), nothing, gone.signal);
  gone.abort();
  tell(Response.json({}));
  await new Promise((wake) => setTimeout(wake));
  expect(seen.sent).toBe(0);
  vi.unstubAllGlobals();
});

it("a file that is dropped anywhere on its card is taken, and does not replace the page", async () => {
  show(serverOf(() => Response.json({ largestFile: 4 })).http);
  const heading = screen.getByRole("heading");
  const box = (): string | undefined => document.querySelector<HTMLElement>(".fh-drop")?.dataset["over"];
  // `false`: the browser's default, which opens the file, was prevented
  expect(fireEvent.dragOver(heading)).toBe(false);
  expect(box()).toBe("true");
  // jsdom has no drag events with a `relatedTarget`
  const leaves = (relatedTarget: Element | null): boolean => fireEvent(heading, new MouseEvent("dragleave", { bubbles: true, relatedTarget }));
  leaves(document.querySelector(".fh-drop"));
  expect(box()).toBe("true");
  leaves(document.body);
  expect(box()).toBe("false");
  expect(fireEvent.drop(heading, { dataTransfer: { files: [new File(["five!"], "long.txt")] } })).toBe(false);
  expect((await screen.findByRole("alert")).textContent?.trim()).toBe("long.txt is larger than 4 bytes. too_large");
});
