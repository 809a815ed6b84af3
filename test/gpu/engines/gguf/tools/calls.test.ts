import { writeFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { tinyChatRandom } from '../../../../../bin/tiny-models.ts'
import { ChatResponse } from '../../../../../core/schemas/chat.ts'
import { file, type Json, startEngine } from '../_engine.ts'
import { templates } from './_templates.ts'

/** Random weights: they make calls only because the grammar requires them. */
const families = {
  hermes: ['<tool_call>', '</tool_call>'],
  qwen3: ['<think>', '</think>', '<tool_call>', '</tool_call>'],
  thinker: ['<think>', '</think>'],
  llama: ['<|python_tag|>'],
  mistral: ['[TOOL_CALLS]'],
  mistralNamed: ['[TOOL_CALLS]', '[ARGS]', '[CALL_ID]'],
  strict: [],
} as const
type Family = keyof typeof families
const all = Object.keys(families) as Family[]
const calling = all.filter(family => family !== 'thinker')

const started = new Map<Family, ReturnType<typeof startEngine>>()
/** The engine of a family, started at its first use. */
function engineOf(family: Family): ReturnType<typeof startEngine> {
  const known = started.get(family)
  if (known) return known
  const model = `tiny-${family}.gguf`
  const weights = tinyChatRandom(all.indexOf(family) + 1, { template: templates[family], controls: families[family] })
  writeFileSync(file(model), weights)
  const engine = startEngine({ model, parallel: 2 })
  started.set(family, engine)
  return engine
}

/** The number of a family's control token; control tokens follow all others of the toy model. */
const tokenOf = (family: Family, text: string): number => 377 + (families[family] as readonly string[]).indexOf(text)

const schemas: Record<string, object> = {
  get_weather: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      city: { type: 'string', minLength: 1, maxLength: 6 },
      days: { type: 'integer', minimum: 1, maximum: 14 },
      unit: { enum: ['c', 'f'] },
    },
    required: ['city', 'unit'],
    additionalProperties: false,
  },
  add: {
    type: 'object',
    properties: { a: { type: 'array', items: { type: 'integer', minimum: -9, maximum: 9 }, maxItems: 3 } },
    required: ['a'],
    additionalProperties: false,
  },
  now: { type: 'object', properties: {}, additionalProperties: false },
}
/** Random weights rarely end their reasoning, so the end mark is made likely. */
const brief = (family: Family): Record<string, number> =>
  (families[family] as readonly string[]).includes('</think>') ? { [tokenOf(family, '</think>')]: 5 } : {}
const ajv = new Ajv({ strict: false })
const validators = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, ajv.compile(schema)]))
const tools = Object.entries(schemas).map(([name, parameters]) => ({
  type: 'function',
  function: name === 'now' ? { name } : { name, parameters },
}))
/** All tokens possible. */
const wild = { temperature: 1.2, top_k: 0, top_p: 1, min_p: 0, tools }
const question = [{ role: 'user', content: 'What about Rome?' }]

function checkCalls(calls: Json[], family: Family): void {
  for (const { id, type, function: called } of calls) {
    expect(id).toMatch(family.startsWith('mistral') ? /^[A-Za-z0-9]{9}$/ : /^call_\w+$/)
    expect(type).toBe('function')
    const validate = validators[called.name]!
    expect([called.arguments, validate(JSON.parse(called.arguments as string)), validate.errors]).toEqual([
      called.arguments,
      true,
      null,
    ])
  }
  expect(new Set(calls.map(({ id }) => id as string)).size).toBe(calls.length)
}

