// Uploads a file with progress. The answer to the call contains only the reference.
import type { Http } from "@farhand/client";
import { limitWords } from "./sentences.ts";
import { WORDS } from "./words.ts";

export interface UploadedFile {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly ref: string;
}

/** Why a file was not uploaded. `code` is explained at `/errors/{code}` of the server. */
export class UploadError extends Error {
  constructor(
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

const largest = new WeakMap<Http, Promise<number | undefined>>();

/** The maximum size of a file in bytes; undefined while it is unknown. Requested once. */
export function largestFile(http: Http): Promise<number | undefined> {
  const known = largest.get(http);
  if (known !== undefined) {
    return known;
  }
  const asked = http.fetch(`${http.url}/api/about`, { headers: http.headers }).then(
    async (response) => (response.ok ? sizeIn(await response.json()) : undefined),
    () => {
      // the next card asks again
      largest.delete(http);
      return undefined;
    },
  );
  largest.set(http, asked);
  return asked;
}

/** Rejects with an `UploadError`, without sending the file if it is larger than the known limit; otherwise the server checks. `signal`
 * cancels it. */
export async function upload(http: Http, file: File, onProgress: (share: number) => void, signal?: AbortSignal): Promise<UploadedFile> {
  const limit = await largestFile(http);
  if (limit !== undefined && file.size > limit) {
    throw new UploadError(`${file.name} is larger than ${limitWords(limit)}.`, "too_large");
  }
  return send(http, file, onProgress, signal);
}

function send(http: Http, file: File, onProgress: (share: number) => void, signal: AbortSignal | undefined): Promise<UploadedFile> {
  return new Promise((done, failed) => {
    // fetch does not report upload progress
    const request = new XMLHttpRequest();
    request.open("POST", `${http.url}/api/files`);
    const headers = { ...http.headers, "X-Farhand": "1", "X-File-Name": encodeURIComponent(file.name), "Content-Type": file.type || "application/octet-stream" };
    Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total);
    request.onload = () => {
      const { status } = request;
      const { name, type, size, ref, error } = answerIn(request.responseText);
      return status === 201 && ref !== undefined ? done({ name, type, size, ref } as UploadedFile) : failed(refusalOf(status, error));
    };
    signal?.addEventListener("abort", () => request.abort());
    request.onerror = () => failed(new UploadError("The file did not reach the server. Nothing is lost: try again."));
    signal?.aborted || request.send(file);
  });
}

function sizeIn(about: unknown): number | undefined {
  const size = (about as { largestFile?: unknown } | null)?.largestFile;
  return typeof size === "number" ? size : undefined;
}

interface Answer extends Partial<UploadedFile> {
  readonly error?: { readonly code: string; readonly message: string };
}

/** The body; without members if a proxy sent something else than JSON. */
function answerIn(text: string): Answer {
  try {
    return Object(JSON.parse(text)) as Answer;
  } catch {
    return {};
  }
}

function refusalOf(status: number, error: Answer["error"]): UploadError {
  const words: Readonly<Record<number, string>> = {
    413: "The file is larger than the server accepts.",
    415: "The server does not accept this type of file.",
  };
  // an expired sign-in has a banner of its own
  return status === 401 ? new UploadError(WORDS.signedOut) : new UploadError(error?.message ?? words[status] ?? `The server did not accept the file (${status}).`, error?.code);
}
