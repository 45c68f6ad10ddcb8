-- The vouchers that we have issued: for whom, whose, until when, and whether they were revoked. The table is
-- that of 0006, which nothing has filled.
ALTER TABLE voucher ADD COLUMN audience TEXT;

ALTER TABLE voucher ADD COLUMN account TEXT;

ALTER TABLE voucher ADD COLUMN currency TEXT;

ALTER TABLE voucher ADD COLUMN holder TEXT;

ALTER TABLE voucher ADD COLUMN issued INTEGER;

ALTER TABLE voucher ADD COLUMN expires INTEGER;

ALTER TABLE voucher ADD COLUMN ended INTEGER;

CREATE INDEX voucher_ended ON voucher (expires) WHERE ended IS NOT NULL;
