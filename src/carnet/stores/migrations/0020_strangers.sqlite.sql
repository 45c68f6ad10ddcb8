-- Keys that a stranger showed in the place of those that are remembered, until a person says yes.
ALTER TABLE stranger ADD COLUMN offered BLOB;