/** Assembles a stream as clients do. */
function assembled(chunks: Json[]): { message: Json; reason: string } {
  const message: Json = { content: null }
  let reason = ''
  for (const { choices } of chunks) {
    const [{ delta, finish_reason }] = choices
    if (delta.content != null) message.content = (message.content ?? '') + delta.content
    if (delta.reasoning_content != null)
      message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content
    for (const { index, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= []
      if (call.id) {
        expect(index).toBe(message.tool_calls.length)
        message.tool_calls.push(call)
      } else message.tool_calls[index].function.arguments += call.function.arguments
    }
    reason = finish_reason ?? reason
  }
  return { message, reason }
}

describe.each(calling)('%s', family => {
  const base = { messages: question, ...wild, logit_bias: brief(family) }
  const chat = async (fields: Json) => (await engineOf(family)).chat({ ...base, ...fields })

  test.each([1, 2, 3, 4, 5, 6])(
    'with required calls an answer is calls, and their arguments validate (seed %d)',
    async seed => {
      const { status, body } = await chat({ tool_choice: 'required', seed, parallel_tool_calls: seed % 2 === 0 })
      expect([status, body.error]).toEqual([200, undefined])
      expect(() => ChatResponse.parse(body)).not.toThrow()
      const [{ message, finish_reason }] = body.choices
      expect(finish_reason).toBe('tool_calls')
      expect(message.content).toBeNull()
      expect(message.tool_calls.length).toBeGreaterThan(0)
      if (seed % 2 === 1) expect(message.tool_calls).toHaveLength(1)
      checkCalls(message.tool_calls, family)
    },
  )

  test('the named function is called, once', async () => {
    for (const name of Object.keys(schemas)) {
      const { body } = await chat({ tool_choice: { type: 'function', function: { name } } })
      const { tool_calls } = body.choices[0].message
      expect(tool_calls.map((call: Json) => call.function.name)).toEqual([name])
      checkCalls(tool_calls, family)
    }
  })

  test('a stream has the same content as a whole answer', async () => {
    const fields = { tool_choice: 'required', seed: 42 }
    const { body } = await chat(fields)
    const chunks = await (await engineOf(family)).stream({ ...base, ...fields })
    const { message, reason } = assembled(chunks)
    const named = (calls: Json[]) => calls.map(({ function: called }) => called)
    expect(reason).toBe('tool_calls')
    // After reasoning it is too late to report that there is no content.
    expect(message.content).toBe(message.reasoning_content === undefined ? null : '')
    expect(named(message.tool_calls)).toEqual(named(body.choices[0].message.tool_calls))
    expect(chunks[0]!.choices[0].delta).toMatchObject({ role: 'assistant' })
    checkCalls(message.tool_calls, family)
  })

  test('with optional calls an answer is text where the model writes text, cut at the stop string', async () => {
    const marks = families[family].map(text => [tokenOf(family, text), -100])
    const logit_bias = Object.fromEntries(marks) as Record<string, number>
    const { body } = await chat({ max_tokens: 30, seed: 5, logit_bias })
    const [{ message, finish_reason }] = body.choices
    expect(message.tool_calls).toBeUndefined()
    expect(message.content + (message.reasoning_content ?? '')).not.toBe('')
    expect(['length', 'stop']).toContain(finish_reason)
  })

  test('an answer cut short has an incomplete call', async () => {
    const { body } = await chat({
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      max_tokens: 55,
    })
    const [{ finish_reason }] = body.choices
    // The token that ends a complete call is counted too, so it may be the last allowed one.
    if (body.usage.completion_tokens < 55) expect(finish_reason).toBe('tool_calls')
    else expect(['length', 'tool_calls']).toContain(finish_reason)
  })
})

test.each([
  ['hermes', '<tool_call>'],
  ['qwen3', '<tool_call>'],
  ['mistral', '[TOOL_CALLS]'],
  ['mistralNamed', '[TOOL_CALLS]'],
  ['llama', '<|python_tag|>'],
] as const)('%s: an optional call is valid too', async (family, marker) => {
  const bias = { [tokenOf(family, marker)]: 100 }
  for (const seed of [1, 2, 3]) {
    const fields = { messages: question, ...wild, seed, logit_bias: bias, parallel_tool_calls: false }
    const { body } = await (await engineOf(family)).chat(fields)
    const [{ message, finish_reason }] = body.choices
    expect([message.content, finish_reason]).toEqual([null, 'tool_calls'])
    expect(message.tool_calls).toHaveLength(1)
    checkCalls(message.tool_calls, family)
    const { message: streamed } = assembled(await (await engineOf(family)).stream(fields))
    expect(streamed.tool_calls[0].function).toEqual(message.tool_calls[0].function)
  }
})

test('several answers at once have their own calls', async () => {
  const fields = { messages: question, ...wild, tool_choice: 'required', n: 3, seed: 1 }
  const { body } = await (await engineOf('hermes')).chat(fields)
  const messages: Json[] = body.choices.map((choice: Json) => choice.message)
  checkCalls(
    messages.flatMap(message => message.tool_calls),
    'hermes',
  )
  const chunks = await (await engineOf('hermes')).stream(fields)
  const named = (calls: Json[]) => calls.map(({ function: called }) => called)
  for (const [index, message] of messages.entries()) {
    const own = chunks.filter(({ choices }) => choices[0].index === index)
    const streamed = assembled(own)
    expect(streamed.reason).toBe('tool_calls')
    expect(named(streamed.message.tool_calls)).toEqual(named(message.tool_calls))
  }
})

describe('unsupported requests', () => {
  test.each([
    [
      'tools[1].function.parameters',
      {
        tools: [
          tools[0],
          {
            type: 'function',
            function: { name: 'f', strict: true, parameters: { type: 'object', patternProperties: { a: {} } } },
          },
        ],
      },
      'patternProperties',
    ],
    [
      'tools[0].function.parameters.type',
      { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { type: 'string' } } }] },
      'object',
    ],
    [
      'response_format',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { not: {} } } } },
      'not',
    ],
    ['tool_choice', { tools, tool_choice: { type: 'function', function: { name: 'other' } } }, 'other'],
  ])('%s is refused by name', async (param, fields, word) => {
    const { status, body } = await (await engineOf('hermes')).chat(fields)
    expect([status, body.error?.param]).toEqual([400, param])
    expect(body.error.message).toContain(word)
  })
})

