// The dialog of Rerun: asks for the input, and which tools may run again, before a new run starts on a copy of the chat.
import type { InspectedRerun } from "@farhand/protocol";
import { edited, editFields, type FieldDrafts, type Filled, firstDrafts, type Input, InputForm } from "@farhand/react";
import { RotateCcw, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { PLAIN } from "../chat/parts.tsx";
import { askTools } from "../server.ts";
import { beginRerun } from "./ask.ts";
import { bodyOf, inputOf, messageOf, repeatWords, type RerunPlace } from "./rerun.ts";
import { go } from "./route.ts";

export function RerunDialog({ place, onClose }: { place: RerunPlace; onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(messageOf(place));
  const { fields, drafts, setDrafts, filled } = useInput(place);
  const [wrong, setWrong] = useState("");
  const [repeats, setRepeats] = useState<readonly string[]>([]);
  const [isSending, setSending] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const start = async (): Promise<void> => {
    if (filled?.errors.some((error) => error !== "") === true) {
      return;
    }
    const body = bodyOf(place, { text, input: filled?.value as Input | undefined }, repeats.length > 0);
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
        {text !== undefined && (
          <label className="flex flex-col gap-1 text-xs text-muted">
            Message
            <textarea value={text} onChange={({ target }) => (setText(target.value), setWrong(""))} rows={3} className="rounded-lg border border-line bg-ground p-2.5 text-sm text-text" />
          </label>
        )}
        {filled !== undefined && fields.length > 0 && (
          <fieldset className="fh-cards m-0 max-h-[50vh] overflow-y-auto border-0 p-0">
            <legend className="mb-1 p-0 text-xs text-muted">Input</legend>
            <InputForm fields={fields} drafts={drafts} errors={filled.errors} onChange={(next) => (setDrafts(next), setWrong(""))} isOff={isSending} />
          </fieldset>
        )}
        {repeats.length > 0 && (
          <p role="alert" className="m-0 flex gap-2 rounded-lg bg-amber-tint px-3 py-2 text-[13px] text-amber"><TriangleAlert size={15} aria-hidden="true" className="mt-0.5 shrink-0" />{repeatWords(repeats)}</p>
        )}
        {wrong !== "" && <p role="alert" className="m-0 rounded-lg bg-red-tint px-3 py-2 text-[13px] wrap-anywhere text-red">{wrong}</p>}
        <div className="flex flex-wrap gap-2">
          <button type="submit" disabled={isSending} className="inline-flex min-h-8 items-center gap-2 rounded-lg border border-transparent bg-accent px-3 text-[13px] font-medium text-on-accent disabled:opacity-50"><RotateCcw size={14} aria-hidden="true" /> {repeats.length > 0 ? "Run it again anyway" : "Start the rerun"}</button>
          <button type="button" className={PLAIN} onClick={onClose}>Cancel</button>
        </div>
      </form>
    </dialog>
  );
}

interface InputEdit {
  readonly fields: ReturnType<typeof editFields>;
  readonly drafts: FieldDrafts;
  readonly setDrafts: (drafts: FieldDrafts) => void;
  /** Undefined if there is no input to edit. */
  readonly filled: Filled | undefined;
}

/** A field for each value of the call's input, from the schema of its tool. */
function useInput(place: RerunPlace): InputEdit {
  const input = inputOf(place);
  const [schema, setSchema] = useState<unknown>();
  const tool = place.call?.tool;
  useEffect(() => {
    if (tool !== undefined) {
      void askTools().then((found) => setSchema(typeof found === "string" ? undefined : found.find(({ name }) => name === tool)?.inputSchema));
    }
  }, [tool]);
  const fields = useMemo(() => (input === undefined ? [] : editFields(schema, input)), [schema, input]);
  const [changed, setDrafts] = useState<FieldDrafts>({});
  // keeps what was typed when the schema arrives
  const drafts = { ...firstDrafts(fields), ...changed };
  return { fields, drafts, setDrafts, filled: input === undefined ? undefined : edited(fields, drafts, input) };
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
