import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./chat.css";
import { refuseDrops } from "../drops.ts";
import { ChatPage } from "./page.tsx";
import { Site, SiteProvider } from "./site.ts";
import { followTheme } from "./theme.ts";

followTheme();
refuseDrops();

const site = new Site();

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <SiteProvider value={site}><ChatPage /></SiteProvider>
  </StrictMode>,
);
