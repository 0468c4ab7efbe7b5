// Uploads a file with progress. The answer to the call contains only the reference.
import type { Http } from "@farhand/client";
import { limitWords } from "./sentences.ts";

export interface UploadedFile {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly ref: string;
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

/** Rejects a file that is larger than the known limit without sending it; otherwise the server checks. `signal` cancels it. */
export async function upload(http: Http, file: File, onProgress: (share: number) => void, signal?: AbortSignal): Promise<UploadedFile> {
  const limit = await largestFile(http);
  if (limit !== undefined && file.size > limit) {
    throw new Error(`${file.name} is larger than ${limitWords(limit)}.`);
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
      const uploaded = request.status === 201 ? uploadedOf(request.responseText) : undefined;
      return uploaded === undefined ? failed(new Error(refusalOf(request.status))) : done(uploaded);
    };
    signal?.addEventListener("abort", () => request.abort());
    request.onerror = () => failed(new Error("The file did not reach the server. Nothing is lost: try again."));
    signal?.aborted || request.send(file);
  });
}

function sizeIn(about: unknown): number | undefined {
  const size = (about as { largestFile?: unknown } | null)?.largestFile;
  return typeof size === "number" ? size : undefined;
}

function uploadedOf(text: string): UploadedFile | undefined {
  try {
    const { name, type, size, ref } = JSON.parse(text) as UploadedFile;
    return typeof ref === "string" ? { name, type, size, ref } : undefined;
  } catch {
    return undefined;
  }
}

function refusalOf(status: number): string {
  const words: Readonly<Record<number, string>> = {
    413: "The file is larger than the server accepts.",
    415: "The server does not accept this type of file.",
  };
  return words[status] ?? `The server did not accept the file (${status}).`;
}
