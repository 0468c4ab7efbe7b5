import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./inspector.css";
import { InspectorPage } from "./page.tsx";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <InspectorPage />
  </StrictMode>,
);
