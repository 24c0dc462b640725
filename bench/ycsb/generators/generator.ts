/** A source of integers: record numbers, field numbers or field lengths. */
export interface Generator {
  next(): number;
}
