-- When retention last deleted events that a pipeline had not sent.
ALTER TABLE pipeline_lanes ADD COLUMN lost_at TIMESTAMPTZ;
CREATE INDEX pipeline_lanes_lost ON pipeline_lanes (lost_at) WHERE lost_at IS NOT NULL;
