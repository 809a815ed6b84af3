import { writeSync } from 'node:fs'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Record<string, string | number | boolean | null | undefined>

/** The log for operators: one JSON object a line on standard error, without prompts and secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields, cause?: unknown): void
  error(message: string, fields?: LogFields, cause?: unknown): void
}

const order: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }
const secret =
  /sk-[A-Za-z0-9-]{12,}|hf_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}|Bearer\s+\S+|\/\/[^/\s:@]+:[^/\s@]+@/g

/** Replaces what looks like a secret: tokens of infer and of model hubs, bearer headers, passwords in URLs. */
export const redact = (text: string): string => text.replace(secret, '[redacted]')

/**
 * Opens a log that writes JSON lines to standard error. Writes are synchronous, so that a line written just before the
 * process ends is not lost.
 */
export function openLog(level: LogLevel = 'info', write: (line: string) => void = line => writeSync(2, line)): Log {
  const at =
    (name: LogLevel) =>
    (message: string, fields: LogFields = {}, cause?: unknown) => {
      if (order[name] < order[level]) return
      const shown = Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [key, typeof value === 'string' ? redact(value) : value]),
      )
      const why =
        cause === undefined
          ? {}
          : { cause: redact(cause instanceof Error ? (cause.stack ?? cause.message) : JSON.stringify(cause)) }
      try {
        write(
          `${JSON.stringify({ time: new Date().toISOString(), level: name, message: redact(message), ...shown, ...why })}\n`,
        )
      } catch {
        // A full disk or a closed terminal must not end the server.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
