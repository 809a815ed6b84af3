import { setTimeout as delay } from 'node:timers/promises'
import type { Actor } from './box.ts'

/** Read by the fake engine: how many pieces its answer has, and how many of them a second. */
const speech = 'mode:stream,tokens=10,rate=50'
const chats = '/std/v1/chat/completions'

const tools = [
  {
    type: 'function',
    function: {
      name: 'read_file',
      description: 'Reads a file of the project.',
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    },
  },
]

interface Delta {
  content?: string | null
  tool_calls?: { id?: string; function: { name?: string; arguments: string } }[]
}

const deltasOf = (events: readonly string[]): Delta[] =>
  events
    .filter(event => event !== '[DONE]')
    .flatMap(event => (JSON.parse(event) as { choices: { delta: Delta }[] }).choices.map(one => one.delta))

/** A coding agent: streams, calls a tool, sends its result and reads the answer, over several turns. */
export const codingAgent: Actor = {
  name: 'coding agent',
  organization: 'engineering',
  async run(client, { over }) {
    for (let conversation = 1; !over.aborted; conversation++) {
      const messages: object[] = [{ role: 'system', content: 'You change the code of a project.' }]
      const ask = async () =>
        deltasOf((await client.ask(chats, { model: 'code/agent', stream: true, messages, tools })).events)
      for (let turn = 1; turn <= 3 && !over.aborted; turn++) {
        messages.push({ role: 'user', content: `Mend fault ${conversation}.${turn}. ${speech}` })
        const [call] = (await ask()).flatMap(delta => delta.tool_calls ?? [])
        if (call?.function.name !== 'read_file') throw new Error(`The agent got no tool call in turn ${turn}.`)
        JSON.parse(call.function.arguments)
        messages.push({ role: 'assistant', content: null, tool_calls: [call] })
        messages.push({ role: 'tool', tool_call_id: call.id, content: `The file is empty. ${speech}` })
        const content = (await ask()).map(delta => delta.content ?? '').join('')
        if (content.split(' ').length < 10) throw new Error(`The agent got a short answer: '${content}'`)
        messages.push({ role: 'assistant', content })
        await delay(200)
      }
    }
  },
}

/** A person who chats, now with a stream and now without, and whose questions are searched for in documents first. */
export const chatUser: Actor = {
  name: 'chat user',
  organization: 'support',
  async run(client, { over }) {
    for (let question = 1; !over.aborted; question++) {
      await client.ask('/std/v1/embeddings', { model: 'read/embed', input: `Question ${question}` })
      const stream = question % 2 === 0
      const content = stream ? `Question ${question} ${speech}` : `Question ${question} mode:slow,ms=200`
      await client.ask(chats, { model: 'chat/assistant', stream, messages: [{ role: 'user', content }] })
      await delay(600)
    }
  },
}
