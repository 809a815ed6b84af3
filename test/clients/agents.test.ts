import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeTinyModels } from '../../bin/tiny-models.ts'
import { startApp, type TestApp } from '../_app.ts'
import { temporaryFolder } from '../real/_engine.ts'
import type { ScriptedEngine } from '../server/_scripted-engine.ts'
import { openToolUser } from './_tool-user.ts'

/**
 * Requests in the shape of Codex and of Claude Code, with words and tools of our own. The programs themselves run in
 * test/real/agents.test.ts.
 */
const folder = temporaryFolder()
let engine: ScriptedEngine
let app: TestApp
beforeAll(async () => {
  engine = await openToolUser()
  const [toy] = writeTinyModels(folder())
  app = await startApp({
    models: [engine.model('agent'), { id: 'toy', source: toy, tasks: ['std/chat-completion'] }],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

/** What the tool of the agent returns. */
const runTool = (path: string): string => readFileSync(path, 'utf8')
const written = (): string => {
  const path = join(folder(), 'notes.txt')
  writeFileSync(path, 'The word of the day is heliotrope.')
  return path
}
const pathOf = (args: object): string => Object.values(args)[0] as string

describe('an agent that sends responses', () => {
  const command = {
    type: 'function',
    name: 'exec_command',
    description: 'Runs a command.',
    strict: false,
    parameters: {
      type: 'object',
      properties: { cmd: { type: 'string' }, where: { type: 'string', format: 'uri' }, limit: { multipleOf: 1 } },
      required: ['cmd'],
      additionalProperties: false,
    },
  }
  const tools = [
    command,
    {
      type: 'custom',
      name: 'change',
      description: 'Changes files.',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/' },
    },
    { type: 'namespace', name: 'boards', description: 'Boards.', tools: [{ ...command, name: 'list' }] },
    { type: 'web_search', external_web_access: false },
    { type: 'local_shell' },
  ]
  const input = (role: string, text: string) => ({ type: 'message', role, content: [{ type: 'input_text', text }] })
  const context = [input('developer', 'Ask before you write.'), input('user', '<folder>notes</folder>')]

  async function respond(items: unknown[], model: string, more: object = {}) {
    const client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
    const request = {
      model,
      instructions: 'You are an agent in a terminal.',
      input: items,
      tools,
      tool_choice: 'auto',
      parallel_tool_calls: true,
      reasoning: { effort: 'medium', summary: 'auto' },
      store: false,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'a-session',
      text: { verbosity: 'medium' },
      stream: true,
      ...more,
    } as unknown as OpenAI.Responses.ResponseCreateParamsStreaming
    for await (const event of await client.responses.create(request))
      if (event.type === 'response.completed' || event.type === 'response.incomplete') return event.response
    throw new Error('The stream had no end.')
  }

  test('says hello, goes on, and reads a file by its tool', async () => {
    const items: unknown[] = [...context, input('user', 'hi')]
    const first = await respond(items, 'agent')
    expect(first.output).toMatchObject([{ type: 'message', content: [{ text: 'Hello, turn 1.' }] }])
    items.push(...first.output, input('developer', 'The mode is now: read only.'), input('user', 'again'))
    const second = await respond(items, 'agent')
    expect(second.output).toMatchObject([{ type: 'message', content: [{ text: 'Hello, turn 2.' }] }])

    const path = written()
    items.push(...second.output, input('user', `Read the file ${path}`))
    const third = await respond(items, 'agent')
    const [called] = third.output as OpenAI.Responses.ResponseFunctionToolCall[]
    expect(called).toMatchObject({ type: 'function_call', name: 'exec_command' })
    const output = runTool(pathOf(JSON.parse(called!.arguments) as object).split(' ')[1]!)
    items.push(called, { type: 'function_call_output', call_id: called!.call_id, output })
    const last = await respond(items, 'agent')
    expect(last.output).toMatchObject([{ content: [{ text: 'The tool says: The word of the day is heliotrope.' }] }])
  })

  test('is answered by the built-in engine too', async () => {
    const { usage } = await respond([...context, input('user', 'hi')], 'toy', { max_output_tokens: 16 })
    expect(usage!.output_tokens).toBeGreaterThan(0)
  })
})

describe('an agent that sends messages of Anthropic', () => {
  const read = {
    name: 'Read',
    description: 'Reads a file.',
    input_schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { file_path: { type: 'string' }, pages: { type: 'string', pattern: '^(?!0)\\d+$' }, at: { not: {} } },
      required: ['file_path'],
      additionalProperties: false,
    },
  }
  const tools = [
    read,
    { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
    { type: 'bash_20250124', name: 'bash' },
    { ...read, name: `mcp__${'a'.repeat(100)}__read`, defer_loading: true },
  ]
  const block = (text: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral', ttl: '1h' } })
  const user = (...texts: string[]) => ({ role: 'user', content: texts.map(block) })
  const reminder = { role: 'system', content: [block('Kinds of helpers: explorer, planner.')] }

  async function ask(messages: unknown[], model: string, max_tokens = 32_000) {
    const client = new Anthropic({
      baseURL: `${app.url}/anthropic`,
      authToken: app.secret,
      apiKey: null,
      maxRetries: 0,
    })
    const request = {
      model,
      max_tokens,
      system: [block('billing: none'), block('You are an agent in a terminal.')],
      messages,
      tools,
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      metadata: { user_id: '{"session":"a"}' },
      stream: true,
    } as unknown as Anthropic.MessageCreateParamsStreaming
    const headers = { 'anthropic-beta': 'mid-conversation-system-2026-04-07,interleaved-thinking-2025-05-14' }
    return await client.messages.stream(request, { headers }).finalMessage()
  }

  test('says hello, goes on, and reads a file by its tool', async () => {
    const messages: unknown[] = [user('<system-reminder>be kind</system-reminder>', 'hi'), reminder]
    const first = await ask(messages, 'agent')
    expect(first.content).toMatchObject([{ type: 'text', text: 'Hello, turn 1.' }])
    messages.push({ role: 'assistant', content: first.content }, user('again'), reminder)
    const second = await ask(messages, 'agent')
    expect(second.content).toMatchObject([{ text: 'Hello, turn 2.' }])

    const path = written()
    messages.push({ role: 'assistant', content: second.content }, user(`Read the file ${path}`), reminder)
    const third = await ask(messages, 'agent')
    expect(third).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', name: 'Read' }] })
    const called = third.content[0] as Anthropic.ToolUseBlock
    const result = { type: 'tool_result', tool_use_id: called.id, content: runTool(pathOf(called.input as object)) }
    messages.push({ role: 'assistant', content: third.content }, { role: 'user', content: [result] })
    const last = await ask(messages, 'agent')
    expect(last.content).toMatchObject([{ text: 'The tool says: The word of the day is heliotrope.' }])
  })

  test('is answered by the built-in engine too', async () => {
    const { usage } = await ask([user('hi'), reminder], 'toy', 16)
    expect(usage.output_tokens).toBeGreaterThan(0)
  })
})
