/** The priority classes of a queue; the first is served first. */
export const jobClasses = ['interactive', 'workflow', 'async', 'batch'] as const
export type JobClass = (typeof jobClasses)[number]

/** The class of a stored job: interactive requests are in memory only. */
export type StoredJobClass = Exclude<JobClass, 'interactive'>
