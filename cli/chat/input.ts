import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { Terminal } from '../terminal.ts'
import { historySize, type openHistory } from './history.ts'
import { openMessageLines } from './message-lines.ts'

interface Key {
  name?: string
}

/** Asks the terminal to mark what is pasted, so that a line break in it does not send it. */
const bracketedPaste = { on: '\u001b[?2004h', off: '\u001b[?2004l' }

export interface InputOptions {
  terminal: Terminal
  history: ReturnType<typeof openHistory>
  complete: (line: string) => Promise<[string[], string]>
  /** Ctrl-C. */
  onInterrupt: () => void
  /** Ctrl-D, or the terminal is gone. */
  onClose: () => void
}

/**
 * Reads messages from the terminal: with line editing, history, completion, and messages of several lines. readline keeps
 * the terminal in raw mode and must go on reading, or Ctrl-C would not arrive; while `muted` only its echo stops.
 */
export function openInput({ terminal, history, complete, onInterrupt, onClose }: InputOptions) {
  const { stdin, stdout, paint } = terminal
  const lines = openMessageLines()
  const waiting: string[] = []
  let wake: (() => void) | undefined
  let isMuted = false
  let isPasting = false
  let closed = false

  const screen = new Writable({
    write(piece: Buffer, _, done) {
      if (!isMuted) stdout.write(piece)
      done()
    },
  })
  // Before readline listens, so that the mark comes before the first pasted line.
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

  let kept = history.newest()
  line.on('history', (all: string[]) => {
    // Pasted lines would push out what was typed.
    if (isPasting || lines.isOpen()) all.splice(0, all.length, ...kept)
    else if (all[0] !== undefined) history.add(all[0])
    kept = [...all]
  })
  line.on('line', typed => {
    if (isPasting) return lines.hold(typed)
    const message = lines.take(typed)
    if (message !== undefined) {
      waiting.push(message)
      wake?.()
    } else if (!isMuted) prompt()
  })
  line.on('SIGINT', onInterrupt)
  line.on('close', () => {
    closed = true
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
      const typed = waiting.shift()
      if (typed !== undefined || closed) return typed
      prompt()
      await new Promise<void>(resolve => (wake = resolve))
      wake = undefined
      return waiting.shift()
    },
    /** Whether what is typed is shown. */
    mute(muted: boolean): void {
      isMuted = muted
    },
    /** Drops what was typed and not sent. */
    discard(): void {
      lines.forget()
      line.write(null, { ctrl: true, name: 'e' })
      line.write(null, { ctrl: true, name: 'u' })
    },
    prompt,
    isClosed: (): boolean => closed,
    close: (): void => line.close(),
  }
}
