// Made by `python -m scripts.web_types src/clew/web`: do not edit.

export interface AddFactParams {
  text: string
  kind?: "profile" | "preference" | "fact" | "plan"
  pinned?: boolean
  scope?: string | null
}

export interface AddJobParams {
  task: string
  title?: string | null
  at?: string | null
  every?: string | null
  cron?: string | null
  zone?: string | null
  kind?: "turn" | "message" | "command" | "file" | "url"
  command?: string | null
  watch?: string | null
  where?: "fresh" | "own" | "here" | null
  conversation?: string | null
  route?: string | null
  catch_up?: "latest" | "none" | "all" | null
  quiet?: "hold" | "skip" | "ignore" | null
  quiet_if?: string | null
  until?: string | null
  runs?: number | null
}

export interface AgentShape {
  version: string
  model: string
  offline: boolean
  tools: Array<string>
  home: string
}

export interface AllowedPerson {
  channel: string
  user: string
  operator: boolean
  shut_out: boolean
}

export interface ApprovalShape {
  id: string
  turn: string
  call: string
  tool: string
  args: string
  state: "open" | "approved" | "denied" | "expired"
  asked_at: string
  expires_at: string
  answered_by: string | null
  note: string | null
  why?: string | null
  offer?: string | null
  preview?: string | null
}

export interface Approvals {
  items: Array<ApprovalShape>
}

export interface Attachment {
  name: string
  media_type?: string
  data: string
}

export interface BackupList {
  items: Array<BackupShape>
  folder: string
}

export interface BackupPagesShape {
  all: number
  written: number
}

export interface BackupShape {
  name: string
  file: string
  taken_at: string
  size: number
  restore: string
}

export interface BranchParams {
  conversation: string
  at?: number | null
  title?: string | null
  name?: string | null
}

export interface CallParams {
  conversation: string
  turn: string
  call: string
}

export interface CallShape {
  tool: string
  effect: "pure" | "idempotent" | "once" | "ask"
  runs: number
  status: string | null
  why: string | null
  started_at: string
  finished_at: string | null
}

export interface CancelParams {
  inbox_id: string
}

export interface Cancelled {
  cancelled: boolean
}

export interface ChangedDelivery {
  id: string
  state: string
  route: string
}

export interface ChannelDeliveries {
  waiting: number
  oldest: string | null
  failed: number
  failing: boolean
  error: string | null
}

export interface ChannelList {
  items: Array<ChannelStatus>
}

export interface ChannelStatus {
  name: string
  platform: string
  state: string
  since: string | null
  heard: number | null
  event: number | null
  error: string | null
  deliveries: ChannelDeliveries
}

export interface Closed {
  conversation: string
  ends: boolean
}

export interface CodeShape {
  code: string
  expires_at: string
}

export interface CommandReply {
  text: string
  conversation: string | null
  inbox_id: string | null
}

export interface CommandShape {
  name: string
  aliases: Array<string>
  arguments: string
  help: string
  control: boolean
}

export interface Commands {
  items: Array<CommandShape>
}

export interface CompactParams {
  session_id: string
  focus?: string | null
  dry_run?: boolean
  undo?: boolean
}

export interface Compaction {
  moved: boolean
  session: string
  messages_before: number
  messages_after: number
  tokens_before: number
  tokens_after: number
  note: string
  goes?: Array<LineShape> | null
  stays?: Array<LineShape> | null
}

export interface CompleteParams {
  text: string
  cursor?: number | null
  folder?: string | null
}

export interface Completion {
  text: string
  kind: "command" | "file" | "folder"
  help: string
}

export interface Completions {
  start: number
  end: number
  items: Array<Completion>
}

export interface ConfigGetParams {
  key?: string | null
}

export interface ConfigSetParams {
  key: string
  value: any
}

export interface ConversationList {
  items: Array<ConversationShape>
  next: string | null
}

export interface ConversationShape {
  id: string
  title: string | null
  head_session: string
  scope: string
  entries: number
  created_at: string
  updated_at: string
  routes: Array<string>
  origin: OriginShape | null
  imported_from?: string | null
  sessions: Array<SessionShape>
}

