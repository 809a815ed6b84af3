import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { withHome } from '../../core/base-directory.ts'
import { hostEnvironment } from '../../core/config.ts'
import { failureOfThrown, usageFailure } from '../terminal/exit-codes.ts'
import { failureText } from '../terminal/failure-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AskOptions, chatModels, footer, streamAnswer } from './ask.ts'
import { type Conversation, saveTranscript } from './conversation.ts'
import { historyPath, openChatHistory, openChatInput } from './input.ts'
import { openAttachments } from './prompt.ts'

/**
 * Runs a chat in the terminal until Ctrl-D or /exit. Ctrl-C stops a running answer; otherwise it empties the line. Text
 * typed during an answer is not shown, and is sent after it.
 */
export async function chatInTerminal(
  terminal: Terminal,
  { client }: AskOptions,
  conversation: Conversation,
  { keepsHistory }: { keepsHistory: boolean },
): Promise<void> {
  const { stdout, paint } = terminal
  const attachments = openAttachments()
  let runningAnswer: AbortController | undefined

  const input = openChatInput({
    terminal,
    history: openChatHistory(keepsHistory ? historyPath(terminal.environment) : undefined),
    complete: line => completionsFor(line, () => chatModels(client)),
    onInterrupt() {
      if (runningAnswer) return runningAnswer.abort()
      input.discard()
      terminal.print(paint.faint('\n(Ctrl-D or /exit ends the chat)'))
      input.prompt()
    },
    onClose: () => runningAnswer?.abort(),
  })

  terminal.print(paint.faint(`Chat with ${conversation.model()} at ${client.url}. /help lists the commands.`))
  for (;;) {
    const text = await input.next()
    const parsed = text === undefined ? undefined : parseChatInput(text)
    if (parsed === undefined || parsed.kind === 'exit') break
    await handle(parsed)
  }
  // Ctrl-D leaves the cursor behind the prompt.
  if (input.isClosed()) terminal.print('')
  input.close()

  async function handle(parsed: ChatInput): Promise<void> {
    switch (parsed.kind) {
      case 'empty':
      case 'exit':
        return
      case 'help':
        return terminal.print(helpText)
      case 'clear':
        conversation.clear()
        attachments.clear()
        return terminal.print(paint.faint('Started a new conversation.'))
      case 'system':
        if (parsed.text !== undefined) return conversation.setSystem(parsed.text === '-' ? undefined : parsed.text)
        return terminal.print(conversation.system() ?? paint.faint('No system prompt is set.'))
      case 'model':
        return chooseModel(parsed.id)
      case 'image':
      case 'file':
      case 'save':
        return handleFile(parsed)
      case 'unknown':
        return terminal.print(`There is no command ${parsed.word}. /help lists the commands.`)
      case 'message':
        return answer(parsed.text)
    }
  }

  function handleFile({ kind, path }: { kind: 'image' | 'file' | 'save'; path: string | undefined }): void {
    try {
      if (path === undefined) throw usageFailure(`Write: /${kind} ${kind === 'image' ? '<file or URL>' : '<file>'}`)
      const expandedPath = withHome(path, hostEnvironment())
      if (kind === 'save') {
        saveTranscript(expandedPath, conversation.model(), conversation.messages())
        return terminal.print(paint.faint(`Saved to ${expandedPath}.`))
      }
      if (kind === 'image') attachments.addImage(expandedPath)
      else attachments.addFile(expandedPath)
      terminal.print(paint.faint(`${printable(basename(expandedPath))} is sent with the next message.`))
    } catch (thrown) {
      terminal.stderr.write(failureText(failureOfThrown(thrown), paint))
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
      else terminal.print(`There is no chat model '${id}' here. Offered: ${offered.join(', ')}.`)
    } catch (thrown) {
      terminal.stderr.write(failureText(failureOfThrown(thrown), paint))
    }
  }

  async function answer(text: string): Promise<void> {
    runningAnswer = new AbortController()
    input.mute(true)
    const question = attachments.contentFor(text)
    const { signal } = runningAnswer
    let answerText = ''
    const started = performance.now()
    const onWait = () => terminal.progress(paint.faint(`Loading ${conversation.model()}… (Ctrl-C stops waiting)`))
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
      else terminal.stderr.write(`${answerText === '' ? '' : '\n'}${failureText(failureOfThrown(thrown), paint)}`)
    } finally {
      runningAnswer = undefined
      input.mute(false)
      conversation.keep(question, answerText)
      // After a message without an answer, the next one still carries the files.
      if (answerText !== '') attachments.clear()
    }
  }
}

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
const helpText = [
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
async function completionsFor(line: string, models: () => Promise<string[]>): Promise<[string[], string]> {
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
  const directory = folder === '' ? '.' : withHome(folder, hostEnvironment())
  try {
    return readdirSync(join(directory, '.'), { withFileTypes: true })
      .filter(({ name }) => name.startsWith(start) && (start.startsWith('.') || !name.startsWith('.')))
      .map(entry => `${typed.slice(0, typed.length - start.length)}${entry.name}${entry.isDirectory() ? '/' : ''}`)
  } catch {
    return []
  }
}
