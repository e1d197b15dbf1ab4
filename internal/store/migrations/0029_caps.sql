-- A daily cap that is reached holds a schedule back until the next day of the account.

alter table billing_accounts add column timezone text;  -- whose days caps count; null: UTC
alter table schedules add column capped_until bigint;   -- a daily cap is reached: its own slots do not run before this; null: none is
