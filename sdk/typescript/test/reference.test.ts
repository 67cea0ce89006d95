import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

/** The modules of the package, and the declarations that they are built from. */
const MODULES = {
  semel: "index",
  "semel/ai": "adapters/ai",
  "semel/langchain": "adapters/langchain",
  "semel/mastra": "adapters/mastra",
  "semel/mcp": "adapters/mcp",
  "semel/openai-agents": "adapters/openai-agents",
};

const beside = new URL("reference-typescript.md", import.meta.url); // where the tests were copied, beside the installed package
const page = existsSync(beside) ? beside : new URL("../../../../docs/reference-typescript.md", import.meta.url);

/** Each declaration of a file with its comment, by name. */
function declarations(file: string): Map<string, string> {
  const found = new Map<string, string>();
  let comment: string[] = [];
  const lines = readFileSync(new URL(`../src/${file}.d.ts`, import.meta.url), "utf8").split("\n");
  for (let at = 0; at < lines.length; at++) {
    const first = lines[at]!;
    const name = /^export (?:declare )?(?:class|const|function|interface|type) (\w+)/.exec(first)?.[1];
    if (name) {
      let end = at;
      while (!/^\S.*[;}]$|^\}$/.test(lines[end]!)) end++;
      const whole = [...comment, ...lines.slice(at, end + 1)].join("\n");
      found.set(name, whole.replace(/^export (declare )?/m, ""));
      at = end;
    }
    comment = /^(\/\*\*| \*)/.test(first) ? [...comment, first] : [];
  }
  return found;
}

/** The public declarations of a module, in the order in which it names them. */
function exported(file: string): string[] {
  const passedOn = readFileSync(new URL(`../src/${file}.d.ts`, import.meta.url), "utf8").matchAll(/^export \{([^}]+)\} from "\.\/(.*)\.js";$/gm);
  const others = [...passedOn].flatMap(([, names, from]) => {
    const known = declarations(from!);
    return [...names!.matchAll(/(?:type )?(\w+)/g)].map(([, name]) => {
      assert(known.has(name!), `${name} is declared in ${from}`);
      return known.get(name!)!;
    });
  });
  return [...others, ...declarations(file).values()];
}

const section = (module: string, file: string) => `## ${module}\n\n\`\`\`ts\n${exported(file).join("\n\n")}\n\`\`\`\n`;

test("the API page has what the built modules declare, and nothing else", async () => {
  const written = Object.entries(MODULES).map(([module, file]) => section(module, file));
  const [head] = readFileSync(page, "utf8").split("\n## ");
  if (process.env.WRITE_REFERENCE) writeFileSync(page, [`${head!.trimEnd()}\n`, ...written].join("\n"));
  const [, ...sections] = readFileSync(page, "utf8").split(/^(?=## )/m);
  assert.deepEqual(sections.map((text) => `${text.trimEnd()}\n`), written);
  // The names that a program really finds are among them.
  const manifest = createRequire(import.meta.url)("semel/package.json") as { exports: object };
  const modules = Object.keys(manifest.exports).filter((name) => !name.endsWith(".json"));
  assert.deepEqual(modules.map((name) => name.replace(/^\./, "semel")).sort(), Object.keys(MODULES).sort());
  for (const module of Object.keys(MODULES)) {
    const names = Object.keys((await import(module)) as object);
    const text = sections.find((one) => one.startsWith(`## ${module}\n`))!;
    for (const name of names) assert.match(text, new RegExp(`^(class|const|function) ${name}\\b`, "m"));
  }
});
