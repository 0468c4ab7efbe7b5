// The panel for one call: its history in sentences, its input and output, its frames in each protocol, and the available actions.
import type { InspectedCall, InspectedSentence, InspectedWire } from "@farhand/protocol";
import { Check, CircleAlert, CircleX, Copy as CopyIcon, Hourglass, type LucideIcon, Play, RotateCcw, RotateCw, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { IconButton, Pill, type Tone } from "../chat/parts.tsx";
import { sendAgain, useAsked } from "./ask.ts";
import { Action, Code, Copy, Json, Missing } from "./elements.tsx";
import { iconOfTool } from "./icons.tsx";
import type { Replay } from "./replay.ts";
import { RerunDialog } from "./rerun-dialog.tsx";
import { go, type Route } from "./route.ts";
import { Tabs } from "./tabs.tsx";
import { OUTCOMES, PHASES } from "./words.ts";

export function CallPanel({ callId, back, replay }: { callId: string; back: Route; replay: Replay }): ReactNode {
  const { answer } = useAsked<InspectedCall>(`/calls/${callId}`);
  return (
    <aside aria-label="Call" className="flex flex-col gap-4 p-4 lg:px-[18px]">
      {answer.state === "here" ? <Call call={answer.value} back={back} replay={replay} /> : <><Close back={back} /><Missing answer={answer} icon={Hourglass} /></>}
    </aside>
  );
}

function Close({ back }: { back: Route }): ReactNode {
  return <IconButton label="Close the call" className="-my-1.5 -mr-2 ml-auto" onClick={() => go(back)}><X size={16} aria-hidden="true" /></IconButton>;
}

function Call({ call, back, replay }: { call: InspectedCall; back: Route; replay: Replay }): ReactNode {
  const Icon = iconOfTool(call);
  const { words, tone } = standing(call);
  return (
    <>
      <header>
        <div className="flex items-center gap-2.5">
          <Icon size={15} className="shrink-0 text-muted" aria-hidden="true" />
          <h2 className="m-0 min-w-0 truncate text-base font-semibold">{call.tool}</h2>
          <span className="ml-auto flex items-center gap-3"><Pill tone={tone}>{words}</Pill><Close back={back} /></span>
        </div>
        <p className="m-0 mt-1 flex flex-wrap gap-x-4 font-mono text-xs break-all text-muted">
          <span>{call.callId}</span><span>{call.holder ?? call.clientId ?? whereOf(call.executor)}</span>
        </p>
      </header>
      <Life life={call.life} />
      <Payload call={call} />
      <Actions call={call} replay={replay} />
    </>
  );
}

function standing(call: InspectedCall): { readonly words: string; readonly tone: Tone } {
  const kind = call.outcome === null ? undefined : String(call.outcome["kind"]);
  const known = kind === undefined ? PHASES[call.phase] : kind === "success" && call.executor === "server" ? { words: "Done", tone: "green" as const } : OUTCOMES[kind];
  return known ?? { words: kind ?? call.phase, tone: "grey" };
}

function whereOf(executor: string): string {
  return executor === "server" ? "on the server" : executor === "client" ? "in a client" : "in a browser";
}

const SIGNS: Readonly<Record<string, { readonly icon: LucideIcon; readonly look: string }>> = {
  good: { icon: Check, look: "bg-green-tint text-green" },
  care: { icon: CircleAlert, look: "bg-amber-tint text-amber" },
  bad: { icon: CircleX, look: "bg-red-tint text-red" },
  open: { icon: Hourglass, look: "bg-amber-tint text-amber" },
};

function Life({ life }: { life: readonly InspectedSentence[] }): ReactNode {
  return (
    <ol aria-label="History of the call" className="m-0 list-none p-0">
      {life.map(({ title, detail, tone, at }, number) => {
        const { icon: Icon, look } = SIGNS[tone] ?? SIGNS["good"]!;
        return (
          <li key={`${title}-${number}`} className="relative grid grid-cols-[20px_minmax(0,1fr)_auto] gap-x-3 pb-3 last:pb-0">
            {number < life.length - 1 && <span aria-hidden="true" className="absolute top-4 bottom-0 left-[9px] w-px bg-line" />}
            <span aria-hidden="true" className={`z-10 grid size-[19px] place-items-center rounded-full ${look}`}><Icon size={11} strokeWidth={2.5} /></span>
            <span className="min-w-0">
              <span className="block text-[13px] leading-[19px] wrap-anywhere">{title}</span>
              {detail !== "" && <span className="block text-xs wrap-anywhere text-muted">{detail}</span>}
            </span>
            <span className="text-xs leading-[19px] text-muted tabular-nums">{at === undefined ? "" : at.toFixed(2)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function Payload({ call }: { call: InspectedCall }): ReactNode {
  const told = call.wires.filter(({ frames }) => frames.length > 0);
  const [name, setName] = useState<string>();
  const wire = told.find((each) => each.name === name) ?? told[0];
  const choice = <Choice wires={told} wire={wire} onChoose={setName} />;
  const panels = {
    Input: (
      <>
        <Json value={call.input} />
        {call.askedInput !== null && <><p className="m-0 text-xs text-muted">As the model wrote it, before a person changed it:</p><Json value={call.askedInput} /></>}
      </>
    ),
    Output: call.outcome === null ? <p className="m-0 text-[13px] text-muted">No answer yet.</p> : <Json value={call.outcome} />,
    Wire: <>{choice}{wire !== undefined && <Frames wire={wire} />}</>,
    Headers: <>{choice}{wire !== undefined && <Code>{[wire.request, "", ...wire.headers.map(([head, value]) => `${head}: ${value}`)].join("\n")}</Code>}</>,
  };
  return <Tabs label="Input and output" first={call.outcome === null ? "Input" : "Output"} panels={panels} />;
}

function Choice({ wires, wire, onChoose }: { wires: readonly InspectedWire[]; wire: InspectedWire | undefined; onChoose: (name: string) => void }): ReactNode {
  if (wire === undefined) {
    return <p className="m-0 text-[13px] text-muted">This call was sent over no protocol.</p>;
  }
  return (
    <label className="flex items-center gap-2 text-xs text-muted">
      Protocol
      <select value={wire.name} onChange={({ target }) => onChoose(target.value)} className="rounded-md border border-line bg-surface px-1.5 py-0.5 text-xs text-text">
        {wires.map(({ name }) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}

function Frames({ wire }: { wire: InspectedWire }): ReactNode {
  return (
    <Code>
      {wire.frames.map(({ seq, text }, number) => (
        <span key={`${seq ?? ""}-${number}`} className="mb-2 block border-l-2 border-line pl-2.5 last:mb-0">
          {seq !== null && <span className="block text-[11px] text-muted">event {seq}</span>}
          {text.trimEnd()}
        </span>
      ))}
    </Code>
  );
}

function Actions({ call, replay }: { call: InspectedCall; replay: Replay }): ReactNode {
  const [said, setSaid] = useState("");
  const [isRerun, setRerun] = useState(false);
  const from = call.life[0]?.at;
  const again = async (): Promise<void> => {
    setSaid("Sending it again.");
    setSaid(await sendAgain(call.callId));
  };
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap gap-2">
        {call.runId !== null && <Action icon={RotateCcw} onClick={() => setRerun(true)} title="Starts a new run on a copy of this chat, from this call">Rerun from here</Action>}
        {call.runId !== null && from !== undefined && <Action icon={Play} onClick={() => replay.start(from)} title="Replays the run from this call on; nothing is executed">Replay from here</Action>}
        <Action icon={RotateCw} onClick={() => void again()} disabled={!call.again} title={call.again ? "Sends the same answer once more; the server recognizes it as a repeat" : "There is no answer to send again"}>Send again</Action>
        <Copy icon={CopyIcon} words="Copy as curl" text={() => call.curl} />
      </div>
      <p role="status" className="m-0 min-h-5 text-xs text-muted">{said}</p>
      {isRerun && call.runId !== null && <RerunDialog place={{ runId: call.runId, step: call.step, call: { id: call.callId, tool: call.tool, input: call.input } }} onClose={() => setRerun(false)} />}
    </div>
  );
}