export interface CreateBackupParams {
  name?: string
  keep?: number
}

export interface CreatedBackupShape {
  file: string
  taken_at: string
  size: number
  pages: BackupPagesShape | null
  counts: Record<string, any>
  older: Array<string>
  repairable: Array<string>
}

export interface DeletedNotice {
  conversation: string
  session: string
  seq: number
  type: "deleted"
}

export interface DeletedShape {
  deleted: string
  undo_until: string | null
}

export interface DeliveryList {
  items: Array<DeliveryShape>
  next: string | null
}

export interface DeliveryParams {
  delivery: string
}

export interface DeliveryShape {
  id: string
  state: string
  route: string
  channel: string
  conversation: string
  kind: string
  text: string
  attempts: number
  error: string | null
  created_at: string
  changed_at: string
  open: boolean
}

export interface DeltaNotice {
  conversation: string
  session: string
  seq: number
  type: "delta"
  turn: string
  kind: "text" | "thinking"
  text: string
}

export interface Description {
  openrpc: string
  info: Record<string, any>
  methods: Array<Record<string, any>>
  components: Record<string, any>
}

export interface DoctorFindingShape {
  level: string
  what: string
  detail: string
  fix: string | null
}

export interface DoctorReportShape {
  ok: boolean
  findings: Array<DoctorFindingShape>
}

export interface EditFactParams {
  fact: string
  text?: string | null
  pinned?: boolean | null
}

export interface EditJobParams {
  job: string
  zone?: string | null
  at?: string | null
  every?: string | null
  cron?: string | null
}

export interface EditParams {
  inbox_id: string
  text: string
}

export interface Edited {
  edited: boolean
}

export interface EndedNotice {
  conversation: string
  session: string
  seq: number
  type: "ended"
  reason: string
}

export interface EntriesParams {
  conversation: string
  after?: number
  before?: number | null
  limit?: number
}

export interface EntryList {
  items: Array<EntryShape>
  next: string | null
}

export interface EntryNotice {
  conversation: string
  session: string
  seq: number
  type: "entry"
  kind: "message" | "attempt" | "event"
  turn: string | null
  role: "user" | "assistant" | "tool" | null
  text: string
  message: any
  created_at: string
  files?: Array<FileShape> | null
}

export interface EntryShape {
  seq: number
  kind: "message" | "attempt" | "event"
  session: string
  turn: string | null
  role: "user" | "assistant" | "tool" | null
  text: string
  message: any
  created_at: string
  files?: Array<FileShape> | null
}

export interface ExportParams {
  conversation: string
  format?: "html" | "markdown" | "json"
}

export interface ExportShape {
  file_name: string
  media_type: string
  content: string
}

export interface FactList {
  items: Array<FactShape>
}

export interface FactParams {
  fact: string
}

export interface FactShape {
  id: string
  scope: string
  number: number
  kind: string
  text: string | null
  state: string
  pinned: boolean
  version: number
  written_by: string
  source: string
  conversation: string | null
  seq: number | null
  replaces: string | null
  uses: number
  created_at: string
}

export interface FileShape {
  id: string
  name: string
  media_type: string
  size: number
  sha256: string
  caption: string
  path: string
}

export interface FireList {
  items: Array<FireShape>
}

export interface FireShape {
  slot: string
  state: string
  reason: string | null
  report: string | null
  conversation: string | null
  turn: string | null
}

export interface ForgottenShape {
  remark: string
  sources: Array<string>
}

export interface GoalList {
  items: Array<GoalShape>
}

export interface GoalParams {
  goal: string
}

export interface GoalShape {
  id: string
  conversation: string
  text: string
  state: string
  reason: string | null
  rounds: number
  max_rounds: number
  tokens: number
  budget: number
  failures: number
  route: string | null
  created_at: string
  version: number
}

export interface GrantShape {
  id: string
  says: string
  tool: string
  scope: string
  conversation: string | null
  by: string
  created_at: string
  expires_at: string | null
  revoked_at: string | null
}

