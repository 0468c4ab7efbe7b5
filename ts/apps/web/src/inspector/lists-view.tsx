// The plain lists: clients with their connection, tools with their schemas, and the latest events.
import type { InspectedClient, InspectedEvents, InspectedTool } from "@farhand/protocol";
import { CodeXml, List, Plug } from "lucide-react";
import type { ReactNode } from "react";
import { Pill } from "../chat/parts.tsx";
import { useAsked } from "./ask.ts";
import { Card, Json, Missing, Nothing } from "./elements.tsx";
import { EventLines } from "./events-list.tsx";
import { iconOfTool } from "./icons.tsx";
import { agoOf, count, durationOf, longOf } from "./words.ts";

export function ClientsView(): ReactNode {
  const { answer } = useAsked<{ readonly clients: readonly InspectedClient[] }>("/clients", 2_000);
  if (answer.state !== "here") {
    return <Missing answer={answer} icon={Plug} />;
  }
  if (answer.value.clients.length === 0) {
    return <Nothing icon={Plug}>No program has registered tools. A <code className="font-mono text-xs">farhand.client.Client</code> does so in a few lines.</Nothing>;
  }
  return (
    <ul className="m-0 flex list-none flex-col gap-4 p-0">
      {answer.value.clients.map((client) => <li key={client.clientId}><ClientCard client={client} /></li>)}
    </ul>
  );
}

function ClientCard({ client }: { client: InspectedClient }): ReactNode {
  return (
    <Card label={client.clientId}>
      <div className="flex flex-col gap-2 p-4">
        <div className="flex flex-wrap items-center gap-3">
          <Plug size={15} className="text-muted" aria-hidden="true" />
          <h2 className="m-0 text-sm font-semibold">{client.clientId}</h2>
          {client.here ? <Pill tone="green" dot>Here</Pill> : <Pill tone="amber" dot>{client.away === null ? "Away" : `Away for ${durationOf(client.away)}`}</Pill>}
          <span className="ml-auto text-xs text-muted">registered {agoOf(client.registeredAt, Date.now())}, {count(client.openCalls, "open call")}, {client.grace} s of grace</span>
        </div>
        <p className="m-0 flex flex-wrap gap-2 font-mono text-xs">{client.tools.map((tool) => <span key={tool} className="rounded-md bg-sunken px-2 py-0.5">{tool}</span>)}</p>
      </div>
    </Card>
  );
}

const WHERE: Readonly<Record<string, string>> = { server: "on the server", frontend: "in the browser", client: "in a client" };

export function ToolsView(): ReactNode {
  const { answer } = useAsked<{ readonly tools: readonly InspectedTool[] }>("/tools");
  if (answer.state !== "here") {
    return <Missing answer={answer} icon={CodeXml} />;
  }
  return answer.value.tools.length === 0
    ? <Nothing icon={CodeXml}>The agent has no tools.</Nothing>
    : <ul className="m-0 flex list-none flex-col gap-2.5 p-0">{answer.value.tools.map((tool) => <li key={tool.name}><ToolCard tool={tool} /></li>)}</ul>;
}

function ToolCard({ tool }: { tool: InspectedTool }): ReactNode {
  const Icon = iconOfTool(tool);
  return (
    <Card label={tool.name}>
      <details className="group">
        <summary className="flex cursor-pointer flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 hover:bg-sunken">
          <Icon size={15} className="shrink-0 text-muted" aria-hidden="true" />
          <span className="font-medium">{tool.name}</span>
          <Pill tone="grey">{tool.clientId ?? WHERE[tool.executor] ?? tool.executor}</Pill>
          {tool.asks && <Pill tone="amber">needs approval</Pill>}
          {tool.timeout !== null && <Pill tone="grey">{longOf(tool.timeout)} to answer</Pill>}
          <span className="w-full min-w-0 truncate text-[13px] text-muted max-[620px]:whitespace-normal">{tool.description.split("\n")[0]}</span>
        </summary>
        <div className="flex flex-col gap-2 border-t border-line p-4">
          <p className="m-0 text-[13px] whitespace-pre-wrap">{tool.description}</p>
          <p className="m-0 text-xs text-muted">Input</p>
          <Json value={tool.inputSchema} />
          {tool.outputSchema !== null && <><p className="m-0 text-xs text-muted">Output</p><Json value={tool.outputSchema} /></>}
          <p className="m-0 font-mono text-xs text-muted">version {tool.version}</p>
        </div>
      </details>
    </Card>
  );
}

export function EventsView(): ReactNode {
  const { answer } = useAsked<InspectedEvents>("/events?limit=500");
  if (answer.state !== "here") {
    return <Missing answer={answer} icon={List} />;
  }
  return answer.value.events.length === 0
    ? <Nothing icon={List}>Nothing has happened yet.</Nothing>
    : (
      <Card label="Everything that happened" className="[&_ol]:max-h-[calc(100dvh-150px)]">
        <p className="m-0 border-b border-line px-4 py-2.5 text-xs text-muted">{answer.value.events.length} of {answer.value.total}, all runs and clients of yours, the newest last</p>
        <EventLines events={answer.value.events} isFollowing />
      </Card>
    );
}
