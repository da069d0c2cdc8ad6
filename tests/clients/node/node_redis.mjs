// node-redis: commands it does not know are sent with sendCommand(), whose words are all strings or
// Buffers; a type mapping asks for replies in bytes.

import { RESP_TYPES, WatchError, createClient } from "redis";
import {
  assert,
  authority,
  column,
  commandsInPipeline,
  emptyRow,
  eventually,
  everyByte,
  guardedPort,
  host,
  newDataset,
  oneCell,
  password,
  port,
  row,
  run,
  serverRestart,
  tlsPort,
  writtenRow,
} from "./scenarios.mjs";

const bytes = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };

/** Run `use` with a connected client, which is closed afterwards. */
async function withClient({ socket = {}, ...options }, use) {
  const client = createClient({ socket: { host, port, ...socket }, ...options });
  // An error without a listener ends the process; those that matter fail a command.
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    client.destroy();
  }
}

async function roundTrip(client) {
  const dataset = newDataset();
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.sendCommand(["WCPUT", dataset, "r", "1", "c", "value"]), 1);
  const reply = await client.sendCommand(["WCGET", dataset, "r"], bytes);
  assert.deepEqual(reply, oneCell(1, "value"));
}

async function binary(client) {
  const dataset = newDataset();
  const cells = ["1", everyByte, "", "2", column, everyByte];
  assert.equal(await client.sendCommand(["WCPUT", dataset, row, ...cells]), 2);
  assert.deepEqual(await client.sendCommand(["WCGET", dataset, row], bytes), writtenRow);
  assert.equal(await client.sendCommand(["WCDEL", dataset, row]), 1);
  assert.deepEqual(await client.sendCommand(["WCGET", dataset, row], bytes), emptyRow);
}

async function pipeline(client) {
  const dataset = newDataset();
  const writes = client.multi();
  for (let number = 0; number < commandsInPipeline; number += 1) {
    writes.addCommand(["WCPUT", dataset, `r${number}`, "1", "c", `value ${number}`]);
  }
  const written = await writes.execAsPipeline();
  assert.deepEqual(written, Array(commandsInPipeline).fill(1));

  // Commands of one turn of the event loop are sent together without asking for it, too.
  const reads = [];
  for (let number = 0; number < commandsInPipeline; number += 1) {
    reads.push(client.sendCommand(["WCGET", dataset, `r${number}`], bytes));
  }
  (await Promise.all(reads)).forEach((reply, number) => {
    assert.deepEqual(reply, oneCell(1, `value ${number}`));
  });

  const refused = await Promise.allSettled([
    client.sendCommand(["WCGET", "no-such-dataset", "r"]),
    client.ping(),
  ]);
  assert.match(refused[0].reason.message, /^NODATASET /);
  assert.equal(refused[1].value, "PONG");
}

async function transaction(client) {
  const dataset = newDataset();
  // EXEC takes no type mapping: its replies are text.
  const replies = await client
    .multi()
    .addCommand(["WCPUT", dataset, "r", "1", "c", "first"])
    .addCommand(["WCPUT", dataset, "r", "2", "c", "second"])
    .addCommand(["WCGET", dataset, "r"])
    .exec();
  assert.deepEqual(replies, [1, 1, ["0", [["c", [[2, "second"]]]]]]);

  await client.watch(dataset);
  await withClient({}, (other) =>
    other.sendCommand(["WCPUT", dataset, "r", "3", "c", "third"]),
  );
  const aborted = client.multi().addCommand(["WCPUT", dataset, "r", "4", "c", "fourth"]).exec();
  await assert.rejects(aborted, WatchError);
  const reply = await client.sendCommand(["WCGET", dataset, "r"], bytes);
  assert.deepEqual(reply, oneCell(3, "third"));
}

async function subscribe(subscriber) {
  const channel = newDataset();
  let receive;
  const received = new Promise((resolve) => (receive = resolve));
  await subscriber.subscribe(channel, (message, name) => receive([name, message]), true);
  await withClient({}, async (publisher) => {
    assert.equal(await publisher.publish(channel, everyByte), 1);
  });
  assert.deepEqual(await received, [Buffer.from(channel), everyByte]);
  await subscriber.unsubscribe(channel);
  // In RESP2 the client answers PING as it delivered messages: in bytes.
  assert.equal(String(await subscriber.ping()), "PONG");
}

async function reconnect(client) {
  const dataset = newDataset();
  await client.sendCommand(["WCPUT", dataset, "r", "1", "c", "value"]);
  await serverRestart();
  const reply = await eventually(() => client.sendCommand(["WCGET", dataset, "r"], bytes));
  assert.deepEqual(reply, oneCell(1, "value"));
}

const resp2 = { RESP: 2 };
const resp3 = { RESP: 3 };
const guarded = { socket: { port: guardedPort }, password };
const overTls = { socket: { port: tlsPort, tls: true, ca: authority() } };

await run({
  default: () => withClient({}, roundTrip),
  password: () => withClient(guarded, roundTrip),
  tls: () => withClient(overTls, roundTrip),
  "binary-resp2": () => withClient(resp2, binary),
  "binary-resp3": () => withClient(resp3, binary),
  "pipeline-resp2": () => withClient(resp2, pipeline),
  "pipeline-resp3": () => withClient(resp3, pipeline),
  "transaction-resp2": () => withClient(resp2, transaction),
  "transaction-resp3": () => withClient(resp3, transaction),
  "subscribe-resp2": () => withClient(resp2, subscribe),
  "subscribe-resp3": () => withClient(resp3, subscribe),
  reconnect: () => withClient({}, reconnect),
});
