// Rerun from here: asks for the input, and what may run again, before a new run begins on a copy of the chat.
import type { InspectedRerun } from "@farhand/protocol";
import { RotateCcw, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { PLAIN } from "../chat/parts.tsx";
import { beginRerun } from "./ask.ts";
import { bodyOf, repeatWords, type RerunPlace, shownOf } from "./rerun.ts";
import { go } from "./route.ts";

export function RerunDialog({ place, onClose }: { place: RerunPlace; onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = shownOf(place);
  const [typed, setTyped] = useState(shown);
  const [wrong, setWrong] = useState("");
  const [repeats, setRepeats] = useState<readonly string[]>([]);
  const [isSending, setSending] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const start = async (): Promise<void> => {
    const body = bodyOf(place, typed, repeats.length > 0);
    if (typeof body === "string") {
      setWrong(body);
      return;
    }
    setSending(true);
    const begun = await beginRerun(place.runId, body);
    setSending(false);
    settle(begun, setWrong, setRepeats, onClose);
  };
  return (
    <dialog ref={dialog} aria-label={headOf(place)} onClose={onClose} className="m-auto w-[min(520px,calc(100vw-32px))] rounded-card border border-line bg-surface p-5 text-text shadow-soft backdrop:bg-black/40">
      <form method="dialog" className="flex flex-col gap-3" onSubmit={(event) => (event.preventDefault(), void start())}>
        <h2 className="m-0 text-base font-semibold">{headOf(place)}</h2>
        <p className="m-0 text-[13px] text-muted">Starts a new run on a copy of this chat, with everything that came before. The original stays as it is.</p>
        {typed !== undefined && (
          <label className="flex flex-col gap-1 text-xs text-muted">
            {place.call === undefined ? "Message" : "Input"}
            <textarea value={typed} onChange={({ target }) => (setTyped(target.value), setWrong(""))} rows={place.call === undefined ? 3 : 7} spellCheck={place.call === undefined} className={`rounded-lg border border-line bg-ground p-2.5 text-text ${place.call === undefined ? "text-sm" : "font-mono text-xs"}`} />
          </label>
        )}
        {repeats.length > 0 && (
          <p role="alert" className="m-0 flex gap-2 rounded-lg bg-amber-tint px-3 py-2 text-[13px] text-amber"><TriangleAlert size={15} aria-hidden="true" className="mt-0.5 shrink-0" />{repeatWords(repeats)}</p>
        )}
        {wrong !== "" && <p role="alert" className="m-0 rounded-lg bg-red-tint px-3 py-2 text-[13px] wrap-anywhere text-red">{wrong}</p>}
        <div className="flex flex-wrap gap-2">
          <button type="submit" disabled={isSending} className="inline-flex min-h-8 items-center gap-2 rounded-lg bg-accent px-3 text-[13px] font-medium text-on-accent disabled:opacity-50"><RotateCcw size={14} aria-hidden="true" /> {repeats.length > 0 ? "Run it again anyway" : "Start the rerun"}</button>
          <button type="button" className={PLAIN} onClick={onClose}>Cancel</button>
        </div>
      </form>
    </dialog>
  );
}

function settle(begun: InspectedRerun | string, setWrong: (words: string) => void, setRepeats: (tools: readonly string[]) => void, onClose: () => void): void {
  if (typeof begun === "string") {
    setWrong(begun);
  } else if (begun.runId === undefined) {
    setRepeats(begun.repeats ?? []);
  } else {
    onClose();
    go({ tab: "runs", runId: begun.runId });
  }
}

function headOf({ step, call }: RerunPlace): string {
  return call === undefined ? `Rerun from step ${step}` : `Rerun from ${call.tool}`;
}