export interface Grants {
  items: Array<GrantShape>
}

export interface HitList {
  items: Array<HitShape>
  next: string | null
}

export interface HitShape {
  conversation: string
  seq: number
  role: "user" | "assistant" | "tool"
  title: string | null
  snippet: string
  created_at: string
}

export interface InputResult {
  inbox_id: string
  conversation: string
  seq: number
  outcome: "turn" | "merged" | "steered" | "executed" | "cancelled" | "rejected"
  turn: string | null
  turn_outcome: "answered" | "failed" | "cancelled" | null
  text: string
  code: string | null
  note: string | null
  cut: boolean
}

export interface Interrupted {
  stopping: boolean
}

export interface JobList {
  items: Array<JobShape>
}

export interface JobParams {
  job: string
}

export interface JobShape {
  id: string
  title: string
  kind: string
  task: string
  command: string | null
  watch: string | null
  schedule: Record<string, any>
  zone: string
  where: string
  conversation: string | null
  scope: string
  route: string | null
  state: string
  reason: string | null
  catch_up: string
  quiet: string
  quiet_if: string | null
  failures: number
  next: Array<string>
  waits: string | null
}

export interface LeaseHolder {
  role: string
  host: string
  pid: number
  until: string
  alive: boolean
}

export interface LetInParams {
  code: string
}

export interface LineShape {
  seq: number | null
  role: string
  text: string
  tokens: number
  message: any
}

export interface LineageSessionShape {
  id: string
  opened_at: string
  opened_by: string
  opened_seq: number
  ended_at: string | null
  end_reason: string | null
  summary: string | null
  kept_from: number | null
}

export interface LineageShape {
  conversation: string
  origin: RelativeShape | null
  sessions: Array<LineageSessionShape>
  branches: Array<RelativeShape>
}

export interface LinkList {
  items: Array<LinkedAccount>
}

export interface LinkedAccount {
  scope: string
  main: string
  linked_at: string
}

export interface ListDeliveriesParams {
  state?: "failed" | "open" | "all"
  channel?: string | null
  cursor?: string | null
  limit?: number
}

export interface ListFactsParams {
  scope?: string | null
}

export interface ListGoalsParams {
  ended?: boolean
}

export interface ListJobsParams {
  done?: boolean
}

export interface ListParams {
  query?: string
  scope?: string
  channel?: string
  since?: string
  until?: string
  cursor?: string | null
  limit?: number
  adhoc?: boolean
}

export interface ListProcessesParams {
  limit?: number
}

export interface ListSkillsParams {
  scope?: string | null
}

export interface ListTasksParams {
  conversation?: string | null
  done?: boolean
}

export interface ListedTools {
  items: Array<ToolShape>
  sandbox: string
}

export interface LogParams {
  job: string
  limit?: number
}

export interface LogRecordShape {
  number: number
  at: string
  level: string
  event: string
  detail: string
}

export interface LogShape {
  items: Array<LogRecordShape>
  last: number
}

export interface LoginList {
  items: Array<LoginShape>
}

export interface LoginParams {
  login: string
}

export interface LoginShape {
  id: string
  scope: string
  label: string
  created_at: string
  used_at: string
  expires_at: string
}

export interface McpServerList {
  items: Array<McpServerShape>
}

export interface McpServerShape {
  name: string
  place: string
  state: string
  why: string | null
  tools: number
}

export interface MessageAnswer {
  inbox_id: string
  conversation: string
  state: "queued" | "running" | "waiting" | "done"
  turn: string | null
  text: string
  error: string | null
  approvals: Array<ApprovalShape>
}

export interface ModelListParams {
  conversation?: string | null
}

export interface ModelSetParams {
  conversation: string
  model: string
}

export interface Models {
  items: Array<string>
  current: string
}

export interface Named {
  conversation: string
}

export interface NewParams {
  name?: string
  title?: string | null
}

export interface NoParams {
}

export interface OpenParams {
  conversation?: string
  title?: string | null
}

export interface Opened {
  conversation: ConversationShape
  state: StateShape
}

