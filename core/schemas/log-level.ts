/** Levels of the lines in the log of a job. */
export const logLevels = ['STDERR', 'STDOUT', 'ERROR', 'INFO', 'WARN', 'DEBUG'] as const
export type LogLevel = (typeof logLevels)[number]
