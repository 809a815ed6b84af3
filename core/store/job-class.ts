/** The priority classes of a queue, the first one served first. */
export const jobClasses = ['interactive', 'workflow', 'async', 'batch'] as const
export type JobClass = (typeof jobClasses)[number]

/** The class of a job that is in the store: an interactive request is in memory only. */
export type StoredJobClass = Exclude<JobClass, 'interactive'>
