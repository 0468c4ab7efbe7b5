// All cards on one page, for people who restyle them and for the visual tests. Nothing is sent from here.
import { httpOf } from "@farhand/client";
import { type CardHost, CardHostProvider, Rows, ToolCard } from "@farhand/react";
import { type ReactNode, useState } from "react";
import { finished, shelves } from "./views.ts";

const nothing = (): void => undefined;
const answers: Readonly<Record<string, object>> = { "/api/about": { model: "none", largestFile: 10 * 1_048_576 }, "/api/tools": { tools: [] } };
const fetch = ((path: string): Promise<Response> => Promise.resolve(Response.json(answers[path] ?? {}, { status: path in answers ? 200 : 404 }))) as typeof globalThis.fetch;

const HOST: CardHost = {
  http: httpOf({ fetch }), cards: [], connection: { state: "open" }, threadId: "gallery",
  answer: nothing, approve: nothing, retry: nothing, discard: nothing, retryNow: nothing, say: nothing, openPage: () => "gallery",
};

export function Gallery(): ReactNode {
  const [shown] = useState(shelves);
  const [rows] = useState(finished);
  return (
    <CardHostProvider host={HOST}>
      <main className="gallery">
        <h1>Tool cards</h1>
        <p>Every kind in every state. Nothing on this page is sent.</p>
        {shown.map(({ name, views }) => (
          <section key={name} aria-label={name}>
            <h2 className="section">{name}</h2>
            <div className="fh-cards shelf">{views.map((view) => <ToolCard key={view.call.id} view={view} />)}</div>
          </section>
        ))}
        <section aria-label="Finished">
          <h2 className="section">Finished</h2>
          <Rows views={rows} />
        </section>
      </main>
    </CardHostProvider>
  );
}
