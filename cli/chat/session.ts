import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { failureOf } from '../exit-codes.ts'
import { failureText } from '../failure-text.ts'
import { printable } from '../paint.ts'
import { tookText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import { type Asking, chatModels, streamAnswer } from './ask.ts'
import type { Conversation } from './conversation.ts'
import { helpText, meaningOf, openLines } from './words.ts'

/**
 * A talk in the terminal, until Ctrl-D or /exit. Ctrl-C stops the answer that is being written; while none is, it
 * empties the line. What is typed during an answer is not shown and is asked next.
 */
export async function chatInTerminal(
  terminal: Terminal,
  { client }: Asking,
  conversation: Conversation,
): Promise<void> {
  const { stdout, paint } = terminal
  const waiting: string[] = []
  const lines = openLines()
  let answering: AbortController | undefined
  let wake: (() => void) | undefined
  let closed = false

  // readline keeps the terminal in raw mode and must go on reading, or Ctrl-C would not arrive; only its echo stops.
  const screen = new Writable({
    write(piece: Buffer, _, done) {
      if (!answering) stdout.write(piece)
      done()
    },
  })
  const line = createInterface({
    input: terminal.stdin,
    output: Object.assign(screen, { columns: stdout.columns, isTTY: true }),
    terminal: true,
    historySize: 500,
    removeHistoryDuplicates: true,
  })
  const resized = () => Object.assign(screen, { columns: stdout.columns })
  stdout.on('resize', resized)
  line.on('line', typed => {
    waiting.push(typed)
    wake?.()
  })
  line.on('SIGINT', () => {
    if (answering) answering.abort()
    else {
      lines.forget()
      line.write(null, { ctrl: true, name: 'e' })
      line.write(null, { ctrl: true, name: 'u' })
      terminal.print(paint.faint('\n(Ctrl-D or /exit leaves)'))
      line.prompt()
    }
  })
  line.on('close', () => {
    closed = true
    answering?.abort()
    wake?.()
  })

  terminal.print(paint.faint(`Talking to ${conversation.model()} at ${client.url}. /help shows what you can type.`))
  for (;;) {
    const typed = waiting.shift() ?? (await nextLine())
    if (typed === undefined) break
    const text = lines.take(typed)
    if (text !== undefined && (await obey(text)) === 'leave') break
  }
  stdout.off('resize', resized)
  // Ctrl-D leaves the cursor behind the prompt.
  if (closed) terminal.print('')
  line.close()

  async function nextLine(): Promise<string | undefined> {
    if (closed) return undefined
    line.setPrompt(lines.isOpen() ? paint.faint('... ') : paint.name('> '))
    line.prompt()
    if (waiting.length === 0) await new Promise<void>(resolve => (wake = resolve))
    wake = undefined
    return waiting.shift()
  }

  async function obey(text: string): Promise<'leave' | undefined> {
    const meaning = meaningOf(text)
    switch (meaning.does) {
      case 'nothing':
        return undefined
      case 'leave':
        return 'leave'
      case 'help':
        terminal.print(helpText)
        return undefined
      case 'clear':
        conversation.clear()
        terminal.print(paint.faint('Forgotten.'))
        return undefined
      case 'system':
        if (meaning.text === undefined) terminal.print(conversation.system() ?? paint.faint('No instruction is set.'))
        else conversation.instruct(meaning.text === '-' ? undefined : meaning.text)
        return undefined
      case 'model':
        await chooseModel(meaning.id)
        return undefined
      case 'unknown':
        terminal.print(`There is no command ${meaning.word}. /help shows them.`)
        return undefined
      case 'say':
        await answer(meaning.text)
        return undefined
    }
  }

  async function chooseModel(id: string | undefined): Promise<void> {
    try {
      const offered = await chatModels(client)
      if (id === undefined)
        terminal.print(
          offered.map(one => (one === conversation.model() ? paint.good(`* ${one}`) : `  ${one}`)).join('\n'),
        )
      else if (offered.includes(id)) conversation.talkTo(id)
      else terminal.print(`No model '${id}' can chat here. Offered: ${offered.join(', ')}.`)
    } catch (thrown) {
      terminal.stderr.write(failureText(failureOf(thrown), paint))
    }
  }

  async function answer(question: string): Promise<void> {
    answering = new AbortController()
    const { signal } = answering
    let said = ''
    const started = performance.now()
    const onWait = () => terminal.progress(paint.faint(`${conversation.model()} is being loaded… (Ctrl-C gives up)`))
    try {
      for await (const piece of streamAnswer(conversation.requestFor(question), { client, signal, onWait })) {
        if (said === '' && piece.kind !== 'end') terminal.progress('')
        if (piece.kind === 'end') {
          stdout.write(
            `\n${paint.faint(footer(piece.finishReason, piece.tokens?.output, performance.now() - started))}\n`,
          )
        } else {
          if (piece.kind === 'text') said += piece.text
          stdout.write(piece.kind === 'text' ? printable(piece.text) : paint.faint(printable(piece.text)))
        }
      }
    } catch (thrown) {
      terminal.progress('')
      if (signal.aborted) stdout.write(paint.faint('\n(stopped)\n'))
      else terminal.stderr.write(`${said === '' ? '' : '\n'}${failureText(failureOf(thrown), paint)}`)
    } finally {
      answering = undefined
      conversation.keep(question, said)
    }
  }
}

/** The line under an answer: how it ended, where that matters, and how fast it was. */
export function footer(finishReason: string, tokens: number | undefined, ms: number): string {
  const parts = [
    ...(finishReason === 'stop' ? [] : [finishReason === 'length' ? 'cut at its longest' : finishReason]),
    ...(tokens === undefined
      ? []
      : [
          `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`,
          `${(tokens / Math.max(ms / 1000, 0.001)).toFixed(1)} tokens/s`,
        ]),
    tookText(ms),
  ]
  return parts.join(' · ')
}
