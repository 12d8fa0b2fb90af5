/** The pages for operators, by the last part of their address: `#/operate/jobs`. */

/**
 * @typedef {object} OperatePageEntry
 * @property {string} name
 * @property {string} title
 * @property {keyof import("../rpc_types.d.ts").Methods} needs the method without which a gateway has no such page
 * @property {() => Promise<{ Page: any }>} load
 */

/** @type {Array<{ title: string, pages: OperatePageEntry[] }>} */
export const OPERATE_GROUPS = [
  {
    title: "Work",
    pages: [
      { name: "activity", title: "Activity", needs: "turn.list", load: () => import("./activity.js") },
      { name: "jobs", title: "Jobs", needs: "job.list", load: () => import("./jobs.js") },
      { name: "goals", title: "Goals", needs: "goal.list", load: () => import("./goals.js") },
      { name: "agents", title: "Delegated work", needs: "agent.list", load: () => import("./agents.js") },
      { name: "processes", title: "Processes", needs: "process.list", load: () => import("./processes.js") },
      { name: "usage", title: "Tokens and cost", needs: "usage.summary", load: () => import("./usage.js") },
    ],
  },
  {
    title: "Chat platforms",
    pages: [
      { name: "channels", title: "Channels", needs: "channel.list", load: () => import("./channels.js") },
      { name: "people", title: "People", needs: "person.list", load: () => import("./people.js") },
      { name: "deliveries", title: "Deliveries", needs: "delivery.list", load: () => import("./deliveries.js") },
    ],
  },
  {
    title: "Agent",
    pages: [
      { name: "memory", title: "Memory", needs: "memory.list", load: () => import("./memory.js") },
      { name: "skills", title: "Skills", needs: "skill.list", load: () => import("./skills.js") },
      { name: "mcp", title: "MCP servers", needs: "mcp.list", load: () => import("./mcp.js") },
      { name: "tools", title: "Tools", needs: "tool.list", load: () => import("./tools.js") },
    ],
  },
  {
    title: "Access",
    pages: [
      { name: "grants", title: "Allowed calls", needs: "grant.list", load: () => import("./grants.js") },
      { name: "logins", title: "Browsers", needs: "login.list", load: () => import("./logins.js") },
    ],
  },
  {
    title: "Gateway",
    pages: [
      { name: "settings", title: "Settings", needs: "setting.list", load: () => import("./settings.js") },
      { name: "checks", title: "Checks", needs: "check.run", load: () => import("./checks.js") },
      { name: "backups", title: "Backups", needs: "backup.list", load: () => import("./backups.js") },
      { name: "log", title: "Log", needs: "log.tail", load: () => import("./log.js") },
      { name: "plugins", title: "Plugins", needs: "plugin.list", load: () => import("./plugins.js") },
    ],
  },
]

export const OPERATE_PAGES = OPERATE_GROUPS.flatMap((group) => group.pages)
