import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./inspector.css";
import { followTheme } from "../chat/theme.ts";
import { refuseDrops } from "../drops.ts";
import { InspectorPage } from "./page.tsx";

followTheme();
refuseDrops();

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <InspectorPage />
  </StrictMode>,
);
