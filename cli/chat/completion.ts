import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { commandNames } from './chat-input.ts'

/** Commands whose argument is a path. */
const withPath = /^\/(image|file|save)\s+/

/**
 * Completes a typed line for the Tab key: returns the matches, and the part of the line that each match replaces.
 * `models` returns the ids of the chat models.
 */
export async function completionsFor(line: string, models: () => Promise<string[]>): Promise<[string[], string]> {
  if (!line.startsWith('/')) return [[], line]
  if (!/\s/.test(line)) {
    const names = commandNames.filter(name => name.startsWith(line))
    return [names.map(name => `${name} `), line]
  }
  const command = withPath.exec(line)
  if (command) {
    const typed = line.slice(command[0].length)
    return [pathsFor(typed), typed]
  }
  const [, typed] = /^\/model\s+(\S*)$/.exec(line) ?? []
  if (typed === undefined) return [[], line]
  return [(await models().catch(() => [])).filter(id => id.startsWith(typed)), typed]
}

/** Returns files and folders whose path begins with the text; folders end with a slash. */
function pathsFor(typed: string): string[] {
  const folder = typed.endsWith('/') ? typed : typed.includes('/') ? `${dirname(typed)}/` : ''
  const start = typed.slice(folder === '//' ? 1 : folder.length)
  const directory = folder === '' ? '.' : folder.replace(/^~(?=\/)/, homedir())
  try {
    return readdirSync(join(directory, '.'), { withFileTypes: true })
      .filter(({ name }) => name.startsWith(start) && (start.startsWith('.') || !name.startsWith('.')))
      .map(entry => `${typed.slice(0, typed.length - start.length)}${entry.name}${entry.isDirectory() ? '/' : ''}`)
  } catch {
    return []
  }
}