export interface OriginShape {
  id: string
  seq: number | null
}

export interface PartedAccounts {
  parted: Array<string>
}

export interface PersonList {
  items: Array<PersonShape>
  allowed: Array<AllowedPerson>
}

export interface PersonShape {
  channel: string
  account: string
  user: string
  name: string
  standing: string
  changed_at: string
  code_until: string | null
  approved_by: string | null
}

export interface PluginList {
  items: Array<PluginShape>
  problems: Array<string>
}

export interface PluginShape {
  name: string
  kind: string
  state: string
  about: string
  settings: string | null
  tools: Array<string>
  chat_commands: Array<string>
  commands: Array<string>
  channels: Array<string>
  operations: Array<string>
  services: Array<string>
  periodic: Array<string>
}

export interface ProcessInputParams {
  process: string
  text?: string
  end?: boolean
}

export interface ProcessList {
  items: Array<ProcessShape>
}

export interface ProcessOutput {
  start: number
  end: number
  size: number
  text: string
}

export interface ProcessOutputParams {
  process: string
  start?: number | null
  length?: number
}

export interface ProcessParams {
  process: string
}

export interface ProcessShape {
  id: string
  command: string
  conversation: string
  turn: string
  scope: string
  host: string
  level: string
  state: string
  ending: string | null
  exit_code: number | null
  signal: number | null
  background: boolean
  size: number | null
  tail: string | null
  created_at: string
  ended_at: string | null
}

export interface Queue {
  items: Array<QueuedShape>
}

export interface QueuedShape {
  inbox_id: string
  kind: "message" | "command" | "expiry" | "completion"
  text: string
  double_text: "queue" | "steer" | "collect" | "interrupt" | "rollback" | "reject"
  received_at: string
}

export interface ReadTaskParams {
  task: string
  start?: number
}

export interface RelativeShape {
  id: string
  seq: number | null
  title: string | null
  created_at: string
}

export interface RenameParams {
  conversation: string
  title: string | null
}

export interface RespondParams {
  approval: string
  approve: boolean
  note?: string | null
  keep?: "hour" | "always" | null
}

export interface ResultParams {
  inbox_id: string
}

export interface ResumeParams {
  conversation: string
  name?: string
}

export interface RetractedNotice {
  conversation: string
  session: string
  seq: number
  type: "retracted"
  turn: string
  reason: string
}

export interface Retried {
  conversation: string
  session: string
  text: string
  inbox_id: string
}

export interface RevokeParams {
  grant: string
}

export interface RewindParams {
  conversation: string
  to: number
}

export interface RoundList {
  items: Array<RoundShape>
}

export interface RoundShape {
  n: number
  state: string
  reason: string | null
  turn: string | null
  tokens: number
  verdict: string | null
  remark: string | null
  at: string
}

export interface RoundsParams {
  goal: string
  limit?: number
}

export interface RunDoctorParams {
  offline?: boolean
}

export interface RunParams {
  text: string
  conversation?: string
}

export interface RunningCall {
  tool: string
  since: string
  waits: boolean
}

export interface RunningTurn {
  id: string
  conversation: string
  title: string | null
  scope: string
  state: string
  stopping: boolean
  since: string
  steps: number
  model: string | null
  text: string
  calls: Array<RunningCall>
  holder: LeaseHolder | null
}

export interface ScopeList {
  items: Array<ScopeShape>
}

export interface ScopeShape {
  scope: string
  conversations: number
  updated_at: string
}

export interface SearchFactsParams {
  scope?: string | null
  query: string
  limit?: number
}

export interface SearchParams {
  query: string
  scope?: string
  cursor?: string | null
  limit?: number
}

export interface SessionShape {
  id: string
  predecessor: string | null
  opened_at: string
  opened_by: string
  opened_seq?: number
  ended_at: string | null
  end_reason: string | null
  messages: number
}

export interface SetGoalParams {
  conversation: string
  text: string
  rounds?: number | null
  budget?: number | null
}

export interface SetSettingParams {
  name: string
  value: any
}

