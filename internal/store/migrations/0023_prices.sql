-- How a receipt came to its amount: the price of the model, or none that there was.

alter table charge_receipts add column price text;  -- such as 1.25 in, 10 out per 1M tokens; none: the model had no price; null: the executor told the amount
