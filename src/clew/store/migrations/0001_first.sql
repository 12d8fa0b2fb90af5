-- Lists of more than two values are written with OR: for each IN of that length SQLite fills a table
-- of its own, at each write.

-- The thread of talk. What moves often (owner, last seq) is in lease, so that a turn never writes here.
CREATE TABLE conversation (
    id          TEXT PRIMARY KEY,
    scope       TEXT NOT NULL CHECK (scope <> ''),
    title       TEXT CHECK (title <> ''),
    -- Who gave the title: an automatic one never replaces a person's.
    titled_by   TEXT CHECK (titled_by IN ('person', 'model')),
    -- Opened for a caller that resends its whole history: left out of lists unless asked for.
    adhoc       BIGINT NOT NULL DEFAULT 0 CHECK (adhoc IN (0, 1)),
    -- Where a branch or an import came from: the conversation (or file) and its seq.
    origin      TEXT,
    origin_seq  BIGINT,
    created_at  BIGINT NOT NULL,
    -- Set when a delete began: from then on nothing may be added, rows go in slices.
    deleting_at BIGINT,
    CHECK ((title IS NULL) = (titled_by IS NULL)),
    CHECK (origin IS NOT NULL OR origin_seq IS NULL)
);
CREATE UNIQUE INDEX conversation_title ON conversation (scope, title) WHERE title IS NOT NULL;

