// The server's tools by name: their cards and executors.
import type { Tool } from "@farhand/protocol";
import { useEffect, useState } from "react";
import { askTools } from "../server.ts";
import { useSite } from "./site.ts";

export type Tools = ReadonlyMap<string, Tool>;

export function useTools(): Tools {
  const { feed } = useSite();
  const [tools, setTools] = useState<Tools>(new Map());
  useEffect(() => {
    const load = async (): Promise<void> => {
      const found = await askTools();
      if (typeof found !== "string") {
        setTools(new Map(found.map((tool) => [tool.name, tool])));
      }
    };
    void load();
    // programs come and go, and their tools with them
    return feed.listen(({ type }) => (type === "again" || type.startsWith("client-tool.")) && void load());
  }, [feed]);
  return tools;
}
