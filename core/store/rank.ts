/** The head start that one point of priority gives, in microseconds: a minute. */
const headStart = 60_000_000

/** A job's place among those of its organization, class and model, from the microseconds of its arrival: the lowest is first. */
export const rankAt = (arrived: number, priority: number): number => arrived - priority * headStart
