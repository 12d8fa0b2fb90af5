// Runs of the official client of AG-UI; prints what it holds.
import { HttpAgent } from "@ag-ui/client";

const [url, token] = process.argv.slice(2);
const open = () =>
  new HttpAgent({ url: `${url}/ag-ui`, threadId: "talk", headers: { Authorization: `Bearer ${token}` } });
const read = (agent) => agent.messages.map((one) => [one.role, one.content]);
const found = {};

const agent = open();
agent.addMessage({ id: "first", role: "user", content: "hello" });
const told = await agent.runAgent({ runId: "one" });
found.news = told.newMessages.map((one) => one.content);
agent.addMessage({ id: "second", role: "user", content: "again" });
await agent.runAgent({ runId: "two" });
found.talk = read(agent);

// The same run again: nothing is said twice, and the copy stays as it is.
await agent.runAgent({ runId: "two" });
found.repeated = read(agent);

// A page that was loaded anew holds nothing, and is told everything with its next run.
const other = open();
other.addMessage({ id: "third", role: "user", content: "elsewhere" });
await other.runAgent({ runId: "three" });
found.loaded = read(other);

// A copy that lags behind is put right.
agent.addMessage({ id: "fourth", role: "user", content: "slowly" });
const running = agent.runAgent({ runId: "four" }).catch(() => {});
setTimeout(() => agent.abortRun(), 300);
await running;
await agent.runAgent({ runId: "four" });
found.resumed = read(agent);

console.log(JSON.stringify(found));
process.exit(0);
