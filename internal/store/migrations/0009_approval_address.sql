-- Where a call goes that a person is asked about, as it was shown.

alter table approvals add column address text;