export interface SettingChangeShape {
  name: string
  file: string
  restart: boolean
  applied: boolean
  note: string
}

export interface SettingInfoList {
  items: Array<SettingInfoShape>
  file: string
}

export interface SettingInfoShape {
  name: string
  section: string
  type: string
  expects: string
  choices: Array<string> | null
  minimum: number | null
  maximum: number | null
  is_list: boolean
  secret: boolean
  value: any
  next: any
  default: any
  default_note: string | null
  source: string
  place: string
  help: string
  environment: string | null
  restart: boolean
  in_file: boolean
  pending: boolean
  template: boolean
}

export interface SettingList {
  items: Array<SettingShape>
  file: string
}

export interface SettingShape {
  key: string
  value: any
  origin: string
}

export interface SettingWritten {
  key: string
  file: string
  restart: boolean
  note: string
}

export interface ShutOut {
  user: string
  standing: string
}

export interface ShutOutParams {
  user: string
  channel?: string | null
  account?: string | null
  block?: boolean
}

export interface SkillList {
  items: Array<SkillShape>
  problems: Array<SkillProblemShape>
}

export interface SkillParams {
  scope?: string | null
  name: string
}

export interface SkillProblemShape {
  folder: string
  source: string
  reason: string
}

export interface SkillReviewShape {
  name: string
  description: string
  source: string
  folder: string
  state: string
  digest: string
  allowed_tools: Array<string> | null
  files: Array<string>
  scripts: Array<string>
  hosts: Array<string>
  notable: Array<string>
  remarks: Array<string>
  changes: Array<string>
  difference: string
  decided_by: string | null
}

export interface SkillShape {
  name: string
  description: string
  source: string
  folder: string
  state: string
  digest: string
  allowed_tools: Array<string> | null
}

export interface SnapshotNotice {
  conversation: string
  session: string
  seq: number
  type: "snapshot"
  turn: string
  text: string
}

export interface SpanShape {
  first: number
  last: number
}

export interface StateNotice {
  conversation: string
  session: string
  seq: number
  type: "state"
  state: StateShape
}

export interface StateShape {
  title: string | null
  head_session: string
  closed: boolean
  model: string
  turn: TurnShape | null
  queue: Array<QueuedShape>
  approvals: Array<ApprovalShape>
  taken_back: Array<SpanShape>
}

export interface Status {
  conversation: ConversationShape
  state: StateShape
  usage: UsageShape
}

export interface StoreFindingShape {
  check: string
  conversation: string | null
  seq: number | null
  detail: string
  repair: string | null
  decide: string | null
  repaired: boolean
}

export interface StoreReportShape {
  clean: boolean
  checked: Record<string, any>
  findings: Array<StoreFindingShape>
  unchecked: Array<string>
  left_alone?: Record<string, any>
}

export interface SubmitParams {
  session_id: string
  text: string
  attachments?: Array<Attachment> | null
  double_text?: "auto" | "queue" | "steer" | "collect" | "interrupt" | "rollback" | "reject" | null
  key?: string | null
}

export interface Submitted {
  inbox_id: string
  conversation: string
  session: string
  position: number
}

export interface SubscribeParams {
  conversation: string
  after?: number
  live?: boolean
}

export interface Subscribed {
  conversation: string
  session: string
  after: number
  seq: number
}

export interface TailParams {
  after?: number
  level?: "debug" | "info" | "warning" | "error" | "critical"
  limit?: number
}

export interface TaskAnswer {
  text: string
  start: number
  size: number
}

export interface TaskList {
  items: Array<TaskShape>
  usage: TaskUsage | null
}

export interface TaskParams {
  task: string
}

export interface TaskShape {
  id: string
  title: string
  agent: string | null
  state: string
  reason: string | null
  parent: string
  root: string
  depth: number
  background: boolean
  started: string
  ended: string | null
  steps: number
  max_steps: number
  max_tokens: number
  waits: boolean
  usage: TaskUsage
}

export interface TaskUsage {
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  cost_micros: number | null
}

export interface TellTaskParams {
  task: string
  text: string
}

