// Every method of responses and conversations of the official client; prints what came back.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.argv[3], maxRetries: 0 });
const found = {};

const first = await client.responses.create({ input: "hello", metadata: { who: "me" } });
found.first = [first.status, first.output_text, first.metadata.who];

const stream = await client.responses.create({
  input: "again",
  previous_response_id: first.id,
  stream: true,
});
const events = [];
for await (const event of stream) events.push(event);
const second = events.at(-1).response;
found.streamed = [
  events[0].type,
  events.at(-1).type,
  events.filter((one) => one.type.endsWith("text.delta")).map((one) => one.delta).join(""),
];

const after = events[Math.floor(events.length / 2)].sequence_number;
const rest = await client.responses.retrieve(second.id, { stream: true, starting_after: after });
const taken = [];
for await (const event of rest) taken.push(event.sequence_number);
const expected = events.map((one) => one.sequence_number).filter((one) => one > after);
found.takenUp = JSON.stringify(taken) === JSON.stringify(expected);

const job = await client.responses.create({ input: "later", background: true });
let polled = job;
while (polled.status === "queued" || polled.status === "in_progress") {
  polled = await client.responses.retrieve(job.id);
}
found.background = [["queued", "in_progress"].includes(job.status), polled.status];
const slow = await client.responses.create({ input: "slowly", background: true });
found.cancelled = (await client.responses.cancel(slow.id)).status;

const said = await client.responses.inputItems.list(second.id);
found.inputItems = said.data.map((one) => one.content[0].text);
await client.responses.delete(second.id);
try {
  await client.responses.retrieve(second.id);
} catch (error) {
  found.deleted = [error instanceof OpenAI.NotFoundError, error.status];
}

const talk = await client.conversations.create({ metadata: { topic: "planets" } });
await client.responses.create({ input: "in a conversation", conversation: talk.id });
const items = [];
for await (const item of client.conversations.items.list(talk.id, { order: "asc" })) {
  items.push([item.role, item.content[0].text]);
}
found.items = items;
const one = (await client.conversations.items.list(talk.id)).data[0];
found.item = (await client.conversations.items.retrieve(one.id, { conversation_id: talk.id })).id === one.id;
const renamed = await client.conversations.update(talk.id, { metadata: { topic: "moons" } });
found.renamed = renamed.metadata.topic;
found.kept = (await client.conversations.retrieve(talk.id)).metadata.topic;
found.removed = (await client.conversations.delete(talk.id)).deleted;

const key = { headers: { "Idempotency-Key": "once" } };
const twice = [
  await client.responses.create({ input: "only once" }, key),
  await client.responses.create({ input: "only once" }, key),
];
found.once = twice[0].id === twice[1].id;
console.log(JSON.stringify(found));
