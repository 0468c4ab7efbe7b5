// A person's yes or no before a call may run, with a way to change its input first.
import { Pencil } from "lucide-react";
import type { FormEvent, ReactNode } from "react";
import { useCardHost, useDraft } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { sentenceOf } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { Button, Frame } from "./frame.tsx";

type Input = Readonly<Record<string, unknown>>;
type Drafts = Readonly<Record<string, string>>;

export function ApprovalCard({ view }: { view: CardView }): ReactNode {
  const { call, executor } = view;
  const { approve } = useCardHost();
  const { isOff } = useAnswer(view);
  const [drafts, setDrafts] = useDraft<Drafts | undefined>(view, "input", undefined);
  const [reason, setReason] = useDraft<string | undefined>(view, "reason", undefined);
  if (call.phase !== "asking") {
    return null;
  }
  const edited = drafts === undefined ? undefined : inputOf(call.input, drafts);
  const decide = (approved: boolean, scope: "once" | "thread" = "once"): void =>
    approve(call.id, call.approvalId, {
      approved,
      scope,
      ...(approved && edited?.ok === true ? { input: edited.input } : {}),
      ...(!approved && reason ? { reason } : {}),
    });
  const deny = (event: FormEvent): void => {
    event.preventDefault();
    decide(false);
  };
  const isWrong = edited?.ok === false;
  const deciding = (
    <>
      <Button look="main" disabled={isOff || isWrong} aria-keyshortcuts="a" onClick={() => decide(true)}>Allow once</Button>
      {drafts === undefined ? (
        <Button disabled={isOff} onClick={() => setDrafts(draftsOf(call.input))}><Pencil size={14} aria-hidden="true" /> Edit</Button>
      ) : (
        <Button disabled={isOff} onClick={() => setDrafts(undefined)}>Undo changes</Button>
      )}
      <Button disabled={isOff} aria-keyshortcuts="d" onClick={() => setReason("")}>Deny</Button>
      <Button look="quiet" className="fh-button fh-quiet fh-last" disabled={isOff || drafts !== undefined} onClick={() => decide(true, "thread")}>Always in this chat</Button>
    </>
  );
  const denying = (
    <>
      <Button look="main" disabled={isOff} onClick={() => decide(false)}>Deny</Button>
      <Button look="quiet" disabled={isOff} onClick={() => setReason(undefined)}>Back</Button>
    </>
  );
  const where = PLACES[executor] ?? PLACES["server"] ?? "";
  return (
    <Frame view={view} title={`${sentenceOf(call.tool)}?`} context={where} aside={<code className="fh-mono">{call.tool}</code>} actions={reason === undefined ? deciding : denying}>
      {drafts === undefined ? <InputTable input={call.input} /> : <InputForm input={call.input} drafts={drafts} onChange={setDrafts} isOff={isOff} />}
      {reason !== undefined && (
        // one field and no button of its own: Enter sends it
        <form onSubmit={deny}>
          <input className="fh-input" aria-label="Why not? (may be empty)" placeholder="Why not? (may be empty)" autoFocus value={reason} disabled={isOff} onChange={(event) => setReason(event.target.value)} />
        </form>
      )}
    </Frame>
  );
}

const PLACES: Readonly<Record<string, string>> = {
  frontend: "Runs in this browser once you allow it",
  client: "Runs in another program once you allow it",
  server: "Runs on the server once you allow it",
};

export function InputTable({ input }: { input: Input }): ReactNode {
  const fields = Object.entries(input);
  if (fields.length === 0) {
    return null;
  }
  return (
    <table className="fh-table">
      <tbody>
        {fields.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{spelled(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface FormProps {
  readonly input: Input;
  readonly drafts: Drafts;
  readonly onChange: (drafts: Drafts) => void;
  readonly isOff: boolean;
}

function InputForm({ input, drafts, onChange, isOff }: FormProps): ReactNode {
  return (
    <div className="fh-form">
      {Object.entries(drafts).map(([name, draft]) => {
        const isWrong = valueOf(input[name], draft) === undefined;
        return (
          <label key={name} className="fh-field">
            <span>{name}</span>
            <textarea className="fh-input" rows={draft.includes("\n") ? 4 : 1} value={draft} disabled={isOff} aria-invalid={isWrong} onChange={(event) => onChange({ ...drafts, [name]: event.target.value })} />
            {isWrong && <span className="fh-bad" role="alert">This is not JSON.</span>}
          </label>
        );
      })}
    </div>
  );
}

function draftsOf(input: Input): Drafts {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, spelled(value)]));
}

/** Texts are edited as they are, everything else as JSON. */
function spelled(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 1);
}

function valueOf(before: unknown, draft: string): { readonly value: unknown } | undefined {
  if (typeof before === "string") {
    return { value: draft };
  }
  try {
    return { value: JSON.parse(draft) as unknown };
  } catch {
    return undefined;
  }
}

function inputOf(input: Input, drafts: Drafts): { ok: true; input: Input } | { ok: false } {
  const values = Object.entries(drafts).map(([name, draft]) => [name, valueOf(input[name], draft)] as const);
  const isWhole = values.every(([, value]) => value !== undefined);
  return isWhole ? { ok: true, input: Object.fromEntries(values.map(([name, value]) => [name, value?.value])) } : { ok: false };
}