describe('JSON', () => {
  const schema = schemas.get_weather!
  const format = { type: 'json_schema', json_schema: { name: 'w', strict: true, schema } }

  test.each(all)('%s: an answer in JSON is JSON that validates', async family => {
    let thoughts = 0
    for (const seed of [1, 2, 3, 4]) {
      const { body } = await (await engineOf(family)).chat({
        messages: question,
        ...wild,
        tools: undefined,
        seed,
        response_format: format,
        logit_bias: brief(family),
      })
      const [{ message, finish_reason }] = body.choices
      expect([finish_reason, message.tool_calls]).toEqual(['stop', undefined])
      expect(validators.get_weather!(JSON.parse(message.content as string))).toBe(true)
      thoughts += body.usage.completion_tokens_details.reasoning_tokens
    }
    if (family === 'thinker') expect(thoughts).toBeGreaterThan(0)
    else if (family !== 'qwen3') expect(thoughts).toBe(0)
  })

  test('any object', async () => {
    // Random weights seldom end, so the closing bracket is made likely.
    const bias = { [262 + '}'.charCodeAt(0) - 33]: 6 }
    for (const seed of [1, 2, 3]) {
      const { body } = await (await engineOf('hermes')).chat({
        seed,
        response_format: { type: 'json_object' },
        logit_bias: bias,
      })
      const [{ message, finish_reason }] = body.choices
      expect(finish_reason).toBe('stop')
      expect(JSON.parse(message.content as string)).toBeTypeOf('object')
    }
  })

  test('JSON or calls, where both are requested', async () => {
    let called = 0
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const { body } = await (await engineOf('mistral')).chat({
        messages: question,
        ...wild,
        seed,
        response_format: format,
      })
      const [{ message }] = body.choices
      if (message.tool_calls) called++
      if (message.tool_calls) checkCalls(message.tool_calls, 'mistral')
      else expect(validators.get_weather!(JSON.parse(message.content as string))).toBe(true)
    }
    expect(called).toBeGreaterThan(0)
  })
})

describe('reasoning', () => {
  const biased = { ...wild, tools: undefined, max_tokens: 60, logit_bias: { [tokenOf('thinker', '</think>')]: 2 } }

  test('is separated, whole and streamed, and counted', async () => {
    let thought = 0
    for (const seed of [1, 2, 3, 4]) {
      const { body } = await (await engineOf('thinker')).chat({ seed, ...biased })
      const [{ message }] = body.choices
      const { message: streamed } = assembled(await (await engineOf('thinker')).stream({ seed, ...biased }))
      expect(streamed.content ?? '').toBe(message.content ?? '')
      expect(streamed.reasoning_content).toBe(message.reasoning_content)
      const counted = body.usage.completion_tokens_details.reasoning_tokens
      expect(counted > 0).toBe(message.reasoning_content !== undefined)
      expect(counted).toBeLessThanOrEqual(body.usage.completion_tokens)
      if (counted > 0) thought++
    }
    expect(thought).toBeGreaterThan(0)
  })

  test('may precede a required call', async () => {
    const bias = { [tokenOf('qwen3', '<think>')]: 8, [tokenOf('qwen3', '</think>')]: 5 }
    for (const seed of [1, 2, 3]) {
      const fields = { messages: question, ...wild, tool_choice: 'required', seed, logit_bias: bias }
      const { body } = await (await engineOf('qwen3')).chat(fields)
      const [{ message, finish_reason }] = body.choices
      expect([message.content, finish_reason]).toEqual([null, 'tool_calls'])
      expect(message.reasoning_content).toBeTypeOf('string')
      checkCalls(message.tool_calls, 'qwen3')
      const quick = await (await engineOf('qwen3')).chat({ ...fields, reasoning_effort: 'none' })
      expect(quick.body.choices[0].message.reasoning_content).toBeUndefined()
      checkCalls(quick.body.choices[0].message.tool_calls, 'qwen3')
    }
  })
})
