import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Json, startInfer } from './_engine.ts'

/**
 * The built-in engine and llama-server beside each other, with a real model: see README.md of this folder for how to get
 * both. Skipped where they are not there.
 */
const folder = process.env.INFER_REAL_ENGINES ?? ''
const source = join(folder, 'models', 'SmolLM2-135M-Instruct.Q4_1.gguf')
const server = join(folder, 'bin', 'llama-server')
const count = Number(process.env.INFER_REAL_PROMPTS ?? 50)
const engines = ['built-in', 'llama-server'] as const

describe.skipIf(folder === '' || !existsSync(source) || !existsSync(server))('SmolLM2-135M-Instruct', () => {
  const infer = startInfer(dirname(server), () => {
    const model = { source, devices: 'cpu', context_length: 2048, memory: '1GiB', concurrency: 2, idle_ttl: 0 }
    return {
      models: [
        { id: 'built-in', engine: 'gguf', ...model },
        { id: 'llama-server', engine: 'llama-server', ...model },
        { id: 'built-in-short', engine: 'gguf', ...model, context_length: 256 },
        { id: 'llama-server-short', engine: 'llama-server', ...model, context_length: 256 },
      ],
    }
  })

  async function chat(model: string, content: string, more: object = {}): Promise<Json> {
    const request = { model, messages: [{ role: 'user', content }], temperature: 0, max_tokens: 64, ...more }
    const { status, body } = await infer.post('/std/v1/chat/completions', request)
    expect([status, body]).toEqual([200, expect.anything()])
    return body
  }
  async function events(model: string, content: string, more: object): Promise<Json[]> {
    const response = await infer.app.fetch('/std/v1/chat/completions', {
      body: { model, messages: [{ role: 'user', content }], temperature: 0, stream: true, ...more },
    })
    const lines = (await response.text()).split('\n').filter(line => line.startsWith('data: {'))
    return lines.map(line => JSON.parse(line.slice(6)))
  }

  const cities = ['Paris', 'Rome', 'Oslo', 'Lima', 'Cairo', 'Tokyo', 'Quito', 'Delhi', 'Accra', 'Berlin']
  const asks = ['What is the weather in', 'How warm is it in', 'Will it rain in', 'Tell me about', 'Is it windy in']
  const prompts = asks.flatMap(ask => cities.map(city => `${ask} ${city}?`)).slice(0, count)

  const weather = {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Gets the weather of a city.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string', maxLength: 40 }, unit: { enum: ['celsius', 'fahrenheit'] } },
        required: ['city', 'unit'],
        additionalProperties: false,
      },
    },
  }
  const isWeather = (text: string) => {
    const { city, unit, ...rest } = JSON.parse(text) as Record<string, unknown>
    return (
      typeof city === 'string' && ['celsius', 'fahrenheit'].includes(unit as string) && Object.keys(rest).length === 0
    )
  }

  test('greedy text, its end and its token counts are equal', { timeout: 600_000 }, async () => {
    const told = prompts.filter((_, at) => at % 5 === 0)
    for (const prompt of told) {
      const [ours, theirs] = [await chat('built-in', prompt), await chat('llama-server', prompt)]
      const facts = ({ choices, usage }: Json) => ({
        text: choices[0].message.content,
        end: choices[0].finish_reason,
        tokens: [usage.prompt_tokens, usage.completion_tokens],
      })
      expect(facts(theirs), prompt).toEqual(facts(ours))
    }
  })

  test('answers that end by themselves count the same tokens', { timeout: 600_000 }, async () => {
    for (const prompt of ['Say hi.', 'Answer with one word: what is the capital of France?', 'What is 2+2?']) {
      const told = await Promise.all(engines.map(model => chat(model, prompt, { max_tokens: 400 })))
      expect(told[1].choices[0], prompt).toMatchObject({ finish_reason: told[0].choices[0].finish_reason })
      expect(told[1].usage.completion_tokens, prompt).toBe(told[0].usage.completion_tokens)
    }
  })

  test.each(engines)('%s: a forced call is valid for every prompt', { timeout: 900_000 }, async model => {
    const choices = ['required', { type: 'function', function: { name: 'get_weather' } }]
    let valid = 0
    for (const [at, prompt] of prompts.entries()) {
      const { choices: told } = await chat(model, prompt, {
        tools: [weather],
        tool_choice: choices[at % 2],
        parallel_tool_calls: false,
        max_tokens: 200,
      })
      const [call] = told[0].message.tool_calls ?? []
      if (
        told[0].finish_reason === 'tool_calls' &&
        call?.function.name === 'get_weather' &&
        isWeather(call.function.arguments)
      )
        valid++
    }
    expect(valid).toBe(prompts.length)
  })

  test.each(engines)('%s: json_schema is valid for every prompt', { timeout: 900_000 }, async model => {
    const json_schema = { name: 'weather', schema: weather.function.parameters, strict: true }
    let valid = 0
    for (const prompt of prompts) {
      const told = await chat(model, prompt, { response_format: { type: 'json_schema', json_schema }, max_tokens: 200 })
      if (isWeather(told.choices[0].message.content)) valid++
    }
    expect(valid).toBe(prompts.length)
  })

  test.each(engines)('%s: a streamed call comes in the same form', async model => {
    const told = await events(model, prompts[0]!, {
      tools: [weather],
      tool_choice: 'required',
      parallel_tool_calls: false,
    })
    const deltas = told.flatMap(({ choices }) => choices)
    const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? [])
    expect(calls[0]).toMatchObject({ index: 0, id: expect.any(String), function: { name: 'get_weather' } })
    expect(isWeather(calls.map(({ function: { arguments: part } }) => part).join(''))).toBe(true)
    expect(deltas.at(-1).finish_reason).toBe('tool_calls')
    expect(deltas.map(({ delta }) => delta.content ?? '').join('')).toBe('')
  })

  test.each(engines)('%s: json_object is an object', async model => {
    const format = { response_format: { type: 'json_object' }, max_tokens: 300 }
    const { choices } = await chat(model, 'Give me JSON with the name and the age of a person. Keep it short.', format)
    if (choices[0].finish_reason === 'stop') expect(JSON.parse(choices[0].message.content)).toBeTypeOf('object')
    expect(choices[0].message.content.trimStart()[0]).toBe('{')
  })

  test.each(engines)(
    '%s: more tokens than fit in the context are as many as fit',
    { timeout: 600_000 },
    async model => {
      const { choices, usage } = await chat(`${model}-short`, 'Count from one to ten thousand.', {
        max_tokens: 100_000,
        logit_bias: { '2': -100 },
      })
      expect(choices[0].finish_reason).toBe('length')
      expect(usage.total_tokens).toBe(256)
    },
  )
})
