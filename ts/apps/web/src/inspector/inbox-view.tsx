// Everything that waits for somebody, oldest first: say yes or no, or bring an answer in the place of whoever should have.
import type { InspectedWaiting } from "@farhand/protocol";
import { Check, Inbox, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Pill, PLAIN } from "../chat/parts.tsx";
import { bring, useAsked } from "./ask.ts";
import { Action, Card, Json, Missing, Nothing } from "./bits.tsx";
import { hrefOf } from "./route.ts";
import { agoOf, PHASES } from "./words.ts";

export function InboxView(): ReactNode {
  const { answer, again } = useAsked<{ readonly calls: readonly InspectedWaiting[] }>("/inbox");
  if (answer.state !== "here") {
    return <Missing answer={answer} icon={Inbox} />;
  }
  const { calls } = answer.value;
  if (calls.length === 0) {
    return <Nothing icon={Inbox}>Nobody is waited for.</Nothing>;
  }
  return <ul className="m-0 flex list-none flex-col gap-4 p-0">{calls.map((call) => <li key={call.callId}><Question call={call} onAnswered={again} /></li>)}</ul>;
}

function Question({ call, onAnswered }: { call: InspectedWaiting; onAnswered: () => void }): ReactNode {
  const [said, setSaid] = useState("");
  const [isSending, setSending] = useState(false);
  const send = async (path: "/api/tools/ack" | "/api/tools/approve", body: object): Promise<void> => {
    setSending(true);
    const why = await bring(path, body);
    setSending(false);
    setSaid(why);
    onAnswered();
  };
  const { words, tone } = PHASES[call.phase] ?? { words: call.phase, tone: "grey" };
  const href = hrefOf(call.runId === null ? { tab: "runs", callId: call.callId } : { tab: "runs", runId: call.runId, callId: call.callId });
  return (
    <Card label={call.tool}>
      <div className="flex flex-col gap-3 p-4">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <a href={href} className="font-semibold underline-offset-2 hover:underline">{call.tool}</a>
          <Pill tone={tone}>{words}</Pill>
          <span className="min-w-0 truncate text-[13px] text-muted">{call.title || "A call of its own"}</span>
          <span className="ml-auto text-xs text-muted">since {agoOf(call.openedAt, Date.now())}{call.deadline === null ? "" : `, until ${new Date(call.deadline).toLocaleString()}`}</span>
        </div>
        <Json value={call.input} />
        {call.approvalId === null ? (
          <Answer disabled={isSending} onAnswer={(output) => void send("/api/tools/ack", { toolCallId: call.callId, status: "success", output })} onSkip={() => void send("/api/tools/ack", { toolCallId: call.callId, status: "failed", errorText: "skipped by the user" })} />
        ) : (
          <div className="flex gap-2">
            <Action icon={Check} disabled={isSending} onClick={() => void send("/api/tools/approve", { approvalId: call.approvalId, approved: true })}>Allow once</Action>
            <Action icon={X} disabled={isSending} onClick={() => void send("/api/tools/approve", { approvalId: call.approvalId, approved: false })}>Deny</Action>
          </div>
        )}
        <p role="status" className="m-0 text-[13px] text-red empty:hidden">{said}</p>
      </div>
    </Card>
  );
}

function Answer({ disabled, onAnswer, onSkip }: { disabled: boolean; onAnswer: (output: unknown) => void; onSkip: () => void }): ReactNode {
  const [text, setText] = useState("");
  const read = readOf(text);
  return (
    <form className="flex flex-wrap gap-2" onSubmit={(event) => { event.preventDefault(); if (read.ok) { onAnswer(read.value); } }}>
      <input aria-label="Answer with JSON" placeholder='Answer with JSON, for example {"ok": true}' value={text} onChange={({ target }) => setText(target.value)} aria-invalid={text !== "" && !read.ok} className="min-w-48 flex-1 rounded-lg border border-line bg-surface px-3 py-1 font-mono text-xs aria-invalid:border-red" />
      <button type="submit" className={PLAIN} disabled={disabled || !read.ok}>Send answer</button>
      <button type="button" className={PLAIN} disabled={disabled} onClick={onSkip}>Skip</button>
    </form>
  );
}

function readOf(text: string): { readonly ok: true; readonly value: unknown } | { readonly ok: false } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    return { ok: false };
  }
}
