import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** So many lines are offered again. */
export const historySize = 500

/** Where typed lines are kept between sessions. */
export const historyPath = (environment: Record<string, string | undefined>): string =>
  join(environment.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'infer/chat-history')

/**
 * The lines that were typed in chats of this user, one in each line of a file that only this user can read. Without a
 * path, and where the file cannot be read or written, lines are kept for this session only.
 */
export function openHistory(path: string | undefined) {
  const lines = read(path)
  return {
    /** Newest first, at most `historySize`. */
    newest: (): string[] => lines.slice(-historySize).toReversed(),
    add(line: string): void {
      if (lines.at(-1) === line) return
      lines.push(line)
      if (path === undefined) return
      try {
        if (lines.length > 2 * historySize) {
          lines.splice(0, lines.length - historySize)
          writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
          return
        }
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        appendFileSync(path, `${line}\n`, { mode: 0o600 })
      } catch {
        // A chat goes on without its history.
      }
    },
  }
}

function read(path: string | undefined): string[] {
  if (path === undefined) return []
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter(line => line !== '')
  } catch {
    return []
  }
}