-- One chain per conversation: one first session, one successor each, one of them open at most.
CREATE TABLE session (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    predecessor     TEXT,
    opened_at       BIGINT NOT NULL,
    opened_by       TEXT NOT NULL CHECK (opened_by <> ''),
    -- The last seq before it opened: its own entries are those above.
    opened_seq      BIGINT NOT NULL CHECK (opened_seq >= 0),
    -- The id of the operation that opened it: repeating that operation finds this row.
    operation       TEXT NOT NULL UNIQUE,
    -- Rendered once when the session opens; passed to the model as stored.
    instructions    TEXT,
    ended_at        BIGINT,
    end_reason      TEXT CHECK (end_reason <> ''),
    UNIQUE (conversation_id, id),
    FOREIGN KEY (conversation_id, predecessor) REFERENCES session (conversation_id, id),
    CHECK (predecessor <> id),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
CREATE UNIQUE INDEX session_open ON session (conversation_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX session_successor ON session (predecessor) WHERE predecessor IS NOT NULL;
CREATE UNIQUE INDEX session_first ON session (conversation_id) WHERE predecessor IS NULL;

CREATE TABLE base_item (
    session_id TEXT NOT NULL REFERENCES session (id),
    position   BIGINT NOT NULL CHECK (position >= 0),
    first_seq  BIGINT CHECK (first_seq > 0),
    last_seq   BIGINT,
    format     TEXT,
    message    TEXT,
    PRIMARY KEY (session_id, position),
    CHECK ((first_seq IS NULL) = (last_seq IS NULL)),
    CHECK ((format IS NULL) = (message IS NULL)),
    CHECK ((first_seq IS NULL) <> (message IS NULL)),
    CHECK (last_seq >= first_seq)
);

-- The one place that says which session is current.
CREATE TABLE head (
    conversation_id TEXT PRIMARY KEY REFERENCES conversation (id),
    session_id      TEXT NOT NULL UNIQUE,
    FOREIGN KEY (conversation_id, session_id) REFERENCES session (conversation_id, id)
);

CREATE TABLE route (
    key             TEXT PRIMARY KEY CHECK (key <> ''),
    conversation_id TEXT NOT NULL REFERENCES conversation (id) DEFERRABLE INITIALLY DEFERRED,
    moved_at        BIGINT NOT NULL
);
CREATE INDEX route_conversation ON route (conversation_id);

-- One row per process that ever wrote; whether it lives is proved outside the database's rows.
CREATE TABLE owner (
    id         TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    pid        BIGINT NOT NULL,
    role       TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT
);

-- The right to write to a conversation, and the counter that the right hands out.
CREATE TABLE lease (
    conversation_id TEXT PRIMARY KEY REFERENCES conversation (id),
    owner           TEXT,
    fence           BIGINT NOT NULL DEFAULT 0 CHECK (fence >= 0),
    expires_at      BIGINT,
    last_seq        BIGINT NOT NULL DEFAULT 0 CHECK (last_seq >= 0),
    updated_at      BIGINT NOT NULL,
    CHECK ((owner IS NULL) = (expires_at IS NULL))
);
CREATE INDEX lease_updated ON lease (updated_at);
CREATE INDEX lease_owner ON lease (owner) WHERE owner IS NOT NULL;

CREATE TABLE turn (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    state           TEXT NOT NULL CHECK (state = 'running' OR state = 'waiting' OR state = 'done'),
    outcome         TEXT
        CHECK (outcome = 'answered' OR outcome = 'failed' OR outcome = 'cancelled'),
    -- What was told to the person, and the machine-readable kind of the failure.
    error           TEXT,
    error_code      TEXT,
    -- What somebody without the lease asked of its holder: stop, interrupt, rollback, delete, cancel.
    stop            TEXT
        CHECK (stop = 'stop' OR stop = 'interrupt' OR stop = 'rollback' OR stop = 'delete'
               OR stop = 'cancel'),
    -- The first entry of the turn.
    first_seq       BIGINT NOT NULL CHECK (first_seq > 0),
    steps           BIGINT NOT NULL DEFAULT 0 CHECK (steps >= 0),
    -- Resumes after a lost owner since the last entry, and the last seq at the last resume.
    resumes         BIGINT NOT NULL DEFAULT 0 CHECK (resumes >= 0),
    resumed_seq     BIGINT,
    -- Tries of output and tool validation per name, as JSON: counted with the turn, not with a run.
    retries         TEXT NOT NULL DEFAULT '{}',
    model           TEXT,
    started_at      BIGINT NOT NULL,
    finished_at     BIGINT,
    UNIQUE (conversation_id, id),
    CHECK ((state = 'done') = (outcome IS NOT NULL)),
    CHECK ((state = 'done') = (finished_at IS NOT NULL)),
    CHECK (error IS NULL OR outcome IS NOT NULL)
);
CREATE UNIQUE INDEX turn_unfinished ON turn (conversation_id) WHERE state <> 'done';
CREATE INDEX turn_started ON turn (conversation_id, first_seq);

-- What was said: append-only, numbered without gaps, each row chained to the one before.
CREATE TABLE entry (
    n               @ID,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    seq             BIGINT NOT NULL CHECK (seq > 0),
    id              TEXT NOT NULL UNIQUE,
    session_id      TEXT NOT NULL,
    turn_id         TEXT,
    kind            TEXT NOT NULL CHECK (kind = 'message' OR kind = 'attempt' OR kind = 'event'),
    role            TEXT CHECK (role = 'user' OR role = 'assistant' OR role = 'tool'),
    text            TEXT NOT NULL,
    -- JSON lists of tool call ids: those that this message asks for, those that it answers.
    calls           TEXT NOT NULL DEFAULT '[]',
    answers         TEXT NOT NULL DEFAULT '[]',
    format          TEXT NOT NULL CHECK (format <> ''),
    message         TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    prev_hash       @BYTES NOT NULL,
    hash            @BYTES NOT NULL,
    UNIQUE (conversation_id, seq),
    FOREIGN KEY (conversation_id, session_id) REFERENCES session (conversation_id, id),
    FOREIGN KEY (conversation_id, turn_id) REFERENCES turn (conversation_id, id),
    CHECK ((kind = 'message') <= (role IS NOT NULL))
);

-- What was accepted: stored before it is acknowledged, consumed once, with one outcome.
CREATE TABLE inbox (
    n               @ID,
    id              TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    route           TEXT,
    kind            TEXT NOT NULL
        CHECK (kind = 'message' OR kind = 'command' OR kind = 'expiry' OR kind = 'completion'),
    text            TEXT NOT NULL,
    -- JSON: sender, attachments, arguments, reply address.
    payload         TEXT NOT NULL DEFAULT '{}',
    double_text     TEXT NOT NULL
        CHECK (double_text = 'queue' OR double_text = 'steer' OR double_text = 'collect'
               OR double_text = 'interrupt' OR double_text = 'rollback' OR double_text = 'reject'),
    received_at     BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    -- Its files are being fetched: not due before they are there, or this time is over.
    held_until      BIGINT,
    outcome         TEXT
        CHECK (outcome = 'turn' OR outcome = 'merged' OR outcome = 'steered'
               OR outcome = 'executed' OR outcome = 'cancelled' OR outcome = 'rejected'),
    turn_id         TEXT,
    step            BIGINT,
    -- Why it was cancelled or rejected, or what the command answered.
    note            TEXT,
    resolved_at     BIGINT,
    FOREIGN KEY (conversation_id, turn_id) REFERENCES turn (conversation_id, id),
    CHECK ((outcome IS NULL) = (resolved_at IS NULL)),
    -- COALESCE: a check whose value is NULL would pass.
    CHECK ((turn_id IS NOT NULL)
        = COALESCE(outcome = 'turn' OR outcome = 'merged' OR outcome = 'steered', FALSE)),
    CHECK ((step IS NOT NULL) = (COALESCE(outcome, '') = 'steered'))
);
CREATE INDEX inbox_open ON inbox (conversation_id, n) WHERE outcome IS NULL;
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
-- Commands that have no answer yet.
CREATE INDEX inbox_command ON inbox (n) WHERE kind = 'command' AND note IS NULL;

-- sha256 of (channel, account, platform event id): outlives the conversation.
CREATE TABLE dedupe (
    key             @BYTES PRIMARY KEY,
    inbox_id        TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    expires_at      BIGINT
);
CREATE INDEX dedupe_conversation ON dedupe (conversation_id) WHERE expires_at IS NULL;
CREATE INDEX dedupe_expiry ON dedupe (expires_at) WHERE expires_at IS NOT NULL;

-- Tool calls: the intent before, the result after.
CREATE TABLE journal (
    turn_id         TEXT NOT NULL,
    step            BIGINT NOT NULL CHECK (step > 0),
    call_id         TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    position        BIGINT NOT NULL,
    tool            TEXT NOT NULL,
    args            TEXT NOT NULL,
    effect          TEXT NOT NULL
        CHECK (effect = 'pure' OR effect = 'idempotent' OR effect = 'once' OR effect = 'ask'),
    -- How often it was started: more than once only where the effect allows it.
    runs            BIGINT NOT NULL DEFAULT 1 CHECK (runs >= 1),
    status          TEXT
        CHECK (status = 'ok' OR status = 'error' OR status = 'retry' OR status = 'denied'
               OR status = 'cancelled' OR status = 'unknown'),
    format          TEXT,
    result          TEXT,
    started_at      BIGINT NOT NULL,
    finished_at     BIGINT,
    PRIMARY KEY (turn_id, step, call_id),
    FOREIGN KEY (conversation_id, turn_id) REFERENCES turn (conversation_id, id),
    CHECK ((status IS NULL) = (result IS NULL)),
    CHECK ((status IS NULL) = (finished_at IS NULL)),
    CHECK ((result IS NULL) = (format IS NULL))
);

CREATE TABLE approval (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    turn_id         TEXT NOT NULL,
    step            BIGINT NOT NULL,
    call_id         TEXT NOT NULL,
    tool            TEXT NOT NULL,
    args            TEXT NOT NULL,
    -- The route that may answer it.
    route           TEXT,
    state           TEXT NOT NULL
        CHECK (state = 'open' OR state = 'approved' OR state = 'denied' OR state = 'expired'),
    asked_at        BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    answered_at     BIGINT,
    answered_by     TEXT,
    note            TEXT,
    UNIQUE (turn_id, step, call_id),
    FOREIGN KEY (conversation_id, turn_id) REFERENCES turn (conversation_id, id),
    CHECK ((state = 'open') = (answered_at IS NULL))
);
CREATE INDEX approval_open ON approval (conversation_id) WHERE state = 'open';
CREATE INDEX approval_expiry ON approval (expires_at) WHERE state = 'open';

CREATE TABLE delivery (
    n               @ID,
    id              TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    turn_id         TEXT,
    route           TEXT NOT NULL,
    -- The entry that it carries, if it carries one.
    seq             BIGINT,
    kind            TEXT NOT NULL
        CHECK (kind = 'answer' OR kind = 'text' OR kind = 'notice' OR kind = 'approval'),
    body            TEXT NOT NULL,
    state           TEXT NOT NULL
        CHECK (state = 'pending' OR state = 'sending' OR state = 'delivered' OR state = 'unknown'
               OR state = 'failed'),
    attempts        BIGINT NOT NULL DEFAULT 0,
    -- Not before: a platform's wait, kept over restarts.
    due_at          BIGINT NOT NULL,
    owner           TEXT,
    -- The id that its owner made for claiming it: a claim whose answer was lost is repeated with it.
    claim           TEXT,
    error           TEXT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    FOREIGN KEY (conversation_id, turn_id) REFERENCES turn (conversation_id, id),
    CHECK ((state = 'sending') <= (owner IS NOT NULL))
);
CREATE INDEX delivery_open ON delivery (route, n) WHERE state NOT IN ('delivered', 'failed');
CREATE INDEX delivery_conversation ON delivery (conversation_id);

-- The parts of a delivery, in the platform's units.
CREATE TABLE delivery_chunk (
    delivery_id  TEXT NOT NULL REFERENCES delivery (id),
    position     BIGINT NOT NULL CHECK (position >= 0),
    body         TEXT NOT NULL,
    state        TEXT NOT NULL
        CHECK (state = 'pending' OR state = 'sending' OR state = 'delivered' OR state = 'unknown'
               OR state = 'failed'),
    platform_id  TEXT,
    -- How often it was sent once more after an unknown outcome: the person may see it twice.
    repeated     BIGINT NOT NULL DEFAULT 0 CHECK (repeated >= 0),
    PRIMARY KEY (delivery_id, position),
    CHECK ((state = 'delivered') >= (platform_id IS NOT NULL))
);

-- The message in which an answer is shown while it is made: the answer takes its place.
CREATE TABLE preview (
    route       TEXT PRIMARY KEY,
    turn_id     TEXT NOT NULL,
    platform_id TEXT NOT NULL,
    shown_at    BIGINT NOT NULL
);

-- A platform's wait, kept over restarts: for one chat, or ('') for the whole account.
CREATE TABLE hold (
    channel     TEXT NOT NULL,
    account     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    held_until  BIGINT NOT NULL,
    PRIMARY KEY (channel, account, chat)
);

CREATE TABLE client (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    owner           TEXT NOT NULL,
    front           TEXT NOT NULL,
    attached_at     BIGINT NOT NULL
);
CREATE INDEX client_conversation ON client (conversation_id);

-- Named rights that are not a conversation's lease: compression, a channel account, maintenance.
CREATE TABLE lock (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- What happened to a caller's key: joined while it runs, answered the same afterwards.
CREATE TABLE idempotency (
    key             @BYTES PRIMARY KEY,
    body            @BYTES NOT NULL,
    inbox_id        TEXT,
    conversation_id TEXT,
    status          BIGINT,
    answer          TEXT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    CHECK ((status IS NULL) = (answer IS NULL))
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

-- What a client that resends all history holds of a conversation when it goes on with it.
CREATE TABLE resent (
    conversation_id TEXT PRIMARY KEY REFERENCES conversation (id),
    -- sha256 of the caller and of everything that it had asked, its newest message included.
    key             @BYTES NOT NULL,
    -- The input with that message.
    inbox_id        TEXT NOT NULL
);
CREATE INDEX resent_key ON resent (key);

-- Asked for before its conversation existed, or not written for a passing reason.
CREATE TABLE pending_title (
    conversation_id TEXT PRIMARY KEY,
    title           TEXT NOT NULL,
    asked_at        BIGINT NOT NULL
);

-- Why compaction waits (cool-down) or is off (breaker); handed on to the successor.
CREATE TABLE compaction (
    session_id     TEXT PRIMARY KEY REFERENCES session (id),
    cooldown_until BIGINT,
    failures       BIGINT NOT NULL DEFAULT 0,
    stalls         BIGINT NOT NULL DEFAULT 0,
    -- JSON list of the times of recent compactions.
    fired          TEXT NOT NULL DEFAULT '[]',
    told           BIGINT NOT NULL DEFAULT 0 CHECK (told IN (0, 1))
);

-- One row per model request that was answered, or that failed and was counted.
CREATE TABLE usage (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    turn_id         TEXT,
    step            BIGINT,
    purpose         TEXT NOT NULL,
    model           TEXT NOT NULL,
    input_tokens    BIGINT NOT NULL DEFAULT 0,
    cached_tokens   BIGINT NOT NULL DEFAULT 0,
    output_tokens   BIGINT NOT NULL DEFAULT 0,
    -- Millionths of a US dollar, where the price is known.
    cost_micros     BIGINT,
    created_at      BIGINT NOT NULL
);
CREATE INDEX usage_conversation ON usage (conversation_id, created_at);
CREATE INDEX usage_created ON usage (created_at);

CREATE TABLE blob (
    sha256     @BYTES PRIMARY KEY,
    size       BIGINT NOT NULL CHECK (size >= 0),
    media_type TEXT NOT NULL,
    bytes      @BYTES NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE attachment (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversation (id),
    inbox_id        TEXT,
    seq             BIGINT,
    sha256          @BYTES NOT NULL REFERENCES blob (sha256),
    name            TEXT NOT NULL,
    media_type      TEXT NOT NULL
);
CREATE INDEX attachment_conversation ON attachment (conversation_id);
CREATE INDEX attachment_blob ON attachment (sha256);

CREATE TABLE pairing (
    channel     TEXT NOT NULL,
    account     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    -- As they called themselves when they asked, and where: to tell them of their pairing.
    name        TEXT NOT NULL DEFAULT '',
    route       TEXT,
    state       TEXT NOT NULL
        CHECK (state = 'asked' OR state = 'paired' OR state = 'removed' OR state = 'blocked'),
    -- The code that they were shown: it approves them once, until then.
    code_hash   @BYTES,
    -- Wrong codes that were tried while this one was open.
    tries       BIGINT NOT NULL DEFAULT 0,
    expires_at  BIGINT,
    changed_at  BIGINT NOT NULL,
    approved_by TEXT,
    PRIMARY KEY (channel, account, user_id),
    CHECK ((code_hash IS NULL) = (expires_at IS NULL))
);
CREATE INDEX pairing_code ON pairing (code_hash) WHERE code_hash IS NOT NULL;

-- A fact that a plugin was told: told again only if the process died before this row.
CREATE TABLE hook_mark (
    plugin  TEXT NOT NULL,
    hook    TEXT NOT NULL,
    subject TEXT NOT NULL,
    told_at BIGINT NOT NULL,
    PRIMARY KEY (subject, hook, plugin)
);

-- What remains of a deleted conversation: enough to verify an export, no content.
CREATE TABLE tombstone (
    conversation_id TEXT PRIMARY KEY,
    last_seq        BIGINT NOT NULL,
    last_hash       @BYTES NOT NULL,
    deleted_at      BIGINT NOT NULL
);

CREATE TABLE setting (
    scope TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (scope, name)
);

-- The search index: how far it has come, and whether it must be made anew from the entries.
CREATE TABLE search_state (
    one       BIGINT PRIMARY KEY CHECK (one = 1),
    -- Every message up to this n is in the index (on PostgreSQL: while it is made anew).
    indexed   BIGINT NOT NULL DEFAULT 0,
    -- PostgreSQL only: the last n when it began to be made anew; what came later is in search_todo.
    target    BIGINT NOT NULL DEFAULT 0,
    is_broken BIGINT NOT NULL DEFAULT 0 CHECK (is_broken IN (0, 1))
);
INSERT INTO search_state (one) VALUES (1);
