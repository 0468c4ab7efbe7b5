// The files of the next message, with their upload progress. Loaded with the first file.
import { FileText, X } from "lucide-react";
import type { ReactNode } from "react";
import { BASE } from "../base.ts";
import type { Attachments } from "./attachments.ts";
import type { Attachment } from "./drafts.ts";
import { fill, useWords } from "./words.ts";

export { upload } from "@farhand/react";

export function AttachmentList({ files: { list, remove } }: { files: Attachments }): ReactNode {
  return <ul className="flex flex-wrap gap-2 px-1 pt-1 pb-2">{list.map((each) => <li key={each.key} className="min-w-0 max-w-full"><Chip file={each} onRemove={() => remove(each.key)} /></li>)}</ul>;
}

function Chip({ file, onRemove }: { file: Attachment; onRemove: () => void }): ReactNode {
  const words = useWords();
  const tone = file.state === "failed" ? "border-red/40 bg-red-tint text-red" : "border-line bg-surface";
  return (
    <span className={`flex items-center gap-2 rounded-lg border py-1 pr-1 pl-2.5 text-[13px] ${tone}`}>
      <FileText size={14} className="shrink-0" aria-hidden="true" />
      <span className="min-w-0">
        <span className="block max-w-44 truncate">{file.name}</span>
        {file.state === "failed" && <span role="alert" className="block text-xs">{file.reason}{file.code && <> <a className="font-mono underline underline-offset-2" href={`${BASE}/errors/${file.code}`} target="_blank" rel="noopener">{file.code}</a></>}</span>}
      </span>
      {file.state === "uploading" && <progress max={1} value={file.share} aria-label={fill(words.uploading, { name: file.name })} className="fh-progress w-14!" />}
      <button type="button" aria-label={fill(words.removeFile, { name: file.name })} className="grid size-6 shrink-0 place-items-center rounded-md hover:bg-sunken" onClick={onRemove}><X size={13} aria-hidden="true" /></button>
    </span>
  );
}
