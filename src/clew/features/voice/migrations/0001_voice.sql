-- Transcripts of recordings: the same recording is sent to the service once in a conversation.
CREATE TABLE voice_transcript (
    conversation TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    text TEXT NOT NULL,
    model TEXT NOT NULL,
    -- How long it is, in milliseconds, where that is known.
    millis BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (conversation, sha256)
);
-- Answers that are to be spoken: wanted, making, sent, failed.
CREATE TABLE voice_speech (
    turn TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    state TEXT NOT NULL,
    error TEXT,
    at BIGINT NOT NULL
);
CREATE INDEX voice_speech_conversation ON voice_speech (conversation, at);
CREATE INDEX voice_speech_open ON voice_speech (at) WHERE state IN ('wanted', 'making');
-- What people and chats chose: on, off, auto.
CREATE TABLE voice_mode (
    scope TEXT PRIMARY KEY,
    mode TEXT NOT NULL
);
