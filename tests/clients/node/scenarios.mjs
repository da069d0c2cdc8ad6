// What the programs of this directory share: where the servers are, words that are hard on a client,
// and the loop that runs scenarios and says in one line each how they went.
// tests/clients/programs.py tells what a program is given and what it has to print.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";

export const host = "127.0.0.1";
export const port = Number(process.env.PORT);
export const guardedPort = Number(process.env.GUARDED_PORT);
export const tlsPort = Number(process.env.TLS_PORT);
export const password = process.env.PASSWORD;
export const authority = () => readFileSync(process.env.CA_FILE);

export const commandsInPipeline = 10_000;
export const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
export const row = Buffer.concat([Buffer.from("row\r\n\0"), everyByte]);
export const column = Buffer.from("\0\r\n$5\r\nhello\r\n");

/** A row with an empty value in column `everyByte` and every byte in `column`, read by WCGET. */
export const writtenRow = [
  Buffer.from("0"),
  [
    [everyByte, [[1, Buffer.alloc(0)]]],
    [column, [[2, everyByte]]],
  ],
];
export const emptyRow = [Buffer.from("0"), []];

/** A row with one column `c` and one cell, as WCGET replies. */
export const oneCell = (timestamp, value) => [
  Buffer.from("0"),
  [[Buffer.from("c"), [[timestamp, Buffer.from(value)]]]],
];

let datasets = 0;
/** A dataset of this program's own, without cells. */
export const newDataset = () => `${process.env.DATASET}-${(datasets += 1)}`;

/** Ask whoever runs this program to restart the server; returns when it is up again. */
export async function serverRestart() {
  console.log("restart");
  const input = createInterface({ input: process.stdin });
  try {
    await new Promise((resolve, reject) => {
      input.once("line", resolve);
      input.once("close", () => reject(new Error("nobody restarted the server")));
    });
  } finally {
    input.close();
  }
}

/** What `attempt` returns, as soon as it does; its last error after ten seconds. */
export async function eventually(attempt) {
  const end = Date.now() + 10_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** Run named scenarios in turn; one that fails does not keep the others from running. */
export async function run(scenarios) {
  let failed = 0;
  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      await scenario();
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      const message = String(error.stack ?? error).replaceAll("\n", " | ");
      console.log(`failed ${name}: ${message.slice(0, 500)}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

export { assert };
