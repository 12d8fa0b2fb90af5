-- The budget of the kind of agent, where it has one; what else it is told and held to is a setting of its conversation.
ALTER TABLE delegation_child ADD COLUMN kind_tokens BIGINT;
ALTER TABLE delegation_child ADD COLUMN kind_steps BIGINT;
