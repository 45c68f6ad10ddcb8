-- The vouchers that we have issued: for whom, whose, until when, and whether they were revoked. The table is
-- that of 0006, which nothing has filled.
ALTER TABLE voucher ADD COLUMN audience TEXT;

ALTER TABLE voucher ADD COLUMN account TEXT;

ALTER TABLE voucher ADD COLUMN currency TEXT;

ALTER TABLE voucher ADD COLUMN holder TEXT;

ALTER TABLE voucher ADD COLUMN issued BIGINT;

ALTER TABLE voucher ADD COLUMN expires BIGINT;

ALTER TABLE voucher ADD COLUMN ended BIGINT;

CREATE INDEX voucher_ended ON voucher (expires) WHERE ended IS NOT NULL;

CREATE TRIGGER voucher_changed AFTER UPDATE ON voucher
    FOR EACH STATEMENT EXECUTE FUNCTION count_change();
