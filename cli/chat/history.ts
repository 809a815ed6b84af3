import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Number of lines that a new session offers. */
export const historySize = 500

/** The file that keeps typed lines between sessions. */
export const historyPath = (environment: Record<string, string | undefined>): string =>
  join(environment.XDG_STATE_HOME ?? join(homedir(), '.local/state'), 'infer/chat-history')

/**
 * Holds the lines that this user typed in chats, and keeps them in a file that only this user can read. Without a path,
 * or when the file cannot be read or written, keeps them for this session only.
 */
export function openChatHistory(path: string | undefined) {
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
        // The chat works without a stored history.
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
