import { type Log, openLog } from './log.ts'

export interface Journal {
  /** Returns the kept lines, oldest first, each the JSON text of one log entry. */
  recent(): string[]
  /** Calls the listener with each line from now on, until the function that it returns is called. */
  follow(listener: (line: string) => void): () => void
}

/**
 * Keeps the newest `maxBytes` of the server's own log in memory, for API clients that read it: levels from `info` up,
 * whatever level is written to standard error. The returned log also writes to `log`.
 */
export function openJournal(log: Log, maxBytes = 1 << 20): { log: Log; journal: Journal } {
  const kept: string[] = []
  const followers = new Set<(line: string) => void>()
  let keptBytes = 0

  const own = openLog('info', text => {
    const line = text.trimEnd()
    kept.push(line)
    keptBytes += line.length
    while (keptBytes > maxBytes && kept.length > 1) keptBytes -= kept.shift()!.length
    for (const follower of followers) follower(line)
  })

  return {
    log: {
      debug: (message, fields) => log.debug(message, fields),
      info(message, fields) {
        log.info(message, fields)
        own.info(message, fields)
      },
      warn(message, fields, cause) {
        log.warn(message, fields, cause)
        own.warn(message, fields, cause)
      },
      error(message, fields, cause) {
        log.error(message, fields, cause)
        own.error(message, fields, cause)
      },
    },
    journal: {
      recent: () => [...kept],
      follow(listener) {
        followers.add(listener)
        return () => void followers.delete(listener)
      },
    },
  }
}
