import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** The meaning of a line typed in the chat. */
export type ChatInput =
  | { kind: 'empty' | 'clear' | 'help' | 'exit' }
  /** Without an id, shows the current model and the offered ones. */
  | { kind: 'model'; id: string | undefined }
  /** Without a text, shows the system prompt; `-` removes it. */
  | { kind: 'system'; text: string | undefined }
  /** A file or URL; undefined when it is missing. */
  | { kind: 'image' | 'file' | 'save'; path: string | undefined }
  | { kind: 'unknown'; word: string }
  | { kind: 'message'; text: string }

/** Every command that `/help` lists, without its aliases. */
const commandNames = ['/clear', '/exit', '/file', '/help', '/image', '/model', '/save', '/system'] as const

/**
 * Parses one input. A slash begins a command; two slashes begin a message that starts with one slash. Several lines are
 * a message unless they begin with `/system`, because pasted paths and logs begin with slashes too.
 */
export function parseChatInput(line: string): ChatInput {
  const text = line.trim()
  if (text === '') return { kind: 'empty' }
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) }
  if (!text.startsWith('/')) return { kind: 'message', text }
  if (text.includes('\n') && !/^\/system\s/.test(text)) return { kind: 'message', text }
  const [word = '', ...rest] = text.split(/\s+/)
  const argument = rest.length > 0 ? text.slice(word.length).trim() : undefined
  switch (word) {
    case '/clear':
      return { kind: 'clear' }
    case '/help':
    case '/?':
      return { kind: 'help' }
    case '/exit':
    case '/quit':
    case '/bye':
      return { kind: 'exit' }
    case '/model':
      return { kind: 'model', id: argument }
    case '/system':
      return { kind: 'system', text: argument }
    case '/image':
    case '/file':
    case '/save':
      return { kind: word.slice(1) as 'image' | 'file' | 'save', path: argument }
    default:
      return { kind: 'unknown', word }
  }
}

/** What `/help` prints. */
export const helpText = [
  '/model [id]      show the models, or switch to another one',
  '/system [text]   show the system prompt, or set it; /system - removes it',
  '/image <file>    send an image file or URL with the next message',
  '/file <file>     send a text file with the next message',
  '/save <file>     write the conversation to a new file, .md or .json',
  '/clear           start a new conversation',
  '/exit            end the chat, as Ctrl-D does',
  'Ctrl-C           stop the answer',
  'Tab              complete a command, a model or a path',
  '"""              begin and end a message of several lines',
  '\\ at the end     the message continues on the next line',
].join('\n')

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
