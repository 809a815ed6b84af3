/** Levels of the lines of a job's log. */
export const logLevels = ['STDERR', 'STDOUT', 'ERROR', 'INFO', 'WARN', 'DEBUG'] as const
export type LogLevel = (typeof logLevels)[number]