export interface ToolNotice {
  conversation: string
  session: string
  seq: number
  type: "tool"
  turn: string
  call: string
  tool: string
  args: string
  status: string | null
}

export interface ToolRuleShape {
  rule: number
  then: string
}

export interface ToolRulesShape {
  every: ToolRuleShape | null
  some: Array<ToolRuleShape>
}

export interface ToolShape {
  name: string
  effect: string | null
  default: string
  rules: ToolRulesShape
  untrusted: boolean
  feature: string
}

export interface TrustSkillParams {
  scope?: string | null
  name: string
  digest: string
}

export interface TurnBegunNotice {
  conversation: string
  session: string
  seq: number
  type: "turn_begun"
  turn: string
}

export interface TurnClosedNotice {
  conversation: string
  session: string
  seq: number
  type: "turn_closed"
  turn: string
  outcome: "answered" | "failed" | "cancelled" | null
  error: string | null
  code: string | null
  trace?: string | null
}

export interface TurnList {
  items: Array<RunningTurn>
  queues: Array<WaitingQueue>
  more: boolean
}

export interface TurnShape {
  id: string
  state: "running" | "waiting"
  stopping: boolean
  started_at: string
}

export interface UndeleteParams {
  conversation: string
}

export interface UndoParams {
  conversation: string
  back?: number
}

export interface Undone {
  conversation: string
  session: string
  text: string
}

export interface UnlinkParams {
  account: string
}

export interface Unsubscribed {
  unsubscribed: boolean
}

export interface UsageParams {
  by?: "day" | "model" | "conversation" | "channel" | "person"
  since?: string | null
  until?: string | null
  offset?: number
}

export interface UsageShape {
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  cost: number | null
  context_tokens: number
  context_window: number | null
}

export interface UsageSum {
  key: string
  title: string | null
  requests: number
  turns: number
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  cost: number | null
  unpriced: number
}

export interface UsageSummary {
  since: string
  until: string
  total: UsageSum
  items: Array<UsageSum>
  more: boolean
}

export interface VerifiedBackupShape {
  file: string
  taken_at: string | null
  size: number
  counts: Record<string, any>
  repairable: Array<string>
}

export interface VerifyBackupParams {
  name: string
}

export interface WaitParams {
  inbox_id: string
  seconds?: number
}

export interface WaitingInput {
  inbox_id: string
  kind: string
  text: string
  received_at: string
}

export interface WaitingQueue {
  conversation: string
  title: string | null
  scope: string
  waiting: number
  items: Array<WaitingInput>
}

export interface WentBack {
  conversation: string
  session: string
}

