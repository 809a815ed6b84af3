/** How much earlier one point of priority ranks a job, in microseconds: a minute. */
const headStart = 60_000_000

/**
 * A job's order among those of its organization, class and model, from its arrival in microseconds: the lowest runs
 * first.
 */
export const rankAt = (arrived: number, priority: number): number => arrived - priority * headStart
