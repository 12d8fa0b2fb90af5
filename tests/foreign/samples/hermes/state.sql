BEGIN TRANSACTION;
CREATE TABLE gateway_routing (
    scope TEXT NOT NULL DEFAULT '',
    session_key TEXT NOT NULL,
    entry_json TEXT NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (scope, session_key)
);
INSERT INTO "gateway_routing" VALUES('/srv/hh/sessions','agent:main:telegram:dm:1007','{"session_key": "agent:main:telegram:dm:1007", "session_id": "20261201_021055_5d1f4a87", "created_at": "2026-12-01T02:10:55.608501", "updated_at": "2026-12-01T02:10:55.608501", "display_name": "Garden", "platform": "telegram", "chat_type": "dm", "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "total_tokens": 0, "last_prompt_tokens": 0, "estimated_cost_usd": 0.0, "cost_status": "unknown", "expiry_finalized": false, "suspended": false, "resume_pending": false, "resume_reason": null, "last_resume_marked_at": null, "is_fresh_reset": false, "was_auto_reset": false, "auto_reset_reason": null, "reset_had_activity": false, "origin": {"platform": "telegram", "chat_id": "1007", "chat_name": "Garden", "chat_type": "dm", "user_id": "1007", "user_name": "Ada", "thread_id": null, "chat_topic": null}}',1.79609105711558604242e+09);
INSERT INTO "gateway_routing" VALUES('/srv/hh/sessions','agent:main:telegram:group:-1008:7','{"session_key": "agent:main:telegram:group:-1008:7", "session_id": "20261201_021055_d8b41be4", "created_at": "2026-12-01T02:10:55.652482", "updated_at": "2026-12-01T02:10:55.652482", "display_name": "Garden", "platform": "telegram", "chat_type": "group", "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "total_tokens": 0, "last_prompt_tokens": 0, "estimated_cost_usd": 0.0, "cost_status": "unknown", "expiry_finalized": false, "suspended": false, "resume_pending": false, "resume_reason": null, "last_resume_marked_at": null, "is_fresh_reset": false, "was_auto_reset": false, "auto_reset_reason": null, "reset_had_activity": false, "origin": {"platform": "telegram", "chat_id": "-1008", "chat_name": "Garden", "chat_type": "group", "user_id": "1008", "user_name": "Ada", "thread_id": "7", "chat_topic": null}}',1.79609105711558604242e+09);
INSERT INTO "gateway_routing" VALUES('/srv/hh/sessions','agent:main:discord:dm:1017','{"session_key": "agent:main:discord:dm:1017", "session_id": "20261201_021056_c9fda2d4", "created_at": "2026-12-01T02:10:56.548468", "updated_at": "2026-12-01T02:10:56.548468", "display_name": "Garden", "platform": "discord", "chat_type": "dm", "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "total_tokens": 0, "last_prompt_tokens": 0, "estimated_cost_usd": 0.0, "cost_status": "unknown", "expiry_finalized": false, "suspended": false, "resume_pending": false, "resume_reason": null, "last_resume_marked_at": null, "is_fresh_reset": false, "was_auto_reset": false, "auto_reset_reason": null, "reset_had_activity": false, "origin": {"platform": "discord", "chat_id": "1017", "chat_name": "Garden", "chat_type": "dm", "user_id": "1017", "user_name": "Ada", "thread_id": null, "chat_topic": null}}',1.79609105711558604242e+09);
INSERT INTO "gateway_routing" VALUES('/srv/hh/sessions','agent:main:discord:group:-10018:1018','{"session_key": "agent:main:discord:group:-10018:1018", "session_id": "20261201_021056_b890c336", "created_at": "2026-12-01T02:10:56.632483", "updated_at": "2026-12-01T02:10:56.632483", "display_name": "Garden", "platform": "discord", "chat_type": "group", "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "total_tokens": 0, "last_prompt_tokens": 0, "estimated_cost_usd": 0.0, "cost_status": "unknown", "expiry_finalized": false, "suspended": false, "resume_pending": false, "resume_reason": null, "last_resume_marked_at": null, "is_fresh_reset": false, "was_auto_reset": false, "auto_reset_reason": null, "reset_had_activity": false, "origin": {"platform": "discord", "chat_id": "-10018", "chat_name": "Garden", "chat_type": "group", "user_id": "1018", "user_name": "Ada", "thread_id": null, "chat_topic": null}}',1.79609105711558604242e+09);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    effect_disposition TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    platform_message_id TEXT,
    observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT
);
INSERT INTO "messages" VALUES(1,'20260105_000000_abc000','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767600000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(2,'20260105_000000_abc000','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767600003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(3,'20260105_000000_abc000','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767600060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(4,'20260105_000000_abc000','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767600063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(5,'20260105_000000_abc000','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767600120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(6,'20260105_000000_abc000','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767600123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(7,'20260105_000001_abc001','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767610000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(8,'20260105_000001_abc001','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_0_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767610001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(9,'20260105_000001_abc001','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767610002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(10,'20260105_000001_abc001','tool','{"output": "rose call_0_1"}','call_0_1',NULL,'terminal',NULL,1767610002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(11,'20260105_000001_abc001','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767610003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(12,'20260105_000001_abc001','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767610060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(13,'20260105_000001_abc001','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767610063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(14,'20260105_000002_abc002','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767620000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(15,'20260105_000002_abc002','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767620003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(16,'20260105_000002_abc002','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767620060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(17,'20260105_000002_abc002','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767620063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(18,'20260105_000002_abc002','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767620120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(19,'20260105_000002_abc002','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767620121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(20,'20260105_000002_abc002','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767620122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(21,'20260105_000002_abc002','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767620123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(22,'20260105_000002_abc002','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767620180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(23,'20260105_000002_abc002','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767620183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(24,'20260105_000002_abc002','user','',NULL,NULL,NULL,NULL,1767620240.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(25,'20260105_000002_abc002','assistant','Answer 4: roses.',NULL,NULL,NULL,NULL,1767620243.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(26,'20260105_000002_abc002','user','Question 5: what grows here?',NULL,NULL,NULL,NULL,1767620300.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(27,'20260105_000002_abc002','assistant','Answer 5: roses.',NULL,NULL,NULL,NULL,1767620303.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(28,'20260105_000002_abc002','user','Question 6: what grows here?',NULL,NULL,NULL,NULL,1767620360.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(29,'20260105_000002_abc002','assistant','Answer 6: roses.',NULL,NULL,NULL,NULL,1767620363.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(30,'20260105_000002_abc002','user','Question 7: what grows here?',NULL,NULL,NULL,NULL,1767620420.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(31,'20260105_000002_abc002','assistant','',NULL,'[{"id": "call_7_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_7_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767620421.0,NULL,'tool_calls','I look it up, 7.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(32,'20260105_000002_abc002','tool','{"output": "rose call_7_0"}','call_7_0',NULL,'terminal',NULL,1767620422.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(33,'20260105_000002_abc002','tool','{"output": "rose call_7_1"}','call_7_1',NULL,'terminal',NULL,1767620422.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(34,'20260105_000002_abc002','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767620423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(35,'20260105_000002_abc002','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767620480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(36,'20260105_000002_abc002','assistant','',NULL,'[{"id": "call_8_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_8_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767620481.0,NULL,'tool_calls','I look it up, 8.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(37,'20260105_000002_abc002','tool','{"output": "rose call_8_0"}','call_8_0',NULL,'terminal',NULL,1767620482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(38,'20260105_000002_abc002','tool','{"output": "rose call_8_1"}','call_8_1',NULL,'terminal',NULL,1767620482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(39,'20260105_000002_abc002','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767620483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(40,'20260105_000002_abc002_0','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767620000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(41,'20260105_000002_abc002_0','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767620003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(42,'20260105_000002_abc002_0','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 8: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 19 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767620480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(43,'20260105_000002_abc002_0','assistant','',NULL,'[{"id": "call_8_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_8_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767620481.0,NULL,'tool_calls','I look it up, 8.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(44,'20260105_000002_abc002_0','tool','{"output": "rose call_8_0"}','call_8_0',NULL,'terminal',NULL,1767620482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(45,'20260105_000002_abc002_0','tool','{"output": "rose call_8_1"}','call_8_1',NULL,'terminal',NULL,1767620482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(46,'20260105_000002_abc002_0','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767620483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(47,'20260105_000002_abc002_0','user','Question 50: what grows here?',NULL,NULL,NULL,NULL,1767621000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(48,'20260105_000002_abc002_0','assistant','',NULL,'[{"id": "call_50_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767621001.0,NULL,'tool_calls','I look it up, 50.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(49,'20260105_000002_abc002_0','tool','{"output": "rose call_50_0"}','call_50_0',NULL,'terminal',NULL,1767621002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(50,'20260105_000002_abc002_0','assistant','Answer 50: roses.',NULL,NULL,NULL,NULL,1767621003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(51,'20260105_000002_abc002_0','user','Question 60: what grows here?',NULL,NULL,NULL,NULL,1767621100.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(52,'20260105_000002_abc002_0','assistant','Answer 60: roses.',NULL,NULL,NULL,NULL,1767621103.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(53,'20260105_000002_abc002_0','user','Question 61: what grows here?',NULL,NULL,NULL,NULL,1767621109.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(54,'20260105_000002_abc002_0','assistant','Answer 61: roses.',NULL,NULL,NULL,NULL,1767621112.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(55,'20260105_000002_abc002_0','user','Question 62: what grows here?',NULL,NULL,NULL,NULL,1767621118.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(56,'20260105_000002_abc002_0','assistant','Answer 62: roses.',NULL,NULL,NULL,NULL,1767621121.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(57,'20260105_000002_abc002_0','user','Question 63: what grows here?',NULL,NULL,NULL,NULL,1767621127.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(58,'20260105_000002_abc002_0','assistant','Answer 63: roses.',NULL,NULL,NULL,NULL,1767621130.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(59,'20260105_000002_abc002_0','user','Question 64: what grows here?',NULL,NULL,NULL,NULL,1767621136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(60,'20260105_000002_abc002_0','assistant','Answer 64: roses.',NULL,NULL,NULL,NULL,1767621139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(61,'20260105_000002_abc002_0','user','Question 65: what grows here?',NULL,NULL,NULL,NULL,1767621145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(62,'20260105_000002_abc002_0','assistant','Answer 65: roses.',NULL,NULL,NULL,NULL,1767621148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(63,'20260105_000002_abc002_0_1','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767620000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(64,'20260105_000002_abc002_0_1','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767620003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(65,'20260105_000002_abc002_0_1','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 64: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 16 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767621136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(66,'20260105_000002_abc002_0_1','assistant','Answer 64: roses.',NULL,NULL,NULL,NULL,1767621139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(67,'20260105_000002_abc002_0_1','user','Question 65: what grows here?',NULL,NULL,NULL,NULL,1767621145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(68,'20260105_000002_abc002_0_1','assistant','Answer 65: roses.',NULL,NULL,NULL,NULL,1767621148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(69,'20260105_000002_abc002_0_1','user','Question 51: what grows here?',NULL,NULL,NULL,NULL,1767621500.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(70,'20260105_000002_abc002_0_1','assistant','',NULL,'[{"id": "call_51_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767621501.0,NULL,'tool_calls','I look it up, 51.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(71,'20260105_000002_abc002_0_1','tool','{"output": "rose call_51_0"}','call_51_0',NULL,'terminal',NULL,1767621502.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(72,'20260105_000002_abc002_0_1','assistant','Answer 51: roses.',NULL,NULL,NULL,NULL,1767621503.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(73,'20260105_000002_abc002_0_1','user','Question 70: what grows here?',NULL,NULL,NULL,NULL,1767621600.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(74,'20260105_000002_abc002_0_1','assistant','Answer 70: roses.',NULL,NULL,NULL,NULL,1767621603.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(75,'20260105_000002_abc002_0_1','user','Question 71: what grows here?',NULL,NULL,NULL,NULL,1767621609.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(76,'20260105_000002_abc002_0_1','assistant','Answer 71: roses.',NULL,NULL,NULL,NULL,1767621612.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(77,'20260105_000002_abc002_0_1','user','Question 72: what grows here?',NULL,NULL,NULL,NULL,1767621618.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(78,'20260105_000002_abc002_0_1','assistant','Answer 72: roses.',NULL,NULL,NULL,NULL,1767621621.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(79,'20260105_000002_abc002_0_1','user','Question 73: what grows here?',NULL,NULL,NULL,NULL,1767621627.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(80,'20260105_000002_abc002_0_1','assistant','Answer 73: roses.',NULL,NULL,NULL,NULL,1767621630.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(81,'20260105_000002_abc002_0_1','user','Question 74: what grows here?',NULL,NULL,NULL,NULL,1767621636.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(82,'20260105_000002_abc002_0_1','assistant','Answer 74: roses.',NULL,NULL,NULL,NULL,1767621639.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(83,'20260105_000002_abc002_0_1','user','Question 75: what grows here?',NULL,NULL,NULL,NULL,1767621645.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(84,'20260105_000002_abc002_0_1','assistant','Answer 75: roses.',NULL,NULL,NULL,NULL,1767621648.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(85,'20260105_000002_abc002_0_1_2','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767620000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(86,'20260105_000002_abc002_0_1_2','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767620003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(87,'20260105_000002_abc002_0_1_2','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 74: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 15 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767621636.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(88,'20260105_000002_abc002_0_1_2','assistant','Answer 74: roses.',NULL,NULL,NULL,NULL,1767621639.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(89,'20260105_000002_abc002_0_1_2','user','Question 75: what grows here?',NULL,NULL,NULL,NULL,1767621645.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(90,'20260105_000002_abc002_0_1_2','assistant','Answer 75: roses.',NULL,NULL,NULL,NULL,1767621648.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(91,'20260105_000002_abc002_0_1_2','user','Question 52: what grows here?',NULL,NULL,NULL,NULL,1767622000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(92,'20260105_000002_abc002_0_1_2','assistant','',NULL,'[{"id": "call_52_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767622001.0,NULL,'tool_calls','I look it up, 52.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(93,'20260105_000002_abc002_0_1_2','tool','{"output": "rose call_52_0"}','call_52_0',NULL,'terminal',NULL,1767622002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(94,'20260105_000002_abc002_0_1_2','assistant','Answer 52: roses.',NULL,NULL,NULL,NULL,1767622003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(95,'20260105_000002_abc002_0_1_2','user','Question 80: what grows here?',NULL,NULL,NULL,NULL,1767622100.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(96,'20260105_000002_abc002_0_1_2','assistant','Answer 80: roses.',NULL,NULL,NULL,NULL,1767622103.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(97,'20260105_000002_abc002_0_1_2','user','Question 81: what grows here?',NULL,NULL,NULL,NULL,1767622109.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(98,'20260105_000002_abc002_0_1_2','assistant','Answer 81: roses.',NULL,NULL,NULL,NULL,1767622112.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(99,'20260105_000002_abc002_0_1_2','user','Question 82: what grows here?',NULL,NULL,NULL,NULL,1767622118.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(100,'20260105_000002_abc002_0_1_2','assistant','Answer 82: roses.',NULL,NULL,NULL,NULL,1767622121.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(101,'20260105_000002_abc002_0_1_2','user','Question 83: what grows here?',NULL,NULL,NULL,NULL,1767622127.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(102,'20260105_000002_abc002_0_1_2','assistant','Answer 83: roses.',NULL,NULL,NULL,NULL,1767622130.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(103,'20260105_000002_abc002_0_1_2','user','Question 84: what grows here?',NULL,NULL,NULL,NULL,1767622136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(104,'20260105_000002_abc002_0_1_2','assistant','Answer 84: roses.',NULL,NULL,NULL,NULL,1767622139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(105,'20260105_000002_abc002_0_1_2','user','',NULL,NULL,NULL,NULL,1767622145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(106,'20260105_000002_abc002_0_1_2','assistant','Answer 85: roses.',NULL,NULL,NULL,NULL,1767622148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(107,'20260105_000003_abc003','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767630000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(108,'20260105_000003_abc003','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767630003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(109,'20260105_000003_abc003','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767630060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(110,'20260105_000003_abc003','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767630063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(111,'20260105_000003_abc003','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767630120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(112,'20260105_000003_abc003','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767630123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(113,'20260105_000003_abc003','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767630180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(114,'20260105_000003_abc003','assistant','',NULL,'[{"id": "call_3_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_3_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767630181.0,NULL,'tool_calls','I look it up, 3.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(115,'20260105_000003_abc003','tool','{"output": "rose call_3_0"}','call_3_0',NULL,'terminal',NULL,1767630182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(116,'20260105_000003_abc003','tool','{"output": "rose call_3_1"}','call_3_1',NULL,'terminal',NULL,1767630182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(117,'20260105_000003_abc003','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767630183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(118,'20260105_000003_abc003','user','',NULL,NULL,NULL,NULL,1767630240.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(119,'20260105_000003_abc003','assistant','Answer 4: roses.',NULL,NULL,NULL,NULL,1767630243.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(120,'20260105_000003_abc003','user','Question 5: what grows here?',NULL,NULL,NULL,NULL,1767630300.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(121,'20260105_000003_abc003','assistant','Answer 5: roses.',NULL,NULL,NULL,NULL,1767630303.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(122,'20260105_000003_abc003','user','Question 6: what grows here?',NULL,NULL,NULL,NULL,1767630360.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(123,'20260105_000003_abc003','assistant','Answer 6: roses.',NULL,NULL,NULL,NULL,1767630363.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(124,'20260105_000003_abc003','user','Question 7: what grows here?',NULL,NULL,NULL,NULL,1767630420.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(125,'20260105_000003_abc003','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767630423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(126,'20260105_000003_abc003','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767630480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(127,'20260105_000003_abc003','assistant','',NULL,'[{"id": "call_8_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_8_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767630481.0,NULL,'tool_calls','I look it up, 8.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(128,'20260105_000003_abc003','tool','{"output": "rose call_8_0"}','call_8_0',NULL,'terminal',NULL,1767630482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(129,'20260105_000003_abc003','tool','{"output": "rose call_8_1"}','call_8_1',NULL,'terminal',NULL,1767630482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(130,'20260105_000003_abc003','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767630483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(131,'20260105_000003_abc003','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767630000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(132,'20260105_000003_abc003','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767630003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(133,'20260105_000003_abc003','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 8: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 17 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767630480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(134,'20260105_000003_abc003','assistant','',NULL,'[{"id": "call_8_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_8_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767630481.0,NULL,'tool_calls','I look it up, 8.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(135,'20260105_000003_abc003','tool','{"output": "rose call_8_0"}','call_8_0',NULL,'terminal',NULL,1767630482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(136,'20260105_000003_abc003','tool','{"output": "rose call_8_1"}','call_8_1',NULL,'terminal',NULL,1767630482.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(137,'20260105_000003_abc003','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767630483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(138,'20260105_000003_abc003','user','Question 70: what grows here?',NULL,NULL,NULL,NULL,1767631000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(139,'20260105_000003_abc003','assistant','',NULL,'[{"id": "call_70_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767631001.0,NULL,'tool_calls','I look it up, 70.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(140,'20260105_000003_abc003','tool','{"output": "rose call_70_0"}','call_70_0',NULL,'terminal',NULL,1767631002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(141,'20260105_000003_abc003','assistant','Answer 70: roses.',NULL,NULL,NULL,NULL,1767631003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(142,'20260105_000003_abc003','user','Question 80: what grows here?',NULL,NULL,NULL,NULL,1767631100.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(143,'20260105_000003_abc003','assistant','Answer 80: roses.',NULL,NULL,NULL,NULL,1767631103.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(144,'20260105_000003_abc003','user','Question 81: what grows here?',NULL,NULL,NULL,NULL,1767631109.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(145,'20260105_000003_abc003','assistant','Answer 81: roses.',NULL,NULL,NULL,NULL,1767631112.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(146,'20260105_000003_abc003','user','Question 82: what grows here?',NULL,NULL,NULL,NULL,1767631118.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(147,'20260105_000003_abc003','assistant','Answer 82: roses.',NULL,NULL,NULL,NULL,1767631121.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(148,'20260105_000003_abc003','user','Question 83: what grows here?',NULL,NULL,NULL,NULL,1767631127.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(149,'20260105_000003_abc003','assistant','Answer 83: roses.',NULL,NULL,NULL,NULL,1767631130.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(150,'20260105_000003_abc003','user','Question 84: what grows here?',NULL,NULL,NULL,NULL,1767631136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(151,'20260105_000003_abc003','assistant','Answer 84: roses.',NULL,NULL,NULL,NULL,1767631139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(152,'20260105_000003_abc003','user','',NULL,NULL,NULL,NULL,1767631145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(153,'20260105_000003_abc003','assistant','Answer 85: roses.',NULL,NULL,NULL,NULL,1767631148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(154,'20260105_000003_abc003','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767630000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(155,'20260105_000003_abc003','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767630003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(156,'20260105_000003_abc003','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 84: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 16 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767631136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(157,'20260105_000003_abc003','assistant','Answer 84: roses.',NULL,NULL,NULL,NULL,1767631139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(158,'20260105_000003_abc003','user','',NULL,NULL,NULL,NULL,1767631145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(159,'20260105_000003_abc003','assistant','Answer 85: roses.',NULL,NULL,NULL,NULL,1767631148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(160,'20260105_000003_abc003','user','Question 71: what grows here?',NULL,NULL,NULL,NULL,1767631500.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(161,'20260105_000003_abc003','assistant','',NULL,'[{"id": "call_71_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767631501.0,NULL,'tool_calls','I look it up, 71.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(162,'20260105_000003_abc003','tool','{"output": "rose call_71_0"}','call_71_0',NULL,'terminal',NULL,1767631502.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(163,'20260105_000003_abc003','assistant','Answer 71: roses.',NULL,NULL,NULL,NULL,1767631503.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(164,'20260105_000003_abc003','user','Question 90: what grows here?',NULL,NULL,NULL,NULL,1767631600.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(165,'20260105_000003_abc003','assistant','Answer 90: roses.',NULL,NULL,NULL,NULL,1767631603.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(166,'20260105_000003_abc003','user','Question 91: what grows here?',NULL,NULL,NULL,NULL,1767631609.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(167,'20260105_000003_abc003','assistant','Answer 91: roses.',NULL,NULL,NULL,NULL,1767631612.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(168,'20260105_000003_abc003','user','Question 92: what grows here?',NULL,NULL,NULL,NULL,1767631618.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(169,'20260105_000003_abc003','assistant','Answer 92: roses.',NULL,NULL,NULL,NULL,1767631621.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(170,'20260105_000003_abc003','user','Question 93: what grows here?',NULL,NULL,NULL,NULL,1767631627.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(171,'20260105_000003_abc003','assistant','Answer 93: roses.',NULL,NULL,NULL,NULL,1767631630.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(172,'20260105_000003_abc003','user','',NULL,NULL,NULL,NULL,1767631636.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(173,'20260105_000003_abc003','assistant','Answer 94: roses.',NULL,NULL,NULL,NULL,1767631639.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(174,'20260105_000003_abc003','user','Question 95: what grows here?',NULL,NULL,NULL,NULL,1767631645.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(175,'20260105_000003_abc003','assistant','Answer 95: roses.',NULL,NULL,NULL,NULL,1767631648.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(176,'20260105_000004_abc004','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767640000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(177,'20260105_000004_abc004','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767640003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(178,'20260105_000004_abc004','user','Question 90: what grows here?',NULL,NULL,NULL,NULL,1767640900.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(179,'20260105_000004_abc004','assistant','Answer 90: roses.',NULL,NULL,NULL,NULL,1767640903.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(180,'20260105_000005_abc005','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767650000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(181,'20260105_000005_abc005','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767650003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(182,'20260105_000005_abc005_b','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767650000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(183,'20260105_000005_abc005_b','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767650003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(184,'20260105_000005_abc005_b','user','Question 95: what grows here?',NULL,NULL,NULL,NULL,1767650950.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(185,'20260105_000005_abc005_b','assistant','Answer 95: roses.',NULL,NULL,NULL,NULL,1767650953.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(186,'20260105_000006_abc006','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767660000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(187,'20260105_000006_abc006','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_0_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767660001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(188,'20260105_000006_abc006','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767660002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(189,'20260105_000006_abc006','tool','{"output": "rose call_0_1"}','call_0_1',NULL,'terminal',NULL,1767660002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(190,'20260105_000006_abc006','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767660003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(191,'20260105_000006_abc006','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767660060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(192,'20260105_000006_abc006','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767660063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(193,'20260105_000006_abc006','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767660120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(194,'20260105_000006_abc006','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767660123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(195,'20260105_000006_abc006','user','Question 96: what grows here?',NULL,NULL,NULL,NULL,1767660960.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(196,'20260105_000006_abc006','assistant','',NULL,'[{"id": "call_96_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_96_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767660961.0,NULL,'tool_calls','I look it up, 96.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(197,'20260105_000006_abc006','tool','{"output": "rose call_96_0"}','call_96_0',NULL,'terminal',NULL,1767660962.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(198,'20261201_021055_5d1f4a87','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767670000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(199,'20261201_021055_5d1f4a87','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767670003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(200,'20261201_021055_5d1f4a87','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767670060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(201,'20261201_021055_5d1f4a87','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767670063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(202,'20261201_021055_5d1f4a87','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767670120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(203,'20261201_021055_5d1f4a87','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767670123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(204,'20261201_021055_d8b41be4','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767680000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(205,'20261201_021055_d8b41be4','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767680003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(206,'20261201_021055_d8b41be4','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767680060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(207,'20261201_021055_d8b41be4','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767680063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(208,'20261201_021055_d8b41be4','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767680120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(209,'20261201_021055_d8b41be4','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767680123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(210,'20260105_000009_abc009','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767690000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(211,'20260105_000009_abc009','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_0_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767690001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(212,'20260105_000009_abc009','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767690002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(213,'20260105_000009_abc009','tool','{"output": "rose call_0_1"}','call_0_1',NULL,'terminal',NULL,1767690002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(214,'20260105_000009_abc009','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767690003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(215,'20260105_000009_abc009','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767690060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(216,'20260105_000009_abc009','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_1_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767690061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(217,'20260105_000009_abc009','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767690062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(218,'20260105_000009_abc009','tool','{"output": "rose call_1_1"}','call_1_1',NULL,'terminal',NULL,1767690062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(219,'20260105_000009_abc009','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767690063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(220,'20260105_000009_abc009_d','user','Question 97: what grows here?',NULL,NULL,NULL,NULL,1767690970.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(221,'20260105_000009_abc009_d','assistant','',NULL,'[{"id": "call_97_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767690971.0,NULL,'tool_calls','I look it up, 97.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(222,'20260105_000009_abc009_d','tool','{"output": "rose call_97_0"}','call_97_0',NULL,'terminal',NULL,1767690972.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(223,'20260105_000009_abc009_d','assistant','Answer 97: roses.',NULL,NULL,NULL,NULL,1767690973.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(224,'20260105_000010_abc010','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767700000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(225,'20260105_000010_abc010','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767700003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(226,'20260105_000010_abc010','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767700060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(227,'20260105_000010_abc010','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767700063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(228,'20260105_000010_abc010','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767700120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(229,'20260105_000010_abc010','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767700123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(230,'20260105_000011_abc011','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767710000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(231,'20260105_000011_abc011','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_0_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767710001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(232,'20260105_000011_abc011','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767710002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(233,'20260105_000011_abc011','tool','{"output": "rose call_0_1"}','call_0_1',NULL,'terminal',NULL,1767710002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(234,'20260105_000011_abc011','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767710003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(235,'20260105_000011_abc011','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767710060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(236,'20260105_000011_abc011','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767710061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(237,'20260105_000011_abc011','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767710062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(238,'20260105_000011_abc011','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767710063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(239,'20260105_000011_abc011','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767710120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(240,'20260105_000011_abc011','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767710121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(241,'20260105_000011_abc011','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767710122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(242,'20260105_000011_abc011','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767710123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(243,'20260105_000011_abc011','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767710180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(244,'20260105_000011_abc011','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767710183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(245,'20260105_000012_abc012','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767720000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(246,'20260105_000012_abc012','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767720003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(247,'20260105_000012_abc012','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767720060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(248,'20260105_000012_abc012','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767720063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(249,'20260105_000012_abc012','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767720120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(250,'20260105_000012_abc012','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767720123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(251,'20260105_000012_abc012','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767720180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(252,'20260105_000012_abc012','assistant','',NULL,'[{"id": "call_3_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720181.0,NULL,'tool_calls','I look it up, 3.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(253,'20260105_000012_abc012','tool','{"output": "rose call_3_0"}','call_3_0',NULL,'terminal',NULL,1767720182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(254,'20260105_000012_abc012','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767720183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(255,'20260105_000012_abc012','user','',NULL,NULL,NULL,NULL,1767720240.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(256,'20260105_000012_abc012','assistant','',NULL,'[{"id": "call_4_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_4_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720241.0,NULL,'tool_calls','I look it up, 4.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(257,'20260105_000012_abc012','tool','{"output": "rose call_4_0"}','call_4_0',NULL,'terminal',NULL,1767720242.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(258,'20260105_000012_abc012','tool','{"output": "rose call_4_1"}','call_4_1',NULL,'terminal',NULL,1767720242.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(259,'20260105_000012_abc012','assistant','Answer 4: roses.',NULL,NULL,NULL,NULL,1767720243.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(260,'20260105_000012_abc012','user','Question 5: what grows here?',NULL,NULL,NULL,NULL,1767720300.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(261,'20260105_000012_abc012','assistant','',NULL,'[{"id": "call_5_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720301.0,NULL,'tool_calls','I look it up, 5.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(262,'20260105_000012_abc012','tool','{"output": "rose call_5_0"}','call_5_0',NULL,'terminal',NULL,1767720302.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(263,'20260105_000012_abc012','assistant','Answer 5: roses.',NULL,NULL,NULL,NULL,1767720303.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(264,'20260105_000012_abc012','user','Question 6: what grows here?',NULL,NULL,NULL,NULL,1767720360.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(265,'20260105_000012_abc012','assistant','',NULL,'[{"id": "call_6_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_6_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720361.0,NULL,'tool_calls','I look it up, 6.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(266,'20260105_000012_abc012','tool','{"output": "rose call_6_0"}','call_6_0',NULL,'terminal',NULL,1767720362.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(267,'20260105_000012_abc012','tool','{"output": "rose call_6_1"}','call_6_1',NULL,'terminal',NULL,1767720362.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(268,'20260105_000012_abc012','assistant','Answer 6: roses.',NULL,NULL,NULL,NULL,1767720363.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(269,'20260105_000012_abc012','user','Question 7: what grows here?',NULL,NULL,NULL,NULL,1767720420.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(270,'20260105_000012_abc012','assistant','',NULL,'[{"id": "call_7_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720421.0,NULL,'tool_calls','I look it up, 7.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(271,'20260105_000012_abc012','tool','{"output": "rose call_7_0"}','call_7_0',NULL,'terminal',NULL,1767720422.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(272,'20260105_000012_abc012','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767720423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(273,'20260105_000012_abc012','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767720480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(274,'20260105_000012_abc012','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767720483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(275,'20260105_000012_abc012_0','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767720000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(276,'20260105_000012_abc012_0','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767720003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(277,'20260105_000012_abc012_0','user','[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 23 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1.79609105599642729757e+09,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(278,'20260105_000012_abc012_0','assistant','',NULL,'[{"id": "call_7_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767720421.0,NULL,'tool_calls','I look it up, 7.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(279,'20260105_000012_abc012_0','tool','{"output": "rose call_7_0"}','call_7_0',NULL,'terminal',NULL,1767720422.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(280,'20260105_000012_abc012_0','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767720423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(281,'20260105_000012_abc012_0','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767720480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(282,'20260105_000012_abc012_0','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767720483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(283,'20260105_000012_abc012_0','user','Question 50: what grows here?',NULL,NULL,NULL,NULL,1767721000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(284,'20260105_000012_abc012_0','assistant','',NULL,'[{"id": "call_50_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767721001.0,NULL,'tool_calls','I look it up, 50.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(285,'20260105_000012_abc012_0','tool','{"output": "rose call_50_0"}','call_50_0',NULL,'terminal',NULL,1767721002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(286,'20260105_000012_abc012_0','assistant','Answer 50: roses.',NULL,NULL,NULL,NULL,1767721003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(287,'20260105_000012_abc012_0','user','Question 60: what grows here?',NULL,NULL,NULL,NULL,1767721100.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(288,'20260105_000012_abc012_0','assistant','Answer 60: roses.',NULL,NULL,NULL,NULL,1767721103.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(289,'20260105_000012_abc012_0','user','Question 61: what grows here?',NULL,NULL,NULL,NULL,1767721109.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(290,'20260105_000012_abc012_0','assistant','Answer 61: roses.',NULL,NULL,NULL,NULL,1767721112.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(291,'20260105_000012_abc012_0','user','Question 62: what grows here?',NULL,NULL,NULL,NULL,1767721118.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(292,'20260105_000012_abc012_0','assistant','Answer 62: roses.',NULL,NULL,NULL,NULL,1767721121.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(293,'20260105_000012_abc012_0','user','Question 63: what grows here?',NULL,NULL,NULL,NULL,1767721127.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(294,'20260105_000012_abc012_0','assistant','Answer 63: roses.',NULL,NULL,NULL,NULL,1767721130.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(295,'20260105_000012_abc012_0','user','Question 64: what grows here?',NULL,NULL,NULL,NULL,1767721136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(296,'20260105_000012_abc012_0','assistant','Answer 64: roses.',NULL,NULL,NULL,NULL,1767721139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(297,'20260105_000012_abc012_0','user','Question 65: what grows here?',NULL,NULL,NULL,NULL,1767721145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(298,'20260105_000012_abc012_0','assistant','Answer 65: roses.',NULL,NULL,NULL,NULL,1767721148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(299,'20260105_000013_abc013','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767730000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(300,'20260105_000013_abc013','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767730003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(301,'20260105_000013_abc013','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767730060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(302,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_1_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767730061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(303,'20260105_000013_abc013','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767730062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(304,'20260105_000013_abc013','tool','{"output": "rose call_1_1"}','call_1_1',NULL,'terminal',NULL,1767730062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(305,'20260105_000013_abc013','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767730063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(306,'20260105_000013_abc013','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767730120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(307,'20260105_000013_abc013','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767730123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(308,'20260105_000013_abc013','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767730180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(309,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_3_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767730181.0,NULL,'tool_calls','I look it up, 3.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(310,'20260105_000013_abc013','tool','{"output": "rose call_3_0"}','call_3_0',NULL,'terminal',NULL,1767730182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(311,'20260105_000013_abc013','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767730183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(312,'20260105_000013_abc013','user','',NULL,NULL,NULL,NULL,1767730240.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(313,'20260105_000013_abc013','assistant','Answer 4: roses.',NULL,NULL,NULL,NULL,1767730243.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(314,'20260105_000013_abc013','user','Question 5: what grows here?',NULL,NULL,NULL,NULL,1767730300.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(315,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_5_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_5_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767730301.0,NULL,'tool_calls','I look it up, 5.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(316,'20260105_000013_abc013','tool','{"output": "rose call_5_0"}','call_5_0',NULL,'terminal',NULL,1767730302.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(317,'20260105_000013_abc013','tool','{"output": "rose call_5_1"}','call_5_1',NULL,'terminal',NULL,1767730302.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(318,'20260105_000013_abc013','assistant','Answer 5: roses.',NULL,NULL,NULL,NULL,1767730303.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(319,'20260105_000013_abc013','user','Question 6: what grows here?',NULL,NULL,NULL,NULL,1767730360.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(320,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_6_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_6_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767730361.0,NULL,'tool_calls','I look it up, 6.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(321,'20260105_000013_abc013','tool','{"output": "rose call_6_0"}','call_6_0',NULL,'terminal',NULL,1767730362.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(322,'20260105_000013_abc013','tool','{"output": "rose call_6_1"}','call_6_1',NULL,'terminal',NULL,1767730362.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(323,'20260105_000013_abc013','assistant','Answer 6: roses.',NULL,NULL,NULL,NULL,1767730363.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(324,'20260105_000013_abc013','user','Question 7: what grows here?',NULL,NULL,NULL,NULL,1767730420.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(325,'20260105_000013_abc013','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767730423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(326,'20260105_000013_abc013','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767730480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(327,'20260105_000013_abc013','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767730483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(328,'20260105_000013_abc013','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767730000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(329,'20260105_000013_abc013','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767730003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(330,'20260105_000013_abc013','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 7: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 23 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767730420.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(331,'20260105_000013_abc013','assistant','Answer 7: roses.',NULL,NULL,NULL,NULL,1767730423.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(332,'20260105_000013_abc013','user','Question 8: what grows here?',NULL,NULL,NULL,NULL,1767730480.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(333,'20260105_000013_abc013','assistant','Answer 8: roses.',NULL,NULL,NULL,NULL,1767730483.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(334,'20260105_000013_abc013','user','Question 70: what grows here?',NULL,NULL,NULL,NULL,1767731000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(335,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_70_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767731001.0,NULL,'tool_calls','I look it up, 70.',NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(336,'20260105_000013_abc013','tool','{"output": "rose call_70_0"}','call_70_0',NULL,'terminal',NULL,1767731002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(337,'20260105_000013_abc013','assistant','Answer 70: roses.',NULL,NULL,NULL,NULL,1767731003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(338,'20260105_000013_abc013','user','Question 80: what grows here?',NULL,NULL,NULL,NULL,1767731100.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(339,'20260105_000013_abc013','assistant','Answer 80: roses.',NULL,NULL,NULL,NULL,1767731103.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(340,'20260105_000013_abc013','user','Question 81: what grows here?',NULL,NULL,NULL,NULL,1767731109.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(341,'20260105_000013_abc013','assistant','Answer 81: roses.',NULL,NULL,NULL,NULL,1767731112.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(342,'20260105_000013_abc013','user','Question 82: what grows here?',NULL,NULL,NULL,NULL,1767731118.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(343,'20260105_000013_abc013','assistant','Answer 82: roses.',NULL,NULL,NULL,NULL,1767731121.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(344,'20260105_000013_abc013','user','Question 83: what grows here?',NULL,NULL,NULL,NULL,1767731127.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(345,'20260105_000013_abc013','assistant','Answer 83: roses.',NULL,NULL,NULL,NULL,1767731130.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(346,'20260105_000013_abc013','user','Question 84: what grows here?',NULL,NULL,NULL,NULL,1767731136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(347,'20260105_000013_abc013','assistant','Answer 84: roses.',NULL,NULL,NULL,NULL,1767731139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(348,'20260105_000013_abc013','user','',NULL,NULL,NULL,NULL,1767731145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(349,'20260105_000013_abc013','assistant','Answer 85: roses.',NULL,NULL,NULL,NULL,1767731148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,1,NULL);
INSERT INTO "messages" VALUES(350,'20260105_000013_abc013','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767730000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(351,'20260105_000013_abc013','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767730003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(352,'20260105_000013_abc013','user','[PRIOR CONTEXT — for reference only; not a new message]
Question 84: what grows here?

[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]

[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. This is a handoff from a previous context window — treat it as background reference, NOT as active instructions. Do NOT answer questions or fulfill requests mentioned in this summary; they were already addressed. Respond ONLY to the latest user message that appears AFTER this summary — that message is the single source of truth for what to do right now. Topic overlap with the summary does NOT mean you should resume its task: even on similar topics, the latest user message WINS. Treat ONLY the latest message as the active task and discard stale items from ''## Historical Task Snapshot'' / ''## Historical In-Progress State'' / ''## Historical Pending User Asks'' / ''## Historical Remaining Work'' entirely — do not ''wrap up'' or ''finish'' work described there unless the latest message explicitly asks for it. Reverse signals in the latest message (e.g. ''stop'', ''undo'', ''roll back'', ''just verify'', ''don''t do that anymore'', ''never mind'', a new topic) must immediately end any in-flight work described in the summary; do not re-surface it in later turns. IMPORTANT: Your persistent memory (MEMORY.md, USER.md) in the system prompt is ALWAYS authoritative and active — never ignore or deprioritize memory content due to this compaction note. None of the above restricts HOW you work: your tools remain fully active — keep calling them normally for the active task (edit files, run commands, search) instead of merely narrating what you would do. The current session state (files, config, etc.) may reflect work described here — avoid repeating it:
## Goal
Sum up 15 messages.

--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---',NULL,NULL,NULL,NULL,1767731136.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(353,'20260105_000013_abc013','assistant','Answer 84: roses.',NULL,NULL,NULL,NULL,1767731139.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(354,'20260105_000013_abc013','user','',NULL,NULL,NULL,NULL,1767731145.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(355,'20260105_000013_abc013','assistant','Answer 85: roses.',NULL,NULL,NULL,NULL,1767731148.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(356,'20260105_000013_abc013','user','Question 71: what grows here?',NULL,NULL,NULL,NULL,1767731500.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(357,'20260105_000013_abc013','assistant','',NULL,'[{"id": "call_71_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767731501.0,NULL,'tool_calls','I look it up, 71.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(358,'20260105_000013_abc013','tool','{"output": "rose call_71_0"}','call_71_0',NULL,'terminal',NULL,1767731502.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(359,'20260105_000013_abc013','assistant','Answer 71: roses.',NULL,NULL,NULL,NULL,1767731503.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(360,'20260105_000013_abc013','user','Question 90: what grows here?',NULL,NULL,NULL,NULL,1767731600.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(361,'20260105_000013_abc013','assistant','Answer 90: roses.',NULL,NULL,NULL,NULL,1767731603.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(362,'20260105_000013_abc013','user','Question 91: what grows here?',NULL,NULL,NULL,NULL,1767731609.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(363,'20260105_000013_abc013','assistant','Answer 91: roses.',NULL,NULL,NULL,NULL,1767731612.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(364,'20260105_000013_abc013','user','Question 92: what grows here?',NULL,NULL,NULL,NULL,1767731618.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(365,'20260105_000013_abc013','assistant','Answer 92: roses.',NULL,NULL,NULL,NULL,1767731621.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(366,'20260105_000013_abc013','user','Question 93: what grows here?',NULL,NULL,NULL,NULL,1767731627.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(367,'20260105_000013_abc013','assistant','Answer 93: roses.',NULL,NULL,NULL,NULL,1767731630.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(368,'20260105_000013_abc013','user','',NULL,NULL,NULL,NULL,1767731636.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(369,'20260105_000013_abc013','assistant','Answer 94: roses.',NULL,NULL,NULL,NULL,1767731639.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(370,'20260105_000013_abc013','user','Question 95: what grows here?',NULL,NULL,NULL,NULL,1767731645.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(371,'20260105_000013_abc013','assistant','Answer 95: roses.',NULL,NULL,NULL,NULL,1767731648.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(372,'20260105_000014_abc014','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767740000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(373,'20260105_000014_abc014','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767740001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(374,'20260105_000014_abc014','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767740002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(375,'20260105_000014_abc014','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767740003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(376,'20260105_000014_abc014','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767740060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(377,'20260105_000014_abc014','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767740061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(378,'20260105_000014_abc014','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767740062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(379,'20260105_000014_abc014','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767740063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(380,'20260105_000014_abc014','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767740120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(381,'20260105_000014_abc014','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_2_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767740121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(382,'20260105_000014_abc014','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767740122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(383,'20260105_000014_abc014','tool','{"output": "rose call_2_1"}','call_2_1',NULL,'terminal',NULL,1767740122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(384,'20260105_000014_abc014','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767740123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO "messages" VALUES(385,'20260105_000014_abc014','user','Question 90: what grows here?',NULL,NULL,NULL,NULL,1767740900.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(386,'20260105_000014_abc014','assistant','Answer 90: roses.',NULL,NULL,NULL,NULL,1767740903.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(387,'20260105_000015_abc015','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767750000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(388,'20260105_000015_abc015','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767750003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(389,'20260105_000015_abc015','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767750060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(390,'20260105_000015_abc015','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767750063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(391,'20260105_000015_abc015','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767750120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(392,'20260105_000015_abc015','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767750121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(393,'20260105_000015_abc015','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767750122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(394,'20260105_000015_abc015','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767750123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(395,'20260105_000015_abc015','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767750180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(396,'20260105_000015_abc015','assistant','',NULL,'[{"id": "call_3_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_3_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767750181.0,NULL,'tool_calls','I look it up, 3.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(397,'20260105_000015_abc015','tool','{"output": "rose call_3_0"}','call_3_0',NULL,'terminal',NULL,1767750182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(398,'20260105_000015_abc015','tool','{"output": "rose call_3_1"}','call_3_1',NULL,'terminal',NULL,1767750182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(399,'20260105_000015_abc015','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767750183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(400,'20260105_000015_abc015_b','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767750000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(401,'20260105_000015_abc015_b','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767750003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(402,'20260105_000015_abc015_b','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767750060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(403,'20260105_000015_abc015_b','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767750063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(404,'20260105_000015_abc015_b','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767750120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(405,'20260105_000015_abc015_b','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767750121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(406,'20260105_000015_abc015_b','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767750122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(407,'20260105_000015_abc015_b','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767750123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(408,'20260105_000015_abc015_b','user','Question 3: what grows here?',NULL,NULL,NULL,NULL,1767750180.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(409,'20260105_000015_abc015_b','assistant','',NULL,'[{"id": "call_3_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_3_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767750181.0,NULL,'tool_calls','I look it up, 3.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(410,'20260105_000015_abc015_b','tool','{"output": "rose call_3_0"}','call_3_0',NULL,'terminal',NULL,1767750182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(411,'20260105_000015_abc015_b','tool','{"output": "rose call_3_1"}','call_3_1',NULL,'terminal',NULL,1767750182.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(412,'20260105_000015_abc015_b','assistant','Answer 3: roses.',NULL,NULL,NULL,NULL,1767750183.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(413,'20260105_000015_abc015_b','user','Question 95: what grows here?',NULL,NULL,NULL,NULL,1767750950.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(414,'20260105_000015_abc015_b','assistant','Answer 95: roses.',NULL,NULL,NULL,NULL,1767750953.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(415,'20260105_000016_abc016','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767760000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(416,'20260105_000016_abc016','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767760003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(417,'20260105_000016_abc016','user','Question 96: what grows here?',NULL,NULL,NULL,NULL,1767760960.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(418,'20260105_000016_abc016','assistant','',NULL,'[{"id": "call_96_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_96_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767760961.0,NULL,'tool_calls','I look it up, 96.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(419,'20260105_000016_abc016','tool','{"output": "rose call_96_0"}','call_96_0',NULL,'terminal',NULL,1767760962.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(420,'20261201_021056_c9fda2d4','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767770000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(421,'20261201_021056_c9fda2d4','assistant','',NULL,'[{"id": "call_0_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_0_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767770001.0,NULL,'tool_calls','I look it up, 0.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(422,'20261201_021056_c9fda2d4','tool','{"output": "rose call_0_0"}','call_0_0',NULL,'terminal',NULL,1767770002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(423,'20261201_021056_c9fda2d4','tool','{"output": "rose call_0_1"}','call_0_1',NULL,'terminal',NULL,1767770002.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(424,'20261201_021056_c9fda2d4','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767770003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(425,'20261201_021056_c9fda2d4','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767770060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(426,'20261201_021056_c9fda2d4','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767770061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(427,'20261201_021056_c9fda2d4','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767770062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(428,'20261201_021056_c9fda2d4','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767770063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(429,'20261201_021056_c9fda2d4','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767770120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(430,'20261201_021056_c9fda2d4','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_2_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767770121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(431,'20261201_021056_c9fda2d4','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767770122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(432,'20261201_021056_c9fda2d4','tool','{"output": "rose call_2_1"}','call_2_1',NULL,'terminal',NULL,1767770122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(433,'20261201_021056_c9fda2d4','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767770123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(434,'20261201_021056_b890c336','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767780000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(435,'20261201_021056_b890c336','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767780003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(436,'20261201_021056_b890c336','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767780060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(437,'20261201_021056_b890c336','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_1_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767780061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(438,'20261201_021056_b890c336','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767780062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(439,'20261201_021056_b890c336','tool','{"output": "rose call_1_1"}','call_1_1',NULL,'terminal',NULL,1767780062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(440,'20261201_021056_b890c336','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767780063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(441,'20261201_021056_b890c336','user','Question 2: what grows here?',NULL,NULL,NULL,NULL,1767780120.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(442,'20261201_021056_b890c336','assistant','',NULL,'[{"id": "call_2_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767780121.0,NULL,'tool_calls','I look it up, 2.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(443,'20261201_021056_b890c336','tool','{"output": "rose call_2_0"}','call_2_0',NULL,'terminal',NULL,1767780122.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(444,'20261201_021056_b890c336','assistant','Answer 2: roses.',NULL,NULL,NULL,NULL,1767780123.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(445,'20260105_000019_abc019','user','Question 0: what grows here?',NULL,NULL,NULL,NULL,1767790000.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(446,'20260105_000019_abc019','assistant','Answer 0: roses.',NULL,NULL,NULL,NULL,1767790003.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(447,'20260105_000019_abc019','user','Question 1: what grows here?',NULL,NULL,NULL,NULL,1767790060.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(448,'20260105_000019_abc019','assistant','',NULL,'[{"id": "call_1_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}, {"id": "call_1_1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767790061.0,NULL,'tool_calls','I look it up, 1.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(449,'20260105_000019_abc019','tool','{"output": "rose call_1_0"}','call_1_0',NULL,'terminal',NULL,1767790062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(450,'20260105_000019_abc019','tool','{"output": "rose call_1_1"}','call_1_1',NULL,'terminal',NULL,1767790062.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(451,'20260105_000019_abc019','assistant','Answer 1: roses.',NULL,NULL,NULL,NULL,1767790063.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(452,'20260105_000019_abc019_d','user','Question 97: what grows here?',NULL,NULL,NULL,NULL,1767790970.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(453,'20260105_000019_abc019_d','assistant','',NULL,'[{"id": "call_97_0", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\": \"ls\"}"}}]',NULL,NULL,1767790971.0,NULL,'tool_calls','I look it up, 97.',NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(454,'20260105_000019_abc019_d','tool','{"output": "rose call_97_0"}','call_97_0',NULL,'terminal',NULL,1767790972.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
INSERT INTO "messages" VALUES(455,'20260105_000019_abc019_d','assistant','Answer 97: roses.',NULL,NULL,NULL,NULL,1767790973.0,NULL,'stop',NULL,NULL,NULL,NULL,NULL,NULL,0,1,0,NULL);
CREATE TABLE schema_version (
    version INTEGER NOT NULL
);
INSERT INTO "schema_version" VALUES(22);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    user_id TEXT,
    session_key TEXT,
    chat_id TEXT,
    chat_type TEXT,
    thread_id TEXT,
    display_name TEXT,
    origin_json TEXT,
    expiry_finalized INTEGER DEFAULT 0,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT,
    parent_session_id TEXT,
    started_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0,
    reasoning_tokens INTEGER DEFAULT 0,
    cwd TEXT,
    git_branch TEXT,
    git_repo_root TEXT,
    billing_provider TEXT,
    billing_base_url TEXT,
    billing_mode TEXT,
    estimated_cost_usd REAL,
    actual_cost_usd REAL,
    cost_status TEXT,
    cost_source TEXT,
    pricing_version TEXT,
    title TEXT,
    api_call_count INTEGER DEFAULT 0,
    handoff_state TEXT,
    handoff_platform TEXT,
    handoff_error TEXT,
    compression_failure_cooldown_until REAL,
    compression_failure_error TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0,
    profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
INSERT INTO "sessions" VALUES('20260105_000000_abc000','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.79609105472887253763e+09,NULL,NULL,6,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 0',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000001_abc001','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105476048159597e+09,NULL,NULL,7,2,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 1',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000002_abc002','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105479652547839e+09,1.79609105490923714638e+09,'compression',26,5,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 2',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000002_abc002_0','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,'20260105_000002_abc002',1.79609105491236591342e+09,1.7960910550172402858e+09,'compression',23,3,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000002_abc002_0_1','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,'20260105_000002_abc002_0',1.79609105501946926118e+09,1.79609105510113501551e+09,'compression',22,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000002_abc002_0_1_2','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,'20260105_000002_abc002_0_1',1.79609105510440754892e+09,NULL,NULL,22,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000003_abc003','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.79609105519633865358e+09,NULL,NULL,22,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 3',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000004_abc004','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105548444604872e+09,NULL,NULL,4,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 4',0,NULL,NULL,NULL,NULL,NULL,0,NULL,1,0);
INSERT INTO "sessions" VALUES('20260105_000005_abc005','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105550843787188e+09,NULL,NULL,2,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 5',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000005_abc005_b','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5','{"_branched_from": "20260105_000005_abc005"}',NULL,'20260105_000005_abc005',1.79609105552441501623e+09,NULL,NULL,4,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000006_abc006','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.79609105554842209814e+09,NULL,NULL,12,4,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 6',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20261201_021055_5d1f4a87','telegram','1007','agent:main:telegram:dm:1007','1007','dm',NULL,'Garden','{"platform": "telegram", "chat_id": "1007", "chat_name": "Garden", "chat_type": "dm", "user_id": "1007", "user_name": "Ada", "thread_id": null, "chat_topic": null}',0,NULL,NULL,NULL,NULL,1.79609105562051677706e+09,NULL,NULL,6,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20261201_021055_d8b41be4','telegram','1008','agent:main:telegram:group:-1008:7','-1008','group','7','Garden','{"platform": "telegram", "chat_id": "-1008", "chat_name": "Garden", "chat_type": "group", "user_id": "1008", "user_name": "Ada", "thread_id": "7", "chat_topic": null}',0,NULL,NULL,NULL,NULL,1.79609105566443943979e+09,NULL,NULL,6,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 8',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000009_abc009','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.7960910556964082718e+09,NULL,NULL,10,4,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 9',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000009_abc009_d','subagent',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5','{"_delegate_from": "20260105_000009_abc009"}',NULL,'20260105_000009_abc009',1.79609105574039840699e+09,NULL,NULL,4,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000010_abc010','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105576046895985e+09,NULL,NULL,6,0,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 10',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000011_abc011','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105579060411451e+09,NULL,NULL,15,4,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 11',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000012_abc012','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.79609105586440539366e+09,1.7960910559809434414e+09,'compression',30,7,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 12',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000012_abc012_0','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,'20260105_000012_abc012',1.79609105598446226119e+09,NULL,NULL,24,2,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000013_abc013','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105608441710476e+09,NULL,NULL,22,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 13',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000014_abc014','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.79609105634045386314e+09,NULL,NULL,15,4,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 14',0,NULL,NULL,NULL,NULL,NULL,0,NULL,1,0);
INSERT INTO "sessions" VALUES('20260105_000015_abc015','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,NULL,NULL,1.79609105641642594333e+09,NULL,NULL,13,3,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 15',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000015_abc015_b','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5','{"_branched_from": "20260105_000015_abc015"}',NULL,'20260105_000015_abc015',1.79609105647360205648e+09,NULL,NULL,15,3,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000016_abc016','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.7960910565164334774e+09,NULL,NULL,5,2,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 16',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20261201_021056_c9fda2d4','discord','1017','agent:main:discord:dm:1017','1017','dm',NULL,'Garden','{"platform": "discord", "chat_id": "1017", "chat_name": "Garden", "chat_type": "dm", "user_id": "1017", "user_name": "Ada", "thread_id": null, "chat_topic": null}',0,NULL,NULL,NULL,NULL,1.79609105656050014494e+09,NULL,NULL,14,5,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20261201_021056_b890c336','discord','1018','agent:main:discord:group:-10018:1018','-10018','group',NULL,'Garden','{"platform": "discord", "chat_id": "-10018", "chat_name": "Garden", "chat_type": "group", "user_id": "1018", "user_name": "Ada", "thread_id": null, "chat_topic": null}',0,NULL,NULL,NULL,NULL,1.7960910566444077492e+09,NULL,NULL,11,3,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 18',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000019_abc019','cli',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5',NULL,'You are Hermes.',NULL,1.7960910567003545761e+09,NULL,NULL,7,2,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'Garden 19',0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
INSERT INTO "sessions" VALUES('20260105_000019_abc019_d','subagent',NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'openai/gpt-5','{"_delegate_from": "20260105_000019_abc019"}',NULL,'20260105_000019_abc019',1.7960910567404456138e+09,NULL,NULL,4,1,0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0,NULL,0,0);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',455);
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E2034207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 24;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203835207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 105;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E2034207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 118;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203835207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 152;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203835207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 158;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203934207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 172;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E2034207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 255;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E2034207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 312;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203835207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 348;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203835207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 354;
UPDATE messages SET content = CAST(x'006A736F6E3A5B7B2274797065223A202274657874222C202274657874223A20225175657374696F6E203934207769746820612070696374757265227D2C207B2274797065223A2022696D6167655F75726C222C2022696D6167655F75726C223A207B2275726C223A2022646174613A696D6167652F706E673B6261736536342C6956424F5277304B47676F414141414E5355684555674141414145414141414243415941414141664663534A4141414144556C4551565234326D4E6B2B4D39514477414468674741576A5239617741414141424A52553545726B4A6767673D3D227D7D5D' AS TEXT) WHERE id = 368;
COMMIT;