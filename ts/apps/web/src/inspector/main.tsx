import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./inspector.css";
import { followTheme } from "../chat/theme.ts";
import { InspectorPage } from "./page.tsx";

followTheme();

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <InspectorPage />
  </StrictMode>,
);
