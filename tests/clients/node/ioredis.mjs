// ioredis: commands it does not know are sent with call(), or callBuffer() for replies in bytes.

import { Redis } from "ioredis";
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

/** Run `use` with a connected client, which is closed afterwards. */
async function withClient(options, use) {
  const client = new Redis({ host, port, ...options });
  // Without a listener ioredis prints connection errors; those that matter fail a command.
  client.on("error", () => {});
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

async function roundTrip(client) {
  const dataset = newDataset();
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.call("WCPUT", dataset, "r", "1", "c", "value"), 1);
  assert.deepEqual(await client.callBuffer("WCGET", dataset, "r"), oneCell(1, "value"));
}

async function binary(client) {
  const dataset = newDataset();
  const cells = [1, everyByte, "", 2, column, everyByte];
  assert.equal(await client.call("WCPUT", dataset, row, ...cells), 2);
  assert.deepEqual(await client.callBuffer("WCGET", dataset, row), writtenRow);
  assert.equal(await client.call("WCDEL", dataset, row), 1);
  assert.deepEqual(await client.callBuffer("WCGET", dataset, row), emptyRow);
}

async function pipeline(client) {
  const dataset = newDataset();
  const writes = client.pipeline();
  for (let number = 0; number < commandsInPipeline; number += 1) {
    writes.call("WCPUT", dataset, `r${number}`, "1", "c", `value ${number}`);
  }
  const written = await writes.exec();
  assert.deepEqual(written, Array(commandsInPipeline).fill([null, 1]));

  const reads = client.pipeline();
  for (let number = 0; number < commandsInPipeline; number += 1) {
    reads.callBuffer("WCGET", dataset, `r${number}`);
  }
  const read = await reads.exec();
  assert.equal(read.length, commandsInPipeline);
  read.forEach(([error, reply], number) => {
    assert.equal(error, null);
    assert.deepEqual(reply, oneCell(1, `value ${number}`));
  });

  const refused = await client
    .pipeline()
    .call("WCGET", "no-such-dataset", "r")
    .call("PING")
    .exec();
  assert.match(refused[0][0].message, /^NODATASET /);
  assert.deepEqual(refused[1], [null, "PONG"]);
}

async function transaction(client) {
  const dataset = newDataset();
  const replies = await client
    .multi()
    .call("WCPUT", dataset, "r", "1", "c", "first")
    .call("WCPUT", dataset, "r", "2", "c", "second")
    .callBuffer("WCGET", dataset, "r")
    .exec();
  assert.deepEqual(replies, [
    [null, 1],
    [null, 1],
    [null, oneCell(2, "second")],
  ]);

  await client.watch(dataset);
  await withClient({}, (other) => other.call("WCPUT", dataset, "r", "3", "c", "third"));
  const aborted = await client.multi().call("WCPUT", dataset, "r", "4", "c", "fourth").exec();
  assert.equal(aborted, null);
  assert.deepEqual(await client.callBuffer("WCGET", dataset, "r"), oneCell(3, "third"));
}

async function subscribe(subscriber) {
  const channel = newDataset();
  const received = new Promise((resolve) => {
    subscriber.on("messageBuffer", (name, message) => resolve([name, message]));
  });
  assert.equal(await subscriber.subscribe(channel), 1);
  await withClient({}, async (publisher) => {
    assert.equal(await publisher.publish(channel, everyByte), 1);
  });
  assert.deepEqual(await received, [Buffer.from(channel), everyByte]);
  await subscriber.unsubscribe(channel);
  assert.equal(await subscriber.ping(), "PONG");
}

async function reconnect(client) {
  const dataset = newDataset();
  await client.call("WCPUT", dataset, "r", "1", "c", "value");
  await serverRestart();
  const reply = await eventually(() => client.callBuffer("WCGET", dataset, "r"));
  assert.deepEqual(reply, oneCell(1, "value"));
}

const resp2 = { protocol: 2 };
const resp3 = { protocol: 3, replyMapping: "resp3" };
const tls = { ca: authority() };

await run({
  default: () =>
    withClient({}, async (client) => {
      await roundTrip(client);
      assert.equal(await client.quit(), "OK");
    }),
  password: () => withClient({ port: guardedPort, password }, roundTrip),
  tls: () => withClient({ port: tlsPort, tls }, roundTrip),
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
