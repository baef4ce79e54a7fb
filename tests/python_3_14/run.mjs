// Runs Python code in Pyodide: run.mjs FOLDER_OF_PYODIDE CODE NAME=FOLDER..., where each folder is mounted below /NAME.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [home, code, ...folders] = process.argv.slice(2);
const require = createRequire(`${home}/`);
const { loadPyodide } = await import(pathToFileURL(require.resolve("pyodide/pyodide.mjs")));
const python = await loadPyodide();
for (const folder of folders) {
  const [name, path] = folder.split("=");
  python.FS.mkdirTree(`/${name}`);
  python.mountNodeFS(`/${name}`, path);
}
// Timers of the tests, such as time limits that did not pass, would keep the process for minutes.
process.exit(await python.runPythonAsync(code));