export interface Methods {
  "conversation.open": { params: { conversation?: string; title?: string | null }, result: Opened }
  "conversation.new": { params: { name?: string; title?: string | null }, result: Opened }
  "conversation.resume": { params: { conversation: string; name?: string }, result: Opened }
  "conversation.close": { params: { conversation: string }, result: Closed }
  "conversation.end": { params: { conversation: string }, result: ConversationShape }
  "conversation.list": { params: { query?: string; scope?: string; channel?: string; since?: string; until?: string; cursor?: string | null; limit?: number; adhoc?: boolean }, result: ConversationList }
  "conversation.status": { params: { conversation: string }, result: Status }
  "conversation.call": { params: { conversation: string; turn: string; call: string }, result: CallShape }
  "conversation.export": { params: { conversation: string; format?: "html" | "markdown" | "json" }, result: ExportShape }
  "conversation.scopes": { params: {  }, result: ScopeList }
  "conversation.lineage": { params: { conversation: string }, result: LineageShape }
  "conversation.entries": { params: { conversation: string; after?: number; before?: number | null; limit?: number }, result: EntryList }
  "conversation.search": { params: { query: string; scope?: string; cursor?: string | null; limit?: number }, result: HitList }
  "conversation.rename": { params: { conversation: string; title: string | null }, result: ConversationShape }
  "conversation.branch": { params: { conversation: string; at?: number | null; title?: string | null; name?: string | null }, result: ConversationShape }
  "conversation.rewind": { params: { conversation: string; to: number }, result: WentBack }
  "conversation.undo": { params: { conversation: string; back?: number }, result: Undone }
  "conversation.retry": { params: { conversation: string }, result: Retried }
  "conversation.delete": { params: { conversation: string }, result: DeletedShape }
  "conversation.undelete": { params: { conversation: string }, result: ConversationShape }
  "session.compact": { params: { session_id: string; focus?: string | null; dry_run?: boolean; undo?: boolean }, result: Compaction }
  "prompt.submit": { params: { session_id: string; text: string; attachments?: Array<Attachment> | null; double_text?: "auto" | "queue" | "steer" | "collect" | "interrupt" | "rollback" | "reject" | null; key?: string | null }, result: Submitted }
  "prompt.result": { params: { inbox_id: string }, result: InputResult }
  "prompt.wait": { params: { inbox_id: string; seconds?: number }, result: MessageAnswer }
  "turn.interrupt": { params: { conversation: string }, result: Interrupted }
  "approval.list": { params: { conversation: string }, result: Approvals }
  "approval.respond": { params: { approval: string; approve: boolean; note?: string | null; keep?: "hour" | "always" | null }, result: ApprovalShape }
  "grant.list": { params: {  }, result: Grants }
  "grant.revoke": { params: { grant: string }, result: GrantShape }
  "queue.list": { params: { conversation: string }, result: Queue }
  "queue.cancel": { params: { inbox_id: string }, result: Cancelled }
  "queue.edit": { params: { inbox_id: string; text: string }, result: Edited }
  "events.subscribe": { params: { conversation: string; after?: number; live?: boolean }, result: Subscribed }
  "events.unsubscribe": { params: { conversation: string }, result: Unsubscribed }
  "commands.list": { params: {  }, result: Commands }
  "commands.run": { params: { text: string; conversation?: string }, result: CommandReply }
  "complete": { params: { text: string; cursor?: number | null; folder?: string | null }, result: Completions }
  "config.get": { params: { key?: string | null }, result: SettingList }
  "config.set": { params: { key: string; value: any }, result: SettingWritten }
  "model.list": { params: { conversation?: string | null }, result: Models }
  "model.set": { params: { conversation: string; model: string }, result: Models }
  "agent.describe": { params: {  }, result: AgentShape }
  "rpc.discover": { params: {  }, result: Description }
  "process.list": { params: { limit?: number }, result: ProcessList }
  "process.get": { params: { process: string }, result: ProcessShape }
  "process.output": { params: { process: string; start?: number | null; length?: number }, result: ProcessOutput }
  "process.input": { params: { process: string; text?: string; end?: boolean }, result: ProcessShape }
  "process.stop": { params: { process: string }, result: ProcessShape }
  "job.list": { params: { done?: boolean }, result: JobList }
  "job.get": { params: { job: string }, result: JobShape }
  "job.add": { params: { task: string; title?: string | null; at?: string | null; every?: string | null; cron?: string | null; zone?: string | null; kind?: "turn" | "message" | "command" | "file" | "url"; command?: string | null; watch?: string | null; where?: "fresh" | "own" | "here" | null; conversation?: string | null; route?: string | null; catch_up?: "latest" | "none" | "all" | null; quiet?: "hold" | "skip" | "ignore" | null; quiet_if?: string | null; until?: string | null; runs?: number | null }, result: JobShape }
  "job.edit": { params: { job: string; zone?: string | null; at?: string | null; every?: string | null; cron?: string | null }, result: JobShape }
  "job.run": { params: { job: string }, result: JobShape }
  "job.pause": { params: { job: string }, result: JobShape }
  "job.resume": { params: { job: string }, result: JobShape }
  "job.remove": { params: { job: string }, result: JobShape }
  "job.log": { params: { job: string; limit?: number }, result: FireList }
  "agent.list": { params: { conversation?: string | null; done?: boolean }, result: TaskList }
  "agent.get": { params: { task: string }, result: TaskShape }
  "agent.read": { params: { task: string; start?: number }, result: TaskAnswer }
  "agent.stop": { params: { task: string }, result: TaskShape }
  "agent.tell": { params: { task: string; text: string }, result: TaskShape }
  "goal.list": { params: { ended?: boolean }, result: GoalList }
  "goal.get": { params: { goal: string }, result: GoalShape }
  "goal.set": { params: { conversation: string; text: string; rounds?: number | null; budget?: number | null }, result: GoalShape }
  "goal.pause": { params: { goal: string }, result: GoalShape }
  "goal.resume": { params: { goal: string }, result: GoalShape }
  "goal.done": { params: { goal: string }, result: GoalShape }
  "goal.stop": { params: { goal: string }, result: GoalShape }
  "goal.rounds": { params: { goal: string; limit?: number }, result: RoundList }
  "memory.list": { params: { scope?: string | null }, result: FactList }
  "memory.get": { params: { fact: string }, result: FactShape }
  "memory.add": { params: { text: string; kind?: "profile" | "preference" | "fact" | "plan"; pinned?: boolean; scope?: string | null }, result: FactShape }
  "memory.edit": { params: { fact: string; text?: string | null; pinned?: boolean | null }, result: FactShape }
  "memory.forget": { params: { fact: string }, result: ForgottenShape }
  "memory.search": { params: { scope?: string | null; query: string; limit?: number }, result: FactList }
  "person.links": { params: {  }, result: LinkList }
  "person.unlink": { params: { account: string }, result: PartedAccounts }
  "skill.list": { params: { scope?: string | null }, result: SkillList }
  "skill.get": { params: { scope?: string | null; name: string }, result: SkillReviewShape }
  "skill.trust": { params: { scope?: string | null; name: string; digest: string }, result: SkillReviewShape }
  "skill.untrust": { params: { scope?: string | null; name: string }, result: SkillReviewShape }
  "mcp.list": { params: {  }, result: McpServerList }
  "login.list": { params: {  }, result: LoginList }
  "login.revoke": { params: { login: string }, result: LoginShape }
  "login.code": { params: {  }, result: CodeShape }
  "delivery.list": { params: { state?: "failed" | "open" | "all"; channel?: string | null; cursor?: string | null; limit?: number }, result: DeliveryList }
  "delivery.retry": { params: { delivery: string }, result: ChangedDelivery }
  "delivery.give_up": { params: { delivery: string }, result: ChangedDelivery }
  "person.list": { params: {  }, result: PersonList }
  "person.let_in": { params: { code: string }, result: PersonShape }
  "person.shut_out": { params: { user: string; channel?: string | null; account?: string | null; block?: boolean }, result: ShutOut }
  "channel.list": { params: {  }, result: ChannelList }
  "turn.list": { params: {  }, result: TurnList }
  "usage.summary": { params: { by?: "day" | "model" | "conversation" | "channel" | "person"; since?: string | null; until?: string | null; offset?: number }, result: UsageSummary }
  "setting.list": { params: {  }, result: SettingInfoList }
  "setting.set": { params: { name: string; value: any }, result: SettingChangeShape }
  "check.run": { params: {  }, result: StoreReportShape }
  "check.repair": { params: {  }, result: StoreReportShape }
  "doctor.run": { params: { offline?: boolean }, result: DoctorReportShape }
  "backup.list": { params: {  }, result: BackupList }
  "backup.create": { params: { name?: string; keep?: number }, result: CreatedBackupShape }
  "backup.verify": { params: { name: string }, result: VerifiedBackupShape }
  "log.tail": { params: { after?: number; level?: "debug" | "info" | "warning" | "error" | "critical"; limit?: number }, result: LogShape }
  "plugin.list": { params: {  }, result: PluginList }
  "tool.list": { params: {  }, result: ListedTools }
}

export type Notice = DeletedNotice | DeltaNotice | EndedNotice | EntryNotice | RetractedNotice | SnapshotNotice | StateNotice | ToolNotice | TurnBegunNotice | TurnClosedNotice

export type DoubleText = NonNullable<Methods["prompt.submit"]["params"]["double_text"]>
