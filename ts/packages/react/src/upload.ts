// A file on its way to the server, with its progress. The answer to a call holds the ref alone.
import type { Http } from "@farhand/client";

export const LARGEST_FILE = 10 * 1024 * 1024;

export interface UploadedFile {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly ref: string;
}

export function upload(http: Http, file: File, onProgress: (share: number) => void): Promise<UploadedFile> {
  if (file.size > LARGEST_FILE) {
    return Promise.reject(new Error(`${file.name} is larger than 10 MB.`));
  }
  return new Promise((done, failed) => {
    // fetch does not tell how far an upload is
    const request = new XMLHttpRequest();
    request.open("POST", `${http.url}/api/files`);
    const headers = { ...http.headers, "X-Farhand": "1", "X-File-Name": encodeURIComponent(file.name), "Content-Type": file.type || "application/octet-stream" };
    Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total);
    request.onload = () => {
      const uploaded = request.status === 201 ? uploadedOf(request.responseText) : undefined;
      return uploaded === undefined ? failed(new Error(refusalOf(request.status))) : done(uploaded);
    };
    request.onerror = () => failed(new Error("The file did not reach the server. Nothing is lost: try again."));
    request.send(file);
  });
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
    413: "The file is larger than the server takes.",
    415: "The server does not take this kind of file.",
  };
  return words[status] ?? `The server did not take the file (${status}).`;
}
