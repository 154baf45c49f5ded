// What every page of the console improves with a script. Each page works without it.

import { showLocalTimes } from "./local_times.js";
import { sendFormsOnce } from "./sending_once.js";
import { addCopyButtons } from "./copying.js";
import { closeMenus, openDialogs } from "./dialogs.js";
import { offerPalette } from "./palette.js";
import { showWaiting } from "./waiting.js";

showLocalTimes(document);
sendFormsOnce(document);
addCopyButtons(document);
openDialogs(document);
closeMenus(document);
offerPalette(document);
showWaiting();
// What went wrong, or what a test found.
(document.getElementById("trouble") ?? document.getElementById("tested"))?.focus();
