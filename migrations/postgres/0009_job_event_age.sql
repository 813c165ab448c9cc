-- Events of jobs are found by their age, whosever they are: those of jobs long over are forgotten.
CREATE INDEX hub_job_events_age ON hub_job_events (hub_job_event_id);
