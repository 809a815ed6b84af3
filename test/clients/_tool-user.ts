import type { ServerResponse } from 'node:http'
import { type Chat, chatFrames, newId, wholeChat } from '../fixtures/engine-answers.ts'
import { openScriptedEngine, type Seen } from '../server/_scripted-engine.ts'

interface Message {
  role: string
  content: unknown
}

/** All text of a message. */
function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return (content as { text?: string }[]).map(({ text }) => text ?? '').join('\n')
}

/** How each agent reads a file by the tools that it offers: the name of a tool, and its arguments for a path. */
const readers: [tool: RegExp, inputs: (path: string) => object][] = [
  [/^exec_command$/, path => ({ cmd: `cat ${path}` })],
  [/^shell_command$/, path => ({ command: `cat ${path}` })],
  [/^shell$/, path => ({ command: ['cat', path] })],
  [/^Read$/, file_path => ({ file_path })],
  [/^read$/, filePath => ({ filePath })],
  [/^read_file$/, path => ({ path })],
]

/**
 * An engine in this process that does what a model does for an agent: it reads the file that the user names, by the
 * agent's own tool, repeats what a tool has answered, and says hello to everything else, with the number of the turn.
 */
export function openToolUser() {
  return openScriptedEngine((seen, response) => answer(seen, response))
}

function answer({ body }: Seen, response: ServerResponse): void {
  const messages = (body.messages ?? []) as Message[]
  const last = messages.at(-1)
  const path = /read the file (\S+\.txt)/i.exec(last ? textOf(last) : '')?.[1]
  const reader = readers.find(([tool]) => body.tools?.some(({ function: { name } }) => tool.test(name)))
  const tool = reader && body.tools!.find(({ function: { name } }) => reader[0].test(name))!.function.name
  const call =
    last?.role === 'user' && path && reader ? { name: tool!, arguments: JSON.stringify(reader[1](path)) } : undefined
  const turn = messages.filter(({ role }) => role === 'user').length
  const words = last?.role === 'tool' ? `The tool says: ${textOf(last).slice(0, 500)}` : `Hello, turn ${turn}.`
  const chat: Chat = {
    id: newId(),
    created: Math.floor(Date.now() / 1000),
    model: 'scripted',
    tokens: call ? [] : [words],
    toolCall: call,
    finish: call ? 'tool_calls' : 'stop',
    usage: { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 },
  }
  if (!body.stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeChat(chat)))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const frame of chatFrames(chat, true)) response.write(`data: ${JSON.stringify(frame)}\n\n`)
  response.end('data: [DONE]\n\n')
}
