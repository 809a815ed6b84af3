import { homedir } from 'node:os'
import { basename } from 'node:path'
import { failureOf, usage } from '../exit-codes.ts'
import { failureText } from '../failure-text.ts'
import { printable } from '../paint.ts'
import { tookText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import { type AskOptions, chatModels, streamAnswer } from './ask.ts'
import { openAttachments } from './attachments.ts'
import { helpText, parseChatInput } from './chat-input.ts'
import { completionsFor } from './completion.ts'
import type { Conversation } from './conversation.ts'
import { historyPath, openHistory } from './history.ts'
import { openInput } from './input.ts'
import { saveTranscript } from './transcript.ts'

/**
 * A talk in the terminal, until Ctrl-D or /exit. Ctrl-C stops the answer that is being written; while none is, it
 * empties the line. What is typed during an answer is not shown and is asked next.
 */
export async function chatInTerminal(
  terminal: Terminal,
  { client }: AskOptions,
  conversation: Conversation,
  { keepsHistory }: { keepsHistory: boolean },
): Promise<void> {
  const { stdout, paint } = terminal
  const attachments = openAttachments()
  let answering: AbortController | undefined

  const input = openInput({
    terminal,
    history: openHistory(keepsHistory ? historyPath(terminal.environment) : undefined),
    complete: line => completionsFor(line, () => chatModels(client)),
    onInterrupt() {
      if (answering) return answering.abort()
      input.discard()
      terminal.print(paint.faint('\n(Ctrl-D or /exit leaves)'))
      input.prompt()
    },
    onClose: () => answering?.abort(),
  })

  terminal.print(paint.faint(`Talking to ${conversation.model()} at ${client.url}. /help shows what you can type.`))
  for (;;) {
    const text = await input.next()
    if (text === undefined || (await obey(text)) === 'leave') break
  }
  // Ctrl-D leaves the cursor behind the prompt.
  if (input.isClosed()) terminal.print('')
  input.close()

  async function obey(text: string): Promise<'leave' | undefined> {
    const meaning = parseChatInput(text)
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
        attachments.clear()
        terminal.print(paint.faint('Forgotten.'))
        return undefined
      case 'system':
        if (meaning.text === undefined) terminal.print(conversation.system() ?? paint.faint('No instruction is set.'))
        else conversation.instruct(meaning.text === '-' ? undefined : meaning.text)
        return undefined
      case 'model':
        await chooseModel(meaning.id)
        return undefined
      case 'image':
      case 'file':
      case 'save':
        handleFile(meaning)
        return undefined
      case 'unknown':
        terminal.print(`There is no command ${meaning.word}. /help shows them.`)
        return undefined
      case 'say':
        await answer(meaning.text)
        return undefined
    }
  }

  function handleFile({ does, path }: { does: 'image' | 'file' | 'save'; path: string | undefined }): void {
    try {
      if (path === undefined) throw usage(`Write: /${does} ${does === 'image' ? '<file or address>' : '<file>'}`)
      const place = path.replace(/^~(?=\/)/, homedir())
      if (does === 'save') {
        saveTranscript(place, conversation.model(), conversation.messages())
        return terminal.print(paint.faint(`Saved to ${place}.`))
      }
      if (does === 'image') attachments.addImage(place)
      else attachments.addFile(place)
      terminal.print(paint.faint(`${printable(basename(place))} goes with the next message.`))
    } catch (thrown) {
      terminal.stderr.write(failureText(failureOf(thrown), paint))
    }
  }

  async function chooseModel(id: string | undefined): Promise<void> {
    try {
      const offered = await chatModels(client)
      if (id === undefined)
        terminal.print(
          offered.map(one => (one === conversation.model() ? paint.good(`* ${one}`) : `  ${one}`)).join('\n'),
        )
      else if (offered.includes(id)) conversation.switchModel(id)
      else terminal.print(`No model '${id}' can chat here. Offered: ${offered.join(', ')}.`)
    } catch (thrown) {
      terminal.stderr.write(failureText(failureOf(thrown), paint))
    }
  }

  async function answer(text: string): Promise<void> {
    answering = new AbortController()
    input.mute(true)
    const question = attachments.contentFor(text)
    const { signal } = answering
    let answerText = ''
    const started = performance.now()
    const onWait = () => terminal.progress(paint.faint(`${conversation.model()} is being loaded… (Ctrl-C gives up)`))
    try {
      for await (const piece of streamAnswer(conversation.requestFor(question), { client, signal, onWait })) {
        if (answerText === '' && piece.kind !== 'end') terminal.progress('')
        if (piece.kind === 'end') {
          stdout.write(
            `\n${paint.faint(footer(piece.finishReason, piece.tokens?.output, performance.now() - started))}\n`,
          )
        } else {
          if (piece.kind === 'text') answerText += piece.text
          stdout.write(piece.kind === 'text' ? printable(piece.text) : paint.faint(printable(piece.text)))
        }
      }
    } catch (thrown) {
      terminal.progress('')
      if (signal.aborted) stdout.write(paint.faint('\n(stopped)\n'))
      else terminal.stderr.write(`${answerText === '' ? '' : '\n'}${failureText(failureOf(thrown), paint)}`)
    } finally {
      answering = undefined
      input.mute(false)
      conversation.keep(question, answerText)
      // A message that got no answer can be sent again with its files.
      if (answerText !== '') attachments.clear()
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
