import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { baseDirectory } from '../../core/base-directory.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Key {
  name?: string
}

/** Makes the terminal mark pasted text, so that a line break in it does not send the message. */
const bracketedPaste = { on: '\u001b[?2004h', off: '\u001b[?2004l' }

interface InputOptions {
  terminal: Terminal
  history: ReturnType<typeof openChatHistory>
  complete: (line: string) => Promise<[string[], string]>
  /** Ctrl-C. */
  onInterrupt: () => void
  /** Ctrl-D, or the terminal was closed. */
  onClose: () => void
}

/**
 * Reads messages from the terminal, with line editing, history, completion and multi-line messages. readline keeps the
 * terminal in raw mode and must continue to read, or Ctrl-C would not arrive; muting only stops its echo.
 */
export function openChatInput({ terminal, history, complete, onInterrupt, onClose }: InputOptions) {
  const { stdin, stdout, paint } = terminal
  const lines = openMessageLines()
  const pending: string[] = []
  let wake: (() => void) | undefined
  let isMuted = false
  let isPasting = false
  let isClosed = false

  const screen = new Writable({
    write(piece: Buffer, _, done) {
      if (!isMuted) stdout.write(piece)
      done()
    },
  })
  // Added before readline's own listener, so that the mark arrives before the first pasted line.
  const onKey = (_: string | undefined, key: Key | undefined) => {
    if (key?.name === 'paste-start') isPasting = true
    if (key?.name !== 'paste-end') return
    isPasting = false
    if (lines.isOpen() && !isMuted) prompt()
  }
  stdin.on('keypress', onKey)
  const line = createInterface({
    input: stdin,
    output: Object.assign(screen, { columns: stdout.columns, isTTY: true }),
    terminal: true,
    history: history.newest(),
    historySize,
    removeHistoryDuplicates: true,
    completer: (text: string, done: (failure: Error | null, found: [string[], string]) => void) => {
      complete(text).then(
        found => done(null, found),
        () => done(null, [[], text]),
      )
    },
  })
  const resized = () => Object.assign(screen, { columns: stdout.columns })
  stdout.on('resize', resized)
  stdout.write(bracketedPaste.on)

  let previous = history.newest()
  line.on('history', (all: string[]) => {
    // Pasted lines would push typed lines out of the history.
    if (isPasting || lines.isOpen()) all.splice(0, all.length, ...previous)
    else if (all[0] !== undefined) history.add(all[0])
    previous = [...all]
  })
  line.on('line', typed => {
    if (isPasting) return lines.hold(typed)
    const message = lines.take(typed)
    if (message !== undefined) {
      pending.push(message)
      wake?.()
    } else if (!isMuted) prompt()
  })
  line.on('SIGINT', onInterrupt)
  line.on('close', () => {
    isClosed = true
    stdin.off('keypress', onKey)
    stdout.off('resize', resized)
    stdout.write(bracketedPaste.off)
    onClose()
    wake?.()
  })

  function prompt(): void {
    line.setPrompt(lines.isOpen() ? paint.faint('... ') : paint.name('> '))
    line.prompt(true)
  }

  return {
    /** The next message; undefined when the input has ended. */
    async next(): Promise<string | undefined> {
      const typed = pending.shift()
      if (typed !== undefined || isClosed) return typed
      prompt()
      await new Promise<void>(resolve => (wake = resolve))
      wake = undefined
      return pending.shift()
    },
    /** Hides typed text, or shows it again. */
    mute(muted: boolean): void {
      isMuted = muted
    },
    /** Drops typed text that was not sent. */
    discard(): void {
      lines.forget()
      line.write(null, { ctrl: true, name: 'e' })
      line.write(null, { ctrl: true, name: 'u' })
    },
    prompt,
    isClosed: (): boolean => isClosed,
    close: (): void => line.close(),
  }
}

const quotes = '"""'

/**
 * Joins typed lines into messages. A line that ends with a backslash continues on the next line, three quotes begin a
 * message that the next three quotes end, and pasted lines belong to the next line that the user ends with Enter.
 */
export function openMessageLines() {
  let held = ''
  let isQuoted = false

  return {
    /** Takes a typed line. Returns the complete message, or undefined while it continues. */
    take(line: string): string | undefined {
      const opens = !isQuoted && held === '' ? /^(\/system\s+)?"""/.exec(line) : null
      if (opens) {
        isQuoted = true
        held = opens[1] ?? ''
        line = line.slice(opens[0].length)
      }
      if (isQuoted) {
        const end = line.trimEnd()
        if (!end.endsWith(quotes)) {
          held += `${line}\n`
          return undefined
        }
        isQuoted = false
        return release(end.slice(0, -quotes.length))
      }
      if (line.endsWith('\\')) {
        held += `${line.slice(0, -1)}\n`
        return undefined
      }
      return release(line)
    },
    /** Holds a pasted line that ended with a line break. */
    hold(line: string): void {
      held += `${line}\n`
    },
    forget(): void {
      held = ''
      isQuoted = false
    },
    isOpen: (): boolean => held !== '' || isQuoted,
  }

  function release(last: string): string {
    const whole = held + last
    held = ''
    return whole
  }
}

/** Number of lines that a new session offers. */
const historySize = 500

/** The file that keeps typed lines between sessions. */
export const historyPath = (environment: Record<string, string | undefined>): string =>
  join(baseDirectory('XDG_STATE_HOME', environment), 'infer/chat-history')

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
